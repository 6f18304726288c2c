package raftguard

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// The window over which a Pace takes the mean: the newest of its parts is not full yet.
const (
	paceParts = 6
	pacePart  = 5 * time.Second
)

// Pace is a log store that knows how long its writes have taken lately. Every write ends with a sync, so that is how fast
// the disk is.
type Pace struct {
	raft.LogStore

	mu    sync.Mutex
	parts [paceParts]pacing // a ring, by time
	// since is when the write that is under way began; zero if there is none. raft writes one at a time.
	since time.Time
}

// pacing sums up the writes of one part of the window.
type pacing struct {
	part   int64 // which one: the time divided by pacePart
	writes int
	took   time.Duration
}

// NewPace measures the writes of a store.
func NewPace(logs raft.LogStore) *Pace { return &Pace{LogStore: logs} }

// StoreLog appends one entry.
func (p *Pace) StoreLog(entry *raft.Log) error {
	return p.measure(func() error { return p.LogStore.StoreLog(entry) })
}

// StoreLogs appends entries.
func (p *Pace) StoreLogs(entries []*raft.Log) error {
	return p.measure(func() error { return p.LogStore.StoreLogs(entries) })
}

// IsMonotonic reports whether the log store below tolerates no holes.
func (p *Pace) IsMonotonic() bool { return isMonotonic(p.LogStore) }

func (p *Pace) measure(write func() error) error {
	began := time.Now()
	p.mu.Lock()
	p.since = began
	p.mu.Unlock()
	err := write()
	ended := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = time.Time{}
	part := partOf(ended)
	slot := &p.parts[part%paceParts]
	if slot.part != part {
		*slot = pacing{part: part}
	}
	slot.writes++
	slot.took += ended.Sub(began)
	return err
}

func partOf(t time.Time) int64 { return t.UnixNano() / int64(pacePart) }

// Mean is how long a write took on average in the last half minute, and how many there were. One that is still under way
// counts if it takes longer than that already, so that a disk that hangs shows before it answers.
func (p *Pace) Mean() (mean time.Duration, writes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	var took time.Duration
	for _, slot := range p.parts {
		if slot.writes > 0 && slot.part > partOf(now)-paceParts {
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
