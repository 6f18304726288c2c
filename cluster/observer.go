package cluster

import (
	"context"
	"time"
)

// Observer is told what a node does, so that it can be measured. Its methods are called on the node's own goroutines,
// several at once: they must return at once and must not call the node. It changes nothing of what the node does.
type Observer interface {
	// EntryEnded tells what became of one entry of the log that this node proposed.
	EntryEnded(EntryReport)
	// Applied tells that committed entries went into this node's ledger together, and how many commands they held.
	Applied(entries, commands int, took time.Duration)
	// SnapshotEnded tells of a snapshot that this node took.
	SnapshotEnded(SnapshotReport)
	// Restored tells that a snapshot has replaced this node's ledger, or failed to.
	Restored(took time.Duration, err error)
	// ReadBatchEnded tells of one question on behalf of linearizable reads.
	ReadBatchEnded(ReadBatchReport)
	// LeadershipEstablished tells that this node has established a leadership.
	LeadershipEstablished()
}

// EntryReport is the way of one entry through the log.
type EntryReport struct {
	// Index is its place in the log; 0 if it failed.
	Index uint64
	// Commands are those in it, Calls the proposals that share it, Bytes its size.
	Commands, Calls, Bytes int
	// Queued is when its first commands came, Sent when it was handed to raft, Ended when raft answered.
	Queued, Sent, Ended time.Time
	// ApplyBegan and ApplyEnded frame its application to this node's ledger, which begins when a majority has it; zero if it
	// failed. Entries that are applied together share both.
	ApplyBegan, ApplyEnded time.Time
	// Err is why it failed, or nil.
	Err error
}

// SnapshotReport is one snapshot of this node.
type SnapshotReport struct {
	// FreezeTime is how long writers waited for it, Wrote how long writing took beside them.
	FreezeTime, WriteTime time.Duration
	// Bytes is its size.
	Bytes int64
	Err   error
}

// ReadBatchReport is one question that answered several reads.
type ReadBatchReport struct {
	// Leader is true for a leader that asked a majority whether it still leads, false for a follower that asked the leader.
	Leader bool
	// Reads waited for the answer.
	Reads int
	Took  time.Duration
	Err   error
}

// noopObserver is the Observer of a node that nobody measures.
type noopObserver struct{}

func (noopObserver) EntryEnded(EntryReport)          {}
func (noopObserver) Applied(int, int, time.Duration) {}
func (noopObserver) SnapshotEnded(SnapshotReport)    {}
func (noopObserver) Restored(time.Duration, error)   {}
func (noopObserver) ReadBatchEnded(ReadBatchReport)  {}
func (noopObserver) LeadershipEstablished()          {}

// observeReadBatch tells the observer of questions for reads.
func (n *Node) observeReadBatch(leader bool) func(reads int, took time.Duration, err error) {
	return func(reads int, took time.Duration, err error) {
		n.config.Observer.ReadBatchEnded(ReadBatchReport{Leader: leader, Reads: reads, Took: took, Err: err})
	}
}

type entryReportKey struct{}

// WithEntryReport asks [Node.Propose] under this context to tell the way of the entry that held the last of the commands. The
// report is complete when Propose returns without an error, and may be read from then on.
func WithEntryReport(ctx context.Context, report *EntryReport) context.Context {
	return context.WithValue(ctx, entryReportKey{}, report)
}

// fillEntryReport fills in the report that the caller has asked for, if any.
func fillEntryReport(ctx context.Context, way EntryReport) {
	if report, asked := ctx.Value(entryReportKey{}).(*EntryReport); asked {
		*report = way
	}
}
