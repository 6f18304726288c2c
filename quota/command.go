package quota

// Command is one change of the ledger: the closed list of everything that a log entry can ask for.
//
//sumtype:decl
type Command interface{ command() }

// Claim asks for amounts at one node of one tree.
type Claim struct {
	Tree string
	// Node is the path below the root; empty for the root.
	Node string
	// Amounts are sorted by resource. An amount of zero holds nothing and is still checked.
	Amounts Vector
	// Standing says who may preempt the claim, and whom it may.
	Standing
}

// Standing is how a claim stands against others in a tree where allocations may be preempted (seed 004).
type Standing struct {
	// Priority is any integer; only a higher one preempts a lower one.
	Priority int64
	// Type is any integer; only claims of the same type preempt each other.
	Type int64
	// Unpreemptable claims are never preempted. They may still be moved between soft nodes.
	Unpreemptable bool
}

// Principal is who holds (seed 003).
type Principal struct {
	// User is empty if no user is to be counted.
	User string
	// Groups are those that the user is in, in any order.
	Groups []string
	// Application is empty if none is to be counted; it needs a user.
	Application string
}

// Mode says how a request is to be held. The numbers are part of the log format.
type Mode uint8

// The closed list of modes.
const (
	// Hold until it is released.
	Hold Mode = 0
	// Reserve until it is confirmed or cancelled, or its time is over.
	Reserve Mode = 1
	// Force holds it at the named nodes whatever the limits say.
	Force Mode = 2
)

// Allocate asks to hold all claims under an id that the caller chose, or nothing. Idempotent by id.
type Allocate struct {
	ID string
	// Claims name each node at most once. Several unknown nodes may all be counted at the same ancestor.
	Claims []Claim
	// Labels are sorted by key.
	Labels []Label
	// Principal is who holds it.
	Principal Principal
	// Mode says how it is to be held.
	Mode Mode
	// ReserveFor is how long a reservation stands, 1 to MaxReserve; 0 in the other modes.
	ReserveFor Span
}

// Release ends an allocation, also a reservation. Idempotent.
type Release struct {
	ID string
}

// Confirm makes a reservation a held allocation for good. Idempotent.
type Confirm struct {
	ID string
}

// Cancel ends a reservation and puts back what it preempted or moved, if all of that is still possible. Idempotent.
type Cancel struct {
	ID string
}

// Expire ends what is due, at most so many; the rest waits for the next one. Proposed by the leader (docs/adr/0003).
type Expire struct {
	Most int
}

// ChangeMeta goes with every change of configuration.
type ChangeMeta struct {
	// Actor and Reason are kept in the history.
	Actor, Reason string
	// RequestID optionally names the change; while the history remembers it, a repeat answers the first result.
	RequestID string
	// Fingerprint is a digest of the request's content, made by whoever receives it: it tells a repeat from another
	// request under the same RequestID.
	Fingerprint string
	// ExpectedRevision, if not nil, must be the present configuration revision.
	ExpectedRevision *uint64
}

// ApplyTrees makes each named tree exactly as specified, all or nothing. Nodes keep identity and usage by path, and along
// the moves of the specification.
type ApplyTrees struct {
	Meta  ChangeMeta
	Trees []TreeSpec
	// Prune also removes all trees that are not named; then Trees may be empty.
	Prune bool
}

// MoveNode gives a node another path: it renames it, or moves it with everything below it under another parent.
type MoveNode struct {
	Meta           ChangeMeta
	Tree, From, To string
}

// SetMaintenance turns a tree's maintenance on or off.
type SetMaintenance struct {
	Meta ChangeMeta
	Tree string
	On   bool
}

// RollBack makes the configuration what it was after an earlier revision.
type RollBack struct {
	Meta     ChangeMeta
	Revision uint64
}

// SetLimits changes limits of one node; a limit of kind Unset removes it.
type SetLimits struct {
	Meta       ChangeMeta
	Tree, Node string
	// Limits are sorted by resource.
	Limits []ResourceLimit
}

// DeleteTree removes a tree in which nothing is held.
type DeleteTree struct {
	Meta ChangeMeta
	Tree string
}

func (Allocate) command()       {}
func (Release) command()        {}
func (Confirm) command()        {}
func (Cancel) command()         {}
func (Expire) command()         {}
func (ApplyTrees) command()     {}
func (SetLimits) command()      {}
func (MoveNode) command()       {}
func (SetMaintenance) command() {}
func (RollBack) command()       {}
func (DeleteTree) command()     {}
