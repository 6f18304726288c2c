package quota

import (
	"cmp"

	"github.com/quorate/quorate/internal/access"
)

// Command is one change of the ledger. The list of commands is closed: a log entry can ask for nothing else.
//
//sumtype:decl
type Command interface {
	// command is the number of the command in the log. Its facts are in the table of commands.
	command() commandNumber
}

// Claim asks for amounts at one node of one tree.
type Claim struct {
	Tree string
	// Node is the path below the root; empty for the root.
	Node string
	// Amounts are sorted by resource. An amount of zero holds nothing; its node and resource are still checked.
	Amounts Vector
	// Ranges, sorted by resource, let the claim hold more than the Amounts that they name: as much as fits, see
	// [AmountRange]. A request waits, preempts and is denied for its least amounts only.
	Ranges []AmountRange
	// Picks are items, sorted by resource. They count like amounts. A claim has amounts or picks, not both.
	Picks []Pick
	// Standing determines which claims may preempt this one, and which ones it may preempt.
	Standing
}

// Standing ranks a claim against others in a tree where allocations may be preempted.
type Standing struct {
	// Priority is any integer; only a higher one preempts a lower one.
	Priority int64
	// Type is any integer; only claims of the same type preempt each other.
	Type int64
	// Unpreemptable claims are never preempted. They may still be moved between soft nodes.
	Unpreemptable bool
}

// Principal is the user, groups and application that a request is counted for.
type Principal struct {
	// User is empty if the request counts for no user.
	User string
	// Groups are the groups that the user belongs to, in any order.
	Groups []string
	// Application is empty if the request counts for no application; it needs a user.
	Application string
}

// Mode determines how a request is held. The numbers are part of the log format.
type Mode uint8

// The closed list of modes.
const (
	// Hold holds the request until it is released.
	Hold Mode = 0
	// Reserve holds the request until it is confirmed or cancelled, or its time is over.
	Reserve Mode = 1
	// Force holds the request at the named nodes regardless of limits.
	Force Mode = 2
	// Wait queues the request if it does not fit.
	Wait Mode = 3
)

// Allocate asks to hold all claims, or nothing, under an id chosen by the caller. It is idempotent by id.
type Allocate struct {
	ID string
	// Claims name each node at most once. Several unknown nodes may all be counted at the same ancestor.
	Claims []Claim
	// AnyOf, if not empty, has 1 to MaxAlternatives lists of claims in order of preference, and Claims is empty: one list
	// is held, see [Allocate.Lists].
	AnyOf [][]Claim
	// Labels are sorted by key.
	Labels []Label
	// Principal is the holder.
	Principal Principal
	// Mode determines how the request is held.
	Mode Mode
	// ReserveFor is the duration of a reservation, 1 to MaxReserve; 0 in the other modes.
	ReserveFor Span
	// TTL makes the allocation a lease: 1 to MaxTTL. 0 takes the default of its items and trees, which may be none.
	TTL Span
	// WaitFor is how long the request may wait, 1 to MaxWait; 0 means MaxWait. Keep is how long it stays in the queue
	// without a heartbeat from its caller, MinKeep to MaxKeep; 0 means DefaultKeep. Both are 0 in the other modes.
	WaitFor, Keep Span
	// Priority orders the queue; a higher priority comes earlier. Preemption is decided by the priorities of the claims
	// instead.
	Priority int64
	// Data are the lease's user data, sorted by key. A pair with an empty value is dropped.
	Data []Label
	// For declares how long the allocation is held at most, 1 to MaxFor; 0 for no known end. It begins with the grant, or
	// with the confirmation of a reservation. At its end the allocation ends like an expired lease; no renewal, resize or
	// transfer moves that end, and parts that are split off have it too.
	For Span
}

// Pick asks for items of one resource: any items in a state, or items of given names.
type Pick struct {
	Resource string
	// Count is the number of items, at least 1; with Names it is their number.
	Count int
	// State is the state that the items must be in; empty means FreeState. With Names, empty accepts every state.
	State string
	// Names are sorted. If empty, the items that have been in the state longest are taken first.
	Names []string
	// HeldState is the state of the items while they are held; empty means LeasedState.
	HeldState string
}

// Release ends an allocation, a reservation or a waiting request. It is idempotent.
type Release struct {
	ID string
	// Fence, if not 0, must be the fence of the allocation.
	Fence uint64
	// Items, if not empty, limits the release to these items: the allocation keeps the rest, and ends with its last item
	// if it has no amounts. Items that it does not hold any more are ignored.
	Items []ItemName
	// ItemState is the new state of the returned items; empty means the resource's ReleasedState.
	ItemState string
}

// ItemName identifies an item in the ledger.
type ItemName struct {
	Tree, Resource, Name string
}

