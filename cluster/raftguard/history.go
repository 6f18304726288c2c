package raftguard

import (
	"fmt"

	"github.com/hashicorp/raft"
)

// The keys under which raft stores its term and its vote. They are part of its format on disk.
var (
	currentTermKey  = []byte("CurrentTerm")
	lastVoteTermKey = []byte("LastVoteTerm")
)

// History describes the votes and acknowledgements that the stores of a node record, and whether the stores are
// complete.
type History struct {
	// Empty is true if the node has neither stored nor acknowledged anything.
	Empty bool
	// Lost describes what is missing; empty if nothing is. A node that has lost state must not vote or confirm entries.
	Lost string
	// TermOnly is true if something is lost and the stores have neither an entry nor a snapshot: raft may start on them
	// and waits for a leader.
	TermOnly bool
}

// CheckHistory verifies that the stores are consistent: the term is at least that of the newest entry and snapshot, the
// log begins no later than directly after the newest snapshot, and the state reaches at least as far as the newest
// snapshot that was ever complete (see RecordedSnapshots). Call it after VerifySnapshots and RepairTail, before raft
// starts.
//
// It cannot detect stores that were all reset to the same earlier point in time.
func CheckHistory(logs raft.LogStore, stable raft.StableStore, snapshots raft.SnapshotStore) (History, error) {
	p, err := readStoredState(logs, stable, snapshots)
	if err != nil {
		return History{}, err
	}
	if p.last == 0 && p.snapshot == 0 {
		if p.term == 0 && p.voted == 0 && p.recorded == 0 {
			return History{Empty: true}, nil
		}
		return History{TermOnly: true, Lost: fmt.Sprintf("it has taken part in term %d and holds neither a log nor a "+
			"snapshot", max(p.term, p.voted))}, nil
	}
	return History{Lost: p.missingPart()}, nil
}

// storedState has numbers that must be consistent with each other.
type storedState struct {
	term, voted            uint64
	first, last            uint64
	lastTerm               uint64
	snapshot, snapshotTerm uint64
	recorded               uint64
}

func readStoredState(logs raft.LogStore, stable raft.StableStore,
	snapshots raft.SnapshotStore,
) (p storedState, err error) {
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

// missingPart is empty if there is no inconsistency.
func (p storedState) missingPart() string {
	switch {
	case p.term < max(p.lastTerm, p.snapshotTerm, p.voted):
		return fmt.Sprintf("its term is gone: it says %d, and what it holds is of term %d", p.term,
			max(p.lastTerm, p.snapshotTerm, p.voted))
	case p.first > p.snapshot+1:
		return fmt.Sprintf(
			"entry %d and what came before it is gone: the log begins at entry %d and the newest snapshot "+
				"reaches to entry %d",
			p.first-1, p.first, p.snapshot)
	case max(p.last, p.snapshot) < p.recorded:
		return fmt.Sprintf("its newest snapshot is gone: it reached to entry %d, and what is left reaches to entry %d",
			p.recorded,
			max(p.last, p.snapshot))
	}
	return ""
}

// storedNumber is 0 if there is none. A store reports a missing key only by the text of its error.
func storedNumber(stable raft.StableStore, key []byte) (uint64, error) {
	number, err := stable.GetUint64(key)
	if err != nil && err.Error() != "not found" {
		return 0, fmt.Errorf("read %s from the stable store: %w", key, err)
	}
	return number, nil
}

// snapshotIndexKey is the key under which RecordedSnapshots stores the index of the newest snapshot.
var snapshotIndexKey = []byte("quorate-snapshot-index")

// RecordedSnapshots is a raft.SnapshotStore that records the index of its newest snapshot in the stable store before
// raft relies on the snapshot and truncates the log. The next start then detects a missing snapshot even if an older
// one is left.
type RecordedSnapshots struct {
	raft.SnapshotStore
	stable raft.StableStore
}

// NewRecordedSnapshots wraps inner and records the newest snapshot that exists already.
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

// Create opens a snapshot that is recorded once it is complete.
func (r *RecordedSnapshots) Create(version raft.SnapshotVersion, index, term uint64,
	configuration raft.Configuration, configurationIndex uint64, transport raft.Transport,
) (raft.SnapshotSink, error) {
	sink, err := r.SnapshotStore.Create(version, index, term, configuration, configurationIndex, transport)
	if err != nil {
		return nil, err
	}
	return &recordedSink{SnapshotSink: sink, record: func() error { return r.recordIndex(index) }}, nil
}

// recordedSink records only once: a file sink returns nil when it is closed again, even after its first Close failed.
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

// Close completes the snapshot and records it. raft and its FSMs both call it, even after Cancel.
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

// LostHistoryError says that a node has lost state that it voted for or acknowledged.
type LostHistoryError struct {
	// Reason describes what is missing.
	Reason string
}

// Error names what is missing and what to do.
func (e *LostHistoryError) Error() string {
	return fmt.Sprintf("the stores of this node have lost state (%s), and it must not take part with what "+
		"is left; start "+
		"it with empty stores, so that it joins again as a new one, or restore the cluster from a backup when no other "+
		"server is intact", e.Reason)
}
