package raftguard

import (
	"fmt"

	"github.com/hashicorp/raft"
)

// The keys under which raft keeps its term and its vote. They are part of its format on disk.
var (
	currentTermKey  = []byte("CurrentTerm")
	lastVoteTermKey = []byte("LastVoteTerm")
)

// History is what the stores of a node say about what the node has promised, and whether they still hold all of it.
type History struct {
	// Empty is true if the node has neither stored nor promised anything.
	Empty bool
	// Lost says what is missing; empty if nothing is. A node that has lost something must not vote or confirm entries.
	Lost string
	// TermOnly is true if, although something is lost, the stores hold neither an entry nor a snapshot: raft may start on
	// them and waits for a leader.
	TermOnly bool
}

// CheckHistory compares what is stored with what must be stored: a term as high as that of the newest entry and snapshot, a
// log that begins no later than behind the newest snapshot, and state that reaches as far as the newest snapshot that was
// ever complete here (see RecordedSnapshots). Call it after VerifySnapshots and RepairTail, before raft starts.
//
// It cannot notice stores that were all set back to one earlier moment together.
func CheckHistory(logs raft.LogStore, stable raft.StableStore, snapshots raft.SnapshotStore) (History, error) {
	p, err := readStoredState(logs, stable, snapshots)
	if err != nil {
		return History{}, err
	}
	if p.last == 0 && p.snapshot == 0 {
		if p.term == 0 && p.voted == 0 && p.recorded == 0 {
			return History{Empty: true}, nil
		}
		return History{TermOnly: true, Lost: fmt.Sprintf("it has taken part in term %d and holds neither a log nor a snapshot", max(p.term, p.voted))}, nil
	}
	return History{Lost: p.missingPart()}, nil
}

// storedState are the numbers that must fit together.
type storedState struct {
	term, voted            uint64
	first, last            uint64
	lastTerm               uint64
	snapshot, snapshotTerm uint64
	recorded               uint64
}

func readStoredState(logs raft.LogStore, stable raft.StableStore, snapshots raft.SnapshotStore) (p storedState, err error) {
	for _, number := range []struct {
		key []byte
		to  *uint64
	}{{currentTermKey, &p.term}, {lastVoteTermKey, &p.voted}, {snapshotIndexKey, &p.recorded}} {
		if *number.to, err = storedNumber(stable, number.key); err != nil {
			return p, err
		}
	}
	if p.first, p.last, err = logBounds(logs); err != nil {
		return p, err
	}
	if p.last > 0 {
		var entry raft.Log
		if err := logs.GetLog(p.last, &entry); err != nil {
			return p, fmt.Errorf("read log entry %d, the last one: %w", p.last, err)
		}
		p.lastTerm = entry.Term
	}
	newest, err := newestSnapshot(snapshots)
	if err == nil && newest != nil {
		p.snapshot, p.snapshotTerm = newest.Index, newest.Term
	}
	return p, err
}

// missingPart is the first thing that does not fit; empty if all does.
func (p storedState) missingPart() string {
	switch {
	case p.term < max(p.lastTerm, p.snapshotTerm, p.voted):
		return fmt.Sprintf("its term is gone: it says %d, and what it holds is of term %d", p.term, max(p.lastTerm, p.snapshotTerm, p.voted))
	case p.first > p.snapshot+1:
		return fmt.Sprintf("entry %d and what came before it is gone: the log begins at entry %d and the newest snapshot reaches to entry %d",
			p.first-1, p.first, p.snapshot)
	case max(p.last, p.snapshot) < p.recorded:
		return fmt.Sprintf("its newest snapshot is gone: it reached to entry %d, and what is left reaches to entry %d", p.recorded,
			max(p.last, p.snapshot))
	}
	return ""
}

// storedNumber is a number of a stable store, 0 if it has none. Stores tell that only by the text of their own error.
func storedNumber(stable raft.StableStore, key []byte) (uint64, error) {
	number, err := stable.GetUint64(key)
	if err != nil && err.Error() != "not found" {
		return 0, fmt.Errorf("read %s from the stable store: %w", key, err)
	}
	return number, nil
}

// snapshotIndexKey is where RecordedSnapshots keeps how far the newest snapshot reaches.
var snapshotIndexKey = []byte("quorate-snapshot-index")

// RecordedSnapshots is a raft.SnapshotStore that records in the stable store how far its newest snapshot reaches, before
// raft relies on it and shortens the log. So a start notices that a snapshot is gone although an older one is left.
type RecordedSnapshots struct {
	raft.SnapshotStore
	stable raft.StableStore
}

// NewRecordedSnapshots wraps inner, and records the newest snapshot that is there already.
func NewRecordedSnapshots(inner raft.SnapshotStore, stable raft.StableStore) (*RecordedSnapshots, error) {
	r := &RecordedSnapshots{SnapshotStore: inner, stable: stable}
	newest, err := newestSnapshot(inner)
	if err != nil || newest == nil {
		return r, err
	}
	return r, r.recordIndex(newest.Index)
}

func (r *RecordedSnapshots) recordIndex(index uint64) error {
	recorded, err := storedNumber(r.stable, snapshotIndexKey)
	if err != nil || recorded >= index {
		return err
	}
	if err := r.stable.SetUint64(snapshotIndexKey, index); err != nil {
		return fmt.Errorf("record the snapshot at index %d: %w", index, err)
	}
	return nil
}

// Create opens a snapshot that is recorded when it is complete.
func (r *RecordedSnapshots) Create(version raft.SnapshotVersion, index, term uint64,
	configuration raft.Configuration, configurationIndex uint64, transport raft.Transport,
) (raft.SnapshotSink, error) {
	sink, err := r.SnapshotStore.Create(version, index, term, configuration, configurationIndex, transport)
	if err != nil {
		return nil, err
	}
	return &recordedSink{SnapshotSink: sink, record: func() error { return r.recordIndex(index) }}, nil
}

// recordedSink records once: a file sink answers nil when it is closed again, also after its first Close failed.
type recordedSink struct {
	raft.SnapshotSink
	record func() error
	ended  bool
}

// Cancel removes the snapshot, unless it is complete.
func (s *recordedSink) Cancel() error {
	s.ended = true
	return s.SnapshotSink.Cancel()
}

// Close completes the snapshot and records it. raft and its FSMs both call it, also behind Cancel.
func (s *recordedSink) Close() error {
	if s.ended {
		return s.SnapshotSink.Close()
	}
	s.ended = true
	if err := s.SnapshotSink.Close(); err != nil {
		return err
	}
	return s.record()
}

// LostHistoryError says that a node holds less than it has promised.
type LostHistoryError struct {
	// Reason says what is missing.
	Reason string
}

// Error names what is missing and the way out.
func (e *LostHistoryError) Error() string {
	return fmt.Sprintf("the stores of this node have lost state (%s), and it must not take part with what is left; start it with empty "+
		"stores, so that it joins again as a new one, or restore the cluster from a backup when no other server is intact", e.Reason)
}
