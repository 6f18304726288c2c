package raftguard

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// The window over which DiskLatency computes the mean. The newest bucket is not complete yet.
const (
	latencyBuckets = 6
	bucketLength   = 5 * time.Second
)

// DiskLatency is a log store that measures the duration of its recent writes. Every write ends with a sync, so this is
// the latency of the disk.
type DiskLatency struct {
	raft.LogStore

	mu      sync.Mutex
	buckets [latencyBuckets]latencyBucket // a ring, by time
	// since is when the write in progress began; zero if there is none. raft writes one batch at a time.
	since time.Time
}

type latencyBucket struct {
	number int64 // the time divided by bucketLength
	writes int
	took   time.Duration
}

// NewDiskLatency wraps the log store to measure.
func NewDiskLatency(logs raft.LogStore) *DiskLatency { return &DiskLatency{LogStore: logs} }

// StoreLog appends one entry.
func (p *DiskLatency) StoreLog(entry *raft.Log) error {
	return p.measureWrite(func() error { return p.LogStore.StoreLog(entry) })
}

// StoreLogs appends entries.
func (p *DiskLatency) StoreLogs(entries []*raft.Log) error {
	return p.measureWrite(func() error { return p.LogStore.StoreLogs(entries) })
}

// IsMonotonic reports whether the wrapped log store tolerates no gaps.
func (p *DiskLatency) IsMonotonic() bool { return isMonotonic(p.LogStore) }

func (p *DiskLatency) measureWrite(write func() error) error {
	began := time.Now()
	p.mu.Lock()
	p.since = began
	p.mu.Unlock()
	err := write()
	ended := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = time.Time{}
	part := bucketNumber(ended)
	slot := &p.buckets[part%latencyBuckets]
	if slot.number != part {
		*slot = latencyBucket{number: part}
	}
	slot.writes++
	slot.took += ended.Sub(began)
	return err
}

func bucketNumber(t time.Time) int64 { return t.UnixNano() / int64(bucketLength) }

// Pending returns how long the write in progress has taken so far; 0 if there is none.
func (p *DiskLatency) Pending() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() {
		return 0
	}
	return time.Since(p.since)
}

// Mean returns the mean duration of the writes of the last half minute, and their number. A write in progress counts if
// it already takes longer than the mean, so that a hanging disk is visible before the write returns.
func (p *DiskLatency) Mean() (mean time.Duration, writes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	var took time.Duration
	for _, slot := range p.buckets {
		if slot.writes > 0 && slot.number > bucketNumber(now)-latencyBuckets {
			took, writes = took+slot.took, writes+slot.writes
		}
	}
	if writes > 0 {
		mean = took / time.Duration(writes)
	}
	if pending := now.Sub(p.since); !p.since.IsZero() && pending > mean {
		writes++
		mean = (took + pending) / time.Duration(writes)
	}
	return mean, writes
}
