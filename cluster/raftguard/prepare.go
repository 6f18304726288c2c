package raftguard

import (
	"io"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// Prepare verifies and repairs a data folder before raft starts on it, in the only correct order: it removes unfinished
// snapshots, verifies the newest one, drops a log that contradicts it, and verifies the rest of the log. It is
// idempotent and must be called again before every restart of raft within the process, such as the one that a Watchdog
// requests.
//
// base is the folder given to raft.NewFileSnapshotStore, and logs the Checksum that raft will use. check reads an FSM's
// state to its end, see VerifySnapshots. The errors of these steps are returned unchanged and say what to do.
func Prepare(base string, snapshots raft.SnapshotStore, logs raft.LogStore, check func(io.Reader) error,
	logger hclog.Logger,
) error {
	swept, err := SweepSnapshots(base)
	if err != nil {
		return err
	}
	if len(swept) > 0 {
		logger.Info("removed unfinished snapshots of an earlier run", "names", swept)
	}
	if err := VerifySnapshots(base, snapshots, logs, check, logger); err != nil {
		return err
	}
	if _, err := RepairTail(logs, snapshots, logger); err != nil {
		return err
	}
	newest, err := newestSnapshot(snapshots)
	if err != nil {
		return err
	}
	if newest == nil {
		return VerifyLog(logs, 0)
	}
	return VerifyLog(logs, newest.Index)
}
