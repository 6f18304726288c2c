package handlers

import (
	"context"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/cluster/recurrence"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// Node is the interface of the node to the handlers; [cluster.Node] implements it. All methods may be called
// concurrently. Errors are of type [*cluster.Error] if the node can give a reason.
type Node interface {
	ClusterOperations
	// Propose executes commands in order and returns an outcome for each, and the log index that reflects them all. Only
	// the leader can.
	Propose(ctx context.Context, commands ...quota.Command) ([]ledger.Outcome, uint64, error)
	// ProposeBatched is Propose for frequent commands that may be delayed to share a log entry.
	ProposeBatched(ctx context.Context, commands ...quota.Command) ([]ledger.Outcome, uint64, error)
	// ReadFeed returns watch events after a position of the log, as far as this node has applied it. Any node can.
	ReadFeed(after cluster.Position, most int) (cluster.FeedPage, error)
	// Read lends the state to a function, as fresh as the options ask. Any node can.
	Read(ctx context.Context, o cluster.ReadOptions, fn func(ledger.Reader)) (cluster.ReadInfo, error)
	// WaitApplied waits until this node has applied an entry at or after an index.
	WaitApplied(ctx context.Context, index uint64) error
	// AuditRecords returns at most limit audit records of the ledger with numbers above a number, the newest record, and a
	// channel that is closed when there are others. Any node can, as far as it has applied the log.
	AuditRecords(after uint64, limit int) ([]audit.Entry, audit.Head, <-chan struct{})
	// Sandbox is Read for questions that change the state and restore it. All others wait meanwhile.
	Sandbox(ctx context.Context, o cluster.ReadOptions, fn func(ledger.Sandbox)) (cluster.ReadInfo, error)
	// ReadIndex confirms that this node leads and returns the index that a linearizable read must wait for.
	ReadIndex(ctx context.Context) (uint64, error)
	// Leader returns the leader in this node's view; false if it knows none.
	Leader() (cluster.Member, bool)
	// IsLeader reports whether this node leads.
	IsLeader() bool
	// WaitLeader waits until a leader is known.
	WaitLeader(ctx context.Context) (cluster.Member, error)
	// Members are the members by id.
	Members() []cluster.Member
	// CivilTime is civil time as of now, as far as this node knows it; 0 while the members have not agreed on it.
	CivilTime() quota.CivilTime
	// Zones are the time zones by which this node computes windows of recurring limits.
	Zones() *recurrence.Zones
	// LedgerTime is ledger time as of now, as far as this node knows it.
	LedgerTime() quota.Instant
	// Status is how this node stands.
	Status() cluster.NodeStatus
	// Book returns the access book as this node has applied it: the same one until it changes.
	Book() *access.Book
	// Ready returns nil if this node knows a leader and has caught up with it, otherwise an error with what is missing.
	Ready() error
	Membership
}

// Membership manages the members. Only the leader can, except for Join and Notify. Methods that return a boolean report
// whether they changed anything.
type Membership interface {
	// Health are all nodes by id, as the leader finds them.
	Health(ctx context.Context) ([]cluster.NodeHealth, error)
	// Join dials a gossip address.
	Join(ctx context.Context, address string) (bool, error)
	// AddNode gives a seat to a node that waits for one.
	AddNode(ctx context.Context, id string) (bool, error)
	// Promote gives a vote, Demote takes it, Remove removes.
	Promote(ctx context.Context, id string, force bool) (bool, error)
	Demote(ctx context.Context, id string, force bool) (bool, error)
	Remove(ctx context.Context, id string, force bool) (bool, error)
	// TransferLeader hands the leadership to a voter; with an empty id, to the voter whose log is most up to date.
	TransferLeader(ctx context.Context, id string) (bool, error)
	// AuthorizePeer is an error if a node of that id, which was proved, may not ask what only members may ask.
	AuthorizePeer(id string) error
	// Notify informs this node of its role in the cluster.
	Notify(notice cluster.Notice) error
}
