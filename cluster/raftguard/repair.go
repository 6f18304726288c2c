package raftguard

import (
	"errors"
	"fmt"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// RepairTail drops the log when it contradicts the newest snapshot (raft#697), and reports whether it did. Call it
// before raft starts, after VerifySnapshots and before VerifyLog.
//
// A snapshot contains only committed entries. A log whose entry at the snapshot's index has another term is the tail of
// a deposed leader: no entry from there on can be committed, and the snapshot replaces all entries before. Stock raft
// keeps such a tail when it installs the snapshot, then refuses every entry after it, without end.
//
// A log that agrees with the snapshot, ends before it, or has a gap at the snapshot stays unchanged: its entries above
// the snapshot may be committed and exist only on this and one other server.
func RepairTail(logs raft.LogStore, snapshots raft.SnapshotStore, logger hclog.Logger) (bool, error) {
	newest, err := newestSnapshot(snapshots)
	if err != nil || newest == nil {
		return false, err
	}
	contradicts, err := logContradicts(logs, newest.Index, newest.Term)
	if err != nil || !contradicts {
		return false, err
	}
	first, last, err := logBounds(logs)
	if err != nil {
		return false, err
	}
	if err := logs.DeleteRange(first, last); err != nil {
		return false, fmt.Errorf("drop the log entries %d to %d, which contradict snapshot %s: %w", first,
			last, newest.ID,
			err)
	}
	logger.Warn("dropped a log that contradicts the newest snapshot; the leader will send what is missing",
		"snapshot", newest.ID, "snapshot-index", newest.Index, "snapshot-term", newest.Term, "first",
		first, "last", last)
	return true, nil
}

func newestSnapshot(snapshots raft.SnapshotStore) (*raft.SnapshotMeta, error) {
	list, err := snapshots.List()
	if err != nil {
		return nil, fmt.Errorf("list the snapshots: %w", err)
	}
	if len(list) == 0 {
		return nil, nil
	}
	return list[0], nil
}

// logContradicts reports whether the log certainly belongs to another history than a snapshot of index and term.
func logContradicts(logs raft.LogStore, index, term uint64) (bool, error) {
	_, last, err := logBounds(logs)
	if err != nil || last < index {
		return false, err
	}
	var entry raft.Log
	err = logs.GetLog(index, &entry)
	if err == nil {
		return entry.Term != term, nil
	}
	if !errors.Is(err, raft.ErrLogNotFound) {
		return false, fmt.Errorf("compare log entry %d with the snapshot: %w", index, err)
	}
	return hasEarlierTerm(logs, index+1, term)
}

// hasEarlierTerm reports whether the entry at index has an earlier term. Terms never decrease within one history, so an
// entry after a snapshot with an earlier term than the snapshot belongs to another history.
func hasEarlierTerm(logs raft.LogStore, index, term uint64) (bool, error) {
	var entry raft.Log
	err := logs.GetLog(index, &entry)
	if errors.Is(err, raft.ErrLogNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("compare log entry %d with the snapshot: %w", index, err)
	}
	return entry.Term < term, nil
}
