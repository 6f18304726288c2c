package raftguard

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

// HoleError says that the log lacks entries that no snapshot covers.
type HoleError struct {
	// First and Last are the first and the last missing index.
	First, Last uint64
}

// Error names the missing entries and the way out.
func (e *HoleError) Error() string {
	return fmt.Sprintf("the log in the data folder lacks the entries %d to %d, which no snapshot here covers; remove the "+
		"data folder and let this server join again as a new one, or restore the cluster from a backup when no other "+
		"server has them", e.First, e.Last)
}

// VerifyLog reads every entry of the log and returns the first fault: a *CorruptEntryError (when logs is or wraps a
// Checksum), a *HoleError, or an error of the store. snapshot is the index of the newest intact snapshot, 0 for none.
//
// Holes up to snapshot are in order: a follower that installs a snapshot keeps what it had before, and a restore of a
// backup burns one index on purpose. A hole above snapshot is lost history; stock raft panics on it.
func VerifyLog(logs raft.LogStore, snapshot uint64) error {
	first, last, err := bounds(logs)
	if err != nil || last == 0 {
		return err
	}
	if first > snapshot+1 {
		return &HoleError{First: snapshot + 1, Last: first - 1}
	}
	var entry raft.Log
	for index := first; index <= last; index++ {
		err := logs.GetLog(index, &entry)
		if errors.Is(err, raft.ErrLogNotFound) {
			if index > snapshot {
				return holeFrom(logs, index, last)
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("verify log entry %d: %w", index, err)
		}
	}
	return nil
}

// holeFrom finds the end of the hole that begins at first.
func holeFrom(logs raft.LogStore, first, last uint64) error {
	hole := &HoleError{First: first, Last: first}
	for hole.Last < last && errors.Is(logs.GetLog(hole.Last+1, &raft.Log{}), raft.ErrLogNotFound) {
		hole.Last++
	}
	return hole
}

// bounds returns the first and the last index of the log, 0 and 0 when it is empty.
func bounds(logs raft.LogStore) (first, last uint64, err error) {
	if first, err = logs.FirstIndex(); err != nil {
		return 0, 0, fmt.Errorf("read the first index of the log: %w", err)
	}
	if last, err = logs.LastIndex(); err != nil {
		return 0, 0, fmt.Errorf("read the last index of the log: %w", err)
	}
	return first, last, nil
}