// Resize changes the amounts of a held allocation, in one step: lower amounts make room for higher ones, which must
// fit. A level whose use does not rise is not checked, so a Resize that only lowers amounts is never denied. The fence
// and the lease stay as they are.
//
// A Resize with WaitFor that does not fit now waits in the queue, and the allocation holds its present amounts until it
// is carried out as a whole. It ends with its time, with the allocation, or with any other change of what that holds.
// At most one waits for each allocation: a later Resize that waits, too, takes its place in the queue. A Resize to the
// present amounts without a generation withdraws it.
type Resize struct {
	ID string
	// Fence, if not 0, must be the fence of the allocation.
	Fence uint64
	// Generation orders the changes of one allocation, see [AllocationInfo.Generation]. With the present generation the
	// command is a repetition, and with an earlier one it is refused. With 0 it is carried out whatever the generation is.
	// With the generation of the Resize that waits it is a repetition, too, and with that of one that has waited in vain
	// it is refused.
	Generation uint64
	// Claims are 1 to Bounds.Claims changes, at most one for each node.
	Claims []ClaimChange
	// WaitFor is how long the Resize may wait, 1 to MaxWait; 0 denies it at once if it does not fit.
	WaitFor Span
}

// ClaimChange sets amounts at one node of an allocation. Resources that it does not name keep their amounts.
type ClaimChange struct {
	// Tree and Node are those of a claim, as it was asked for. Without a claim there, it adds one, which ranks as the
	// first claim of the allocation.
	Tree, Node string
	// Amounts are sorted by resource, at least one. An amount of zero gives up the resource, and a claim without any
	// resource is removed; the allocation keeps one claim at least.
	Amounts Vector
}

// Transfer moves claims of a held allocation to other nodes of their trees, in one step. Levels common to both places
// see no change and are not checked. The fence and the lease stay as they are.
type Transfer struct {
	ID string
	// Fence and Generation are as in Resize.
	Fence, Generation uint64
	// Moves are 1 to Bounds.Claims.
	Moves []ClaimMove
}

// ClaimMove moves a claim, as it was asked for at From, to To. If a claim is at To already, their amounts are joined.
type ClaimMove struct {
	Tree, From, To string
}

// Split moves amounts of a held allocation to new allocations, in one step. Levels common to both places see no change
// and are not checked. The parts have the labels, the principal, the owner, the standing and the TTL of the allocation,
// and fences of their own. The allocation keeps one claim at least.
type Split struct {
	ID string
	// Fence and Generation are as in Resize.
	Fence, Generation uint64
	// Parts are 1 to MaxParts.
	Parts []Part
}

// Part is a new allocation of a Split.
type Part struct {
	ID string
	// Claims are 1 to Bounds.Claims, at most one for each node To.
	Claims []PartClaim
}

// PartClaim takes amounts of the claim at From, as it was asked for, and claims them at To, which may be the same node.
type PartClaim struct {
	Tree, From, To string
	// Amounts are sorted by resource, at least one; each is more than zero.
	Amounts Vector
}

// Renew extends a lease by its TTL, counted from now, and keeps a waiting request in the queue.
type Renew struct {
	ID string
	// Fence, if not 0, must be the fence of the allocation.
	Fence uint64
	// TTL, if not 0, replaces the TTL of the lease.
	TTL Span
	// Data is merged into the lease's data; an empty value removes a key. It is sorted by key.
	Data []Label
	// Items are changes to items that the lease holds.
	Items []ItemUpdate
}

// ItemUpdate changes an item.
type ItemUpdate struct {
	Item ItemName
	// State is the new state; empty keeps the present one.
	State string
	// Data is merged into the item's data; an empty value removes a key. It is sorted by key.
	Data []Label
}

// UpdateItems changes items that are not held, all or none. It is idempotent.
type UpdateItems struct {
	Updates []ItemUpdate
}

// ResetItems takes items in a state from leases that have not been renewed for a while.
type ResetItems struct {
	Tree, Resource, State string
	// Idle is the least time since the last renewal; 0 or less takes all items.
	Idle Span
	// To is the new state of the items.
	To string
}

// Confirm turns a reservation into a held allocation, or into a lease. It is idempotent.
type Confirm struct {
	ID string
	// Fence, if not 0, must be the fence of the reservation.
	Fence uint64
}

// Cancel ends a reservation or a waiting request. It restores what the reservation preempted or moved, if all of it can
// still be restored. It is idempotent.
type Cancel struct {
	ID string
	// Fence, if not 0, must be the fence of the reservation.
	Fence uint64
}

// Expire ends what is due, at most Most records; the next Expire continues. The leader proposes it (docs/adr/0003).
type Expire struct {
	Most int
}

// SetCivilOffset makes civil time the sum of ledger time and an offset. Civil time never decreases: after a smaller
// offset it stands still until the sum has reached it. The leader proposes it, from the clocks of the members; it may
// be repeated.
type SetCivilOffset struct {
	// Offset is 1 to MaxCivilTime.
	Offset Span
}

// ScheduleLimits changes limits of one node in windows of civil time, see [ScheduledLimit]. What the policies say of
// limits must hold at every instant of the future, with all that is scheduled. It is idempotent by id while the id is
// known.
type ScheduleLimits struct {
	ID         string
	Tree, Node string
	// Adjustments and Windows are as in ScheduledLimit, at least one each. The first window may have begun, and begins
	// now if From is 0; every one must end in the future. Of a rule, what has passed is left out.
	Adjustments []LimitAdjustment
	Windows     []CivilWindow
	// Rule is at most MaxRule bytes. RuleBegins and RuleEnds are when it begins and ends; RuleEnds is not before the end
	// of the last window. 0 is for now and for never.
	Rule                 string
	RuleBegins, RuleEnds CivilTime
	// Actor and Reason are kept with the limit.
	Actor, Reason string
}

