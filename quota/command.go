package quota

import "cmp"

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
	// Picks are items, sorted by resource. They count like amounts. A claim has amounts or picks.
	Picks []Pick
	// Standing says who may preempt the claim, and whom it may.
	Standing
}

// Standing is how a claim stands against others in a tree where allocations may be preempted.
type Standing struct {
	// Priority is any integer; only a higher one preempts a lower one.
	Priority int64
	// Type is any integer; only claims of the same type preempt each other.
	Type int64
	// Unpreemptable claims are never preempted. They may still be moved between soft nodes.
	Unpreemptable bool
}

// Principal is who holds.
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
	// Wait in the queue if it does not fit.
	Wait Mode = 3
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
	// TTL makes it a lease: 1 to MaxTTL, 0 for the default of its items and trees, which may be none.
	TTL Span
	// WaitFor is how long it may wait, 1 to MaxWait, and Keep how long it stays in the queue without a sign of its caller,
	// MinKeep to MaxKeep; 0 means MaxWait and DefaultKeep. Both are 0 in the other modes.
	WaitFor, Keep Span
	// Priority orders the queue: the higher, the earlier. Who may preempt whom is said by the claims.
	Priority int64
	// Data are the lease's user data, sorted by key. An empty value is none.
	Data []Label
}

// Pick asks for items of one resource: any that are in a state, or those of certain names.
type Pick struct {
	Resource string
	// Count is how many, at least 1; with Names it is their number.
	Count int
	// State is what they must be in; empty means FreeState. With Names any state will do if it is empty.
	State string
	// Names are sorted; empty takes any, the one first that has been in the state for longest.
	Names []string
	// HeldState is what they are in while they are held; empty means LeasedState.
	HeldState string
}

// Release ends an allocation, also a reservation or a waiting request. Idempotent.
type Release struct {
	ID string
	// Items, if any, are all that is given back: the allocation goes on with the rest, and ends with its last item if it
	// has no amounts. Items that it does not hold any more are passed over.
	Items []ItemName
	// ItemState is what items get that are given back; empty means what their resource says.
	ItemState string
}

// ItemName names an item.
type ItemName struct {
	Tree, Resource, Name string
}

// Renew extends a lease from now on by its TTL, and keeps a waiting request in the queue.
type Renew struct {
	ID string
	// Fence, if not 0, must be that of the allocation.
	Fence uint64
	// TTL, if not 0, is what counts from now on.
	TTL Span
	// Data is laid over the lease's; an empty value removes a key. Sorted by key.
	Data []Label
	// Items are changes of items that it holds.
	Items []ItemUpdate
}

// ItemUpdate changes an item.
type ItemUpdate struct {
	Item ItemName
	// State is the new one; empty leaves it.
	State string
	// Data is laid over the item's; an empty value removes a key. Sorted by key.
	Data []Label
}

// UpdateItems changes items that nobody holds, all or none. Idempotent.
type UpdateItems struct {
	Updates []ItemUpdate
}

// ResetItems takes items in a state from holders that have not renewed for a while.
type ResetItems struct {
	Tree, Resource, State string
	// Idle is for how long; 0 or less takes all.
	Idle Span
	// To is the state that they get.
	To string
}

// Confirm makes a reservation a held allocation for good, or a lease. Idempotent.
type Confirm struct {
	ID string
}

// Cancel ends a reservation or a waiting request, and puts back what it preempted or moved, if all of that is still possible. Idempotent.
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
func (Renew) command()          {}
func (UpdateItems) command()    {}
func (ResetItems) command()     {}
func (Confirm) command()        {}
func (Cancel) command()         {}
func (Expire) command()         {}
func (ApplyTrees) command()     {}
func (SetLimits) command()      {}
func (MoveNode) command()       {}
func (SetMaintenance) command() {}
func (RollBack) command()       {}
func (DeleteTree) command()     {}

// WantedState is what the items must be in; those with names may be in any if it is empty.
func (p Pick) WantedState() string {
	if len(p.Names) > 0 {
		return p.State
	}
	return cmp.Or(p.State, FreeState)
}

// StateWhileHeld is what the items are in while they are held.
func (p Pick) StateWhileHeld() string { return cmp.Or(p.HeldState, LeasedState) }
