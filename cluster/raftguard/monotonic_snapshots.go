package raftguard

import (
	"fmt"
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// OlderSnapshotError says that a snapshot was refused because a newer one is here.
type OlderSnapshotError struct {
	// Index is that of the refused snapshot, Newest that of the one which is here.
	Index, Newest uint64
}

// Error names both.
func (e *OlderSnapshotError) Error() string {
	return fmt.Sprintf("a snapshot at index %d would lead back from the one at index %d that is here", e.Index, e.Newest)
}

// MonotonicSnapshots is a raft.SnapshotStore that never goes back to an older snapshot.
//
// Whatever a snapshot holds is committed, so nobody needs an older one. raft installs one all the same: when a follower
// has shortened its log further than the leader knows that it came (answers were lost), it answers the leader's probes
// below its first entry with no, until the leader sends a snapshot. If that is older than the follower's own, the
// follower's state goes back in time, its log does not fit behind it, and the leader starts again: for ever, or until
// the leader has taken a newer snapshot. Also a snapshot of its own that a follower finishes after it has installed a
// newer one would lead raft's idea of its newest snapshot back (raft#248).
//
// A refused snapshot leaves the follower as far as it is, but the leader still goes on probing. A new election makes
// every leader begin its probes at the follower's last entry, which heals it.
type MonotonicSnapshots struct {
	raft.SnapshotStore
	limit   int
	onStuck func()
	logger  hclog.Logger

	mu      sync.Mutex
	refused int // in a row
}

// NewMonotonicSnapshots wraps inner. onStuck runs in a goroutine of its own after limit refusals in a row, and again after as many
// more; it should start an election.
func NewMonotonicSnapshots(inner raft.SnapshotStore, limit int, onStuck func(), logger hclog.Logger) *MonotonicSnapshots {
	return &MonotonicSnapshots{SnapshotStore: inner, limit: limit, onStuck: onStuck, logger: logger}
}

// Create opens a snapshot, or returns an *OlderSnapshotError.
func (r *MonotonicSnapshots) Create(version raft.SnapshotVersion, index, term uint64,
	configuration raft.Configuration, configurationIndex uint64, transport raft.Transport,
) (raft.SnapshotSink, error) {
	if err := r.checkIndex(index); err != nil {
		r.countRefusal(err)
		return nil, err
	}
	sink, err := r.SnapshotStore.Create(version, index, term, configuration, configurationIndex, transport)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused = 0
	return &monotonicSink{SnapshotSink: sink, check: func() error { return r.checkIndex(index) }}, nil
}

func (r *MonotonicSnapshots) checkIndex(index uint64) error {
	newest, err := newestSnapshot(r.SnapshotStore)
	if err != nil {
		return err
	}
	if newest != nil && index < newest.Index {
		return &OlderSnapshotError{Index: index, Newest: newest.Index}
	}
	return nil
}

func (r *MonotonicSnapshots) countRefusal(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused++
	if r.refused < r.limit {
		return
	}
	r.refused = 0
	r.logger.Warn("the leader sends snapshots that this server is past; an election will correct it", "error", err)
	go r.onStuck()
}

// monotonicSink is checked once more when it is complete, for another one may have been quicker.
type monotonicSink struct {
	raft.SnapshotSink
	check func() error
	ended bool
}

// Close completes the snapshot unless a newer one is here by now. raft and its FSMs both call it.
func (s *monotonicSink) Close() error {
	if s.ended {
		return s.SnapshotSink.Close()
	}
	s.ended = true
	if err := s.check(); err != nil {
		if cancelled := s.Cancel(); cancelled != nil {
			return fmt.Errorf("%w; and it cannot be removed: %w", err, cancelled)
		}
		return err
	}
	return s.SnapshotSink.Close()
}
