package cluster

import (
	"time"
)

const (
	// logCheckInterval is how often the size of the log is compared with its bound.
	logCheckInterval = time.Second
	// failedSnapshotPause is how long the node waits after a snapshot that failed.
	failedSnapshotPause = 30 * time.Second
	// snapshotFactor is how many times the size of the newest snapshot the log may have before the next one: rewriting a
	// large state must not cost more than writing the log.
	snapshotFactor = 4
	// trailingFactor is how many times the bound stays in the log after a snapshot. It must reach back to the snapshot
	// before, from which the node recovers if the newest one is damaged (raftguard.VerifySnapshots), although entries are
	// written while a snapshot is.
	trailingFactor = 2
)

// watchLogSize bounds the log in bytes: it takes a snapshot when the entries since the last one have too many, and
// makes raft keep fewer of them after it. raft itself counts only entries.
func (n *Node) watchLogSize() {
	for sleepContext(n.ctx, logCheckInterval) {
		if err := n.boundLogSize(); err != nil && n.ctx.Err() == nil {
			n.log.Warn("could not shorten the log, which has more bytes than snapshot-mib", "error", err)
			sleepContext(n.ctx, failedSnapshotPause)
		}
	}
}

// boundLogSize does one step of watchLogSize.
func (n *Node) boundLogSize() error {
	bound := uint64(n.config.SnapshotBytes)
	if n.logSize.BytesBetween(0, n.raft.LastIndex()) <= bound {
		return n.keepTrailing(n.config.TrailingLogs)
	}
	list, err := n.parts.Snapshots.List()
	if err != nil {
		return err
	}
	var newest uint64
	if len(list) > 0 {
		newest = list[0].Index
		bound = max(bound, snapshotFactor*uint64(list[0].Size))
	}
	if err := n.keepTrailing(min(n.config.TrailingLogs, n.logSize.EntriesWithin(trailingFactor*bound))); err != nil {
		return err
	}
	// Entries that are not applied yet are not in a snapshot.
	if n.logSize.BytesBetween(newest, n.raft.AppliedIndex()) <= bound {
		return nil
	}
	return n.Snapshot(n.ctx)
}

// keepTrailing changes how many entries raft keeps after its next snapshot.
func (n *Node) keepTrailing(entries uint64) error {
	present := n.raft.ReloadableConfig()
	if present.TrailingLogs == entries {
		return nil
	}
	present.TrailingLogs = entries
	return n.raft.ReloadConfig(present)
}
