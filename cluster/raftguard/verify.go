package raftguard

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

// HoleError says that the log lacks an entry that no snapshot covers.
type HoleError struct {
	// Missing is the lowest missing index.
	Missing uint64
	// First and Last are the ends of the log.
	First, Last uint64
	// Snapshot is the index of the newest snapshot, 0 for none.
	Snapshot uint64
}

// Error names the missing entry and what to do.
func (e *HoleError) Error() string {
	return fmt.Sprintf("the log in the data folder reaches from entry %d to entry %d but lacks entry %d, "+
		"and the newest "+
		"snapshot reaches only to entry %d; remove the data folder and let this server join again as a new "+
		"one, or restore "+
		"the cluster from a backup when no other server is intact", e.First, e.Last, e.Missing, e.Snapshot)
}

// VerifyLog reads every entry of the log and returns the first fault: a *CorruptEntryError (if logs is or wraps a
// Checksum), a *HoleError, or an error of the store. snapshot is the index of the newest intact snapshot, 0 for none.
//
// Gaps up to snapshot are valid: a follower that installs a snapshot keeps its earlier entries, and a restored backup
// skips one index on purpose. A gap above snapshot is lost history, on which stock raft panics.
func VerifyLog(logs raft.LogStore, snapshot uint64) error {
	first, last, err := logBounds(logs)
	if err != nil || last == 0 {
		return err
	}
	if first > snapshot+1 {
		return &HoleError{Missing: snapshot + 1, First: first, Last: last, Snapshot: snapshot}
	}
	var entry raft.Log
	for index := first; index <= last; index++ {
		err := logs.GetLog(index, &entry)
		if errors.Is(err, raft.ErrLogNotFound) {
			if index > snapshot {
				return &HoleError{Missing: index, First: first, Last: last, Snapshot: snapshot}
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("verify log entry %d: %w", index, err)
		}
	}
	return nil
}

// logBounds is 0 and 0 when the log is empty.
func logBounds(logs raft.LogStore) (first, last uint64, err error) {
	if first, err = logs.FirstIndex(); err != nil {
		return 0, 0, fmt.Errorf("read the first index of the log: %w", err)
	}
	if last, err = logs.LastIndex(); err != nil {
		return 0, 0, fmt.Errorf("read the last index of the log: %w", err)
	}
	return first, last, nil
}