// CancelScheduledLimit ends a scheduled limit at once, with all its windows. It is refused if a policy would forbid the
// limits that are left.
type CancelScheduledLimit struct {
	ID            string
	Actor, Reason string
}

// ExtendSchedule adds the next windows of a recurring scheduled limit. The leader proposes it. Windows that begin
// before the end of the last known one are left out, so it may be repeated. A window that a policy does not allow is
// skipped. Windows that would be too many are left out, and so are those behind them.
type ExtendSchedule struct {
	ID string
	// Windows are 1 to MaxWindows, in order and disjoint.
	Windows []CivilWindow
}

// ChangeMeta accompanies every change of configuration.
type ChangeMeta struct {
	// Actor and Reason are kept in the history.
	Actor, Reason string
	// RequestID optionally names the change. While the history remembers it, a repeated request gets the first result.
	RequestID string
	// Fingerprint is a digest of the request's content, computed by the receiving node. It tells a repeated request from a
	// different one under the same RequestID.
	Fingerprint string
	// ExpectedRevision, if not nil, must be the present configuration revision.
	ExpectedRevision *uint64
}

// Subtree names a node and everything below it. With an empty node it is the whole tree, with its settings.
type Subtree struct {
	Tree, Node string
}

// ApplyTrees makes each named tree and each named policy exactly as specified, all or nothing. Nodes keep their
// identity and usage by path, and along the moves of the specification.
type ApplyTrees struct {
	Meta  ChangeMeta
	Trees []TreeSpec
	// Policies are sorted by name. If there are any, Trees may be empty.
	Policies []PolicySpec
	// RemovePolicies are names of defined policies, sorted. If there are any, Trees may be empty.
	RemovePolicies []string
	// Access replaces the access section; nil leaves it as it is. With it, Trees may be empty.
	Access *access.Section
	// Prune also removes all trees and defined policies that are not named; then Trees may be empty.
	Prune bool
	// KeepAccess keeps the bindings of the nodes that exist, by their paths, and of the trees that exist what tenants see
	// and whether requests need a user: for texts of other systems, which cannot say it. The specifications then have none
	// of it. It does not go with At.
	KeepAccess bool
	// At, if not nil, limits the change to one subtree, whose node exists; the rest stays as it is. Trees then has one
	// specification, of its tree, and the fields after Trees are empty. Unless the subtree is the whole tree, the
	// specification has an empty root, the nodes of the subtree with its node first, moves within it, the names and units
	// of resources, and nothing else.
	//
	// Meta.ExpectedRevision is then refused only if a later revision may have changed the subtree.
	At *Subtree
}

// MoveNode gives a node another path: it renames the node, or moves it with its subtree under another parent.
type MoveNode struct {
	Meta           ChangeMeta
	Tree, From, To string
}

// RollBack restores the configuration as it was after an earlier revision.
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

// DeleteTree removes a tree that holds nothing.
type DeleteTree struct {
	Meta ChangeMeta
	Tree string
}

// ChangeAccess changes accounts, tokens, refusals, the access section or the mode. Its command says whether it may be
// repeated.
type ChangeAccess struct {
	// Reason is for records; at most MaxReason bytes.
	Reason string
	Change access.Command
}

// RequestLimits asks for other limits of one node, which those who may set them approve. While an equal request of the
// caller is open, that one is the answer.
type RequestLimits struct {
	Tree, Node string
	// Limits are sorted by resource, 1 to MaxRequestLimits; a limit of kind Unset removes it.
	Limits []ResourceLimit
	// Reason is 1 to MaxRequestReason bytes.
	Reason string
	// Open is how long the request may wait for approvals, 1 to MaxRequestOpen; 0 means DefaultRequestOpen.
	Open Span
}

// ApproveRequest approves an open request for limits. The last approval that the tree wants sets the limits, or closes
// the request as stale if they cannot be set any more. It is idempotent.
type ApproveRequest struct {
	Number uint64
	// Digest is that of the request as it was shown, with the limits in force then, see LimitRequestInfo.
	Digest string
}

// RejectRequest closes an open request of another user. It is idempotent.
type RejectRequest struct {
	Number uint64
	// Reason is 1 to MaxRequestReason bytes.
	Reason string
}

// WithdrawRequest closes an open request of the caller. It is idempotent.
type WithdrawRequest struct {
	Number uint64
}

// WantedState is the state that the items must be in. It is empty if named items may be in any state.
func (p Pick) WantedState() string {
	if len(p.Names) > 0 {
		return p.State
	}
	return cmp.Or(p.State, FreeState)
}

// StateWhileHeld is HeldState with its default.
func (p Pick) StateWhileHeld() string { return cmp.Or(p.HeldState, LeasedState) }
