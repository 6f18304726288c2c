package raftguard

import (
	"fmt"
	"sync"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// OlderSnapshotError says that a snapshot was refused because a newer one exists.
type OlderSnapshotError struct {
	// Index is the index of the refused snapshot, Newest that of the existing one.
	Index, Newest uint64
}

// Error names both indices.
func (e *OlderSnapshotError) Error() string {
	return fmt.Sprintf("a snapshot at index %d is older than the one at index %d that is here", e.Index, e.Newest)
}

// MonotonicSnapshots is a raft.SnapshotStore that never goes back to an older snapshot.
//
// Everything in a snapshot is committed, so an older snapshot is never needed. raft installs one nevertheless: a
// follower may have truncated its log beyond the last index that the leader knows it has (answers were lost). It then
// rejects the leader's probes below its first entry, until the leader sends a snapshot. If that snapshot is older than
// the follower's own, the follower's state goes back in time, its log does not connect to the snapshot, and the leader
// starts over: without end, or until the leader takes a newer snapshot. A follower that completes a snapshot of its own
// after it has installed a newer one would also reset raft's newest snapshot (raft#248).
//
// Refusing the snapshot keeps the follower's state, but the leader continues to probe. An election makes every new
// leader start its probes at the follower's last entry, which resolves it.
//
// The same happens with a snapshot of the same index if the first answers after it was installed were lost: the
// follower has entries right after it, of which the leader does not know, and none at its index, for which the leader
// asks. Installing it again does no harm and brings nothing, so that is only counted.
type MonotonicSnapshots struct {
	raft.SnapshotStore
	limit   int
	onStuck func()
	logger  hclog.Logger

	mu      sync.Mutex
	refused int // in a row
	// installed is the index of the last complete snapshot, repeated how often the same one was completed again.
	installed uint64
	repeated  int
}

// NewMonotonicSnapshots wraps inner. onStuck is called on a goroutine of its own after every limit consecutive
// refusals, and once when the same snapshot was installed again 2*limit times; it should start an election. A Watchdog
// with the same limit acts before that if the log contradicts the snapshot, when an election would not help.
func NewMonotonicSnapshots(inner raft.SnapshotStore, limit int, onStuck func(),
	logger hclog.Logger,
) *MonotonicSnapshots {
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
	return &monotonicSink{
		SnapshotSink: sink, check: func() error { return r.checkIndex(index) }, completed: func() { r.noteCompleted(index) },
	}, nil
}

// noteCompleted counts how often the same snapshot is completed.
func (r *MonotonicSnapshots) noteCompleted(index uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if index != r.installed {
		r.installed, r.repeated = index, 0
		return
	}
	r.repeated++
	if r.repeated == 2*r.limit {
		r.logger.Warn("the leader sends the same snapshot again and again; an election will correct it", "index", index)
		go r.onStuck()
	}
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
	r.logger.Warn("the leader sends snapshots older than this server's; an election will correct it", "error", err)
	go r.onStuck()
}

// monotonicSink checks again when it is complete, because another snapshot may have completed first.
type monotonicSink struct {
	raft.SnapshotSink
	check     func() error
	completed func()
	ended     bool
}

// Close completes the snapshot unless a newer one exists by now. raft and its FSMs both call it.
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
	if err := s.SnapshotSink.Close(); err != nil {
		return err
	}
	s.completed()
	return nil
}
