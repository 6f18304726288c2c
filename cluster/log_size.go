package cluster

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/quorate/quorate/cluster/raftguard"
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

type logBound struct {
	log       hclog.Logger
	bytes     int64
	trailing  uint64
	size      *raftguard.LogSize
	raft      *raft.Raft
	snapshots raft.SnapshotStore
	// snapshot takes a snapshot of the node.
	snapshot func(context.Context) error
}

// watch keeps the log within its bound: it takes a snapshot when the entries since the last one have too many, and
// makes raft keep fewer of them after it. raft itself counts only entries.
func (l *logBound) watch(ctx context.Context) {
	for sleepContext(ctx, logCheckInterval) {
		if err := l.enforce(ctx); err != nil && ctx.Err() == nil {
			l.log.Warn("could not shorten the log, which has more bytes than snapshot-mib", "error", err)
			sleepContext(ctx, failedSnapshotPause)
		}
	}
}

func (l *logBound) enforce(ctx context.Context) error {
	bound := uint64(l.bytes)
	if l.size.BytesBetween(0, l.raft.LastIndex()) <= bound {
		return l.keepTrailing(l.trailing)
	}
	list, err := l.snapshots.List()
	if err != nil {
		return err
	}
	var newest uint64
	if len(list) > 0 {
		newest = list[0].Index
		bound = max(bound, snapshotFactor*uint64(list[0].Size))
	}
	if err := l.keepTrailing(min(l.trailing, l.size.EntriesWithin(trailingFactor*bound))); err != nil {
		return err
	}
	// Entries that are not applied yet are not in a snapshot.
	if l.size.BytesBetween(newest, l.raft.AppliedIndex()) <= bound {
		return nil
	}
	return l.snapshot(ctx)
}

func (l *logBound) keepTrailing(entries uint64) error {
	present := l.raft.ReloadableConfig()
	if present.TrailingLogs == entries {
		return nil
	}
	present.TrailingLogs = entries
	return l.raft.ReloadConfig(present)
}
