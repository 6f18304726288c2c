package cluster

import (
	"context"
	"time"
)

// Observer receives events of a node for metrics. Its methods are called concurrently on the node's own goroutines:
// they must return at once and must not call the node.
type Observer interface {
	// EntryEnded reports the outcome of one log entry that this node proposed.
	EntryEnded(EntryReport)
	// Applied reports that committed entries were applied to this node's ledger in one batch, and how many commands they
	// contained.
	Applied(entries, commands int, took time.Duration)
	// SnapshotEnded reports a snapshot that this node took.
	SnapshotEnded(SnapshotReport)
	// Restored reports that a snapshot has replaced this node's ledger, or failed to.
	Restored(took time.Duration, err error)
	// ReadBatchEnded reports one confirmation of a batch of linearizable reads.
	ReadBatchEnded(ReadBatchReport)
	// LeadershipEstablished reports that this node has established a leadership.
	LeadershipEstablished()
}

// EntryReport describes the path of one entry through the log.
type EntryReport struct {
	// Index is the entry's index in the log; 0 if it failed.
	Index uint64
	// Commands is the number of commands in the entry, Calls the number of proposals that share it, Bytes its size.
	Commands, Calls, Bytes int
	// Queued is when the first of its commands was queued, Sent when the entry was given to raft, Ended when raft
	// answered.
	Queued, Sent, Ended time.Time
	// ApplyBegan and ApplyEnded are when this node's ledger applied the entry, which begins after a majority has stored
	// it; zero if the entry failed. Entries that are applied together share both.
	ApplyBegan, ApplyEnded time.Time
	// Err is why the entry failed, or nil.
	Err error
}

// SnapshotReport describes one snapshot of this node.
type SnapshotReport struct {
	// FreezeTime is how long writers were blocked, WriteTime how long the snapshot was written concurrently with writers.
	FreezeTime, WriteTime time.Duration
	// Bytes is the size of the snapshot.
	Bytes int64
	Err   error
}

// ReadBatchReport describes one confirmation of a batch of reads.
type ReadBatchReport struct {
	// Leader is true for a leader that confirmed its leadership with a majority, false for a follower that asked the
	// leader.
	Leader bool
	// Reads is the number of reads in the batch.
	Reads int
	Took  time.Duration
	Err   error
}

type noopObserver struct{}

func (noopObserver) EntryEnded(EntryReport)          {}
func (noopObserver) Applied(int, int, time.Duration) {}
func (noopObserver) SnapshotEnded(SnapshotReport)    {}
func (noopObserver) Restored(time.Duration, error)   {}
func (noopObserver) ReadBatchEnded(ReadBatchReport)  {}
func (noopObserver) LeadershipEstablished()          {}

func observeReadBatch(to Observer, leader bool) func(reads int, took time.Duration, err error) {
	return func(reads int, took time.Duration, err error) {
		to.ReadBatchEnded(ReadBatchReport{Leader: leader, Reads: reads, Took: took, Err: err})
	}
}

type entryReportKey struct{}

// WithEntryReport makes [Node.Propose] under this context fill in report for the entry that contains the last of the
// commands. The report may be read once Propose has returned without an error.
func WithEntryReport(ctx context.Context, report *EntryReport) context.Context {
	return context.WithValue(ctx, entryReportKey{}, report)
}

// fillEntryReport does nothing unless the caller asked for a report with WithEntryReport.
func fillEntryReport(ctx context.Context, entry EntryReport) {
	if report, asked := ctx.Value(entryReportKey{}).(*EntryReport); asked {
		*report = entry
	}
}
