package quota

import (
	"github.com/quorate/quorate/internal/access"
)

// AllocationInfo is a copy of one allocation for readers.
type AllocationInfo struct {
	ID     string
	Claims []ClaimInfo
	Labels []Label
	// Owner is the user of the caller that made the request; empty if it had none.
	Owner string
	// Fence is unique and larger than that of every earlier grant.
	Fence uint64
	// GrantedAt is ledger time; GrantedWall is the wall clock, for people.
	GrantedAt   Instant
	GrantedWall int64
	// Generation is that of the last Resize, Transfer or Split that named one; 0 if none did.
	Generation uint64
	// SplitFrom is the id of the allocation that this one was split from; empty if it was not.
	SplitFrom string
	// Alternative is the number of the list of AnyOf that was granted, from 1; 0 if the request has none or still waits.
	Alternative int
	Principal   Principal
	State       State
	// Forced is true if the allocation was granted regardless of limits.
	Forced bool
	// ReservedUntil is ledger time; 0 if the allocation is not a reservation.
	ReservedUntil Instant
	// TTL is how long a renewal extends a lease, ExpiresAt when the lease ends unless it is renewed. Both are 0 if the
	// allocation is not a lease and has no known end.
	TTL       Span
	ExpiresAt Instant
	// For is the declared time of the allocation, and EndsAt when it ends because of that. Both are 0 if it has no known
	// end, and EndsAt is 0 until it is held. ExpiresAt is never later, and is EndsAt if the allocation is not a lease.
	For    Span
	EndsAt Instant
	// RevokedBy is the id of the allocation in favour of which the lease is revoked, or DrainedBy: it ends at ExpiresAt
	// and cannot be renewed beyond that.
	RevokedBy string
	// Unclaimed is true for a lease that was granted from the queue and not yet collected by its caller.
	Unclaimed bool
	// Data are user data, sorted by key.
	Data []Label
	// Priority orders the queue.
	Priority int64
	// Waiting is the place in the queue; nil unless the request waits.
	Waiting *WaitingInfo
	// Resize is the Resize that waits for the allocation; nil if none does.
	Resize *WaitingResize
	// Preempted are the allocations that its grant ended; PreemptedBy is the id of the allocation that ended it.
	Preempted   []Preempted
	PreemptedBy string
	// MadeRoom sums up what others gave up for it; nil if none did. Of an allocation that was granted
	// from the queue, and of a request that waits, Preempted and MadeRoom also have the leases that were revoked for it.
	MadeRoom *MadeRoom
	// Reason is why it was preempted or revoked, or released by a caller who does not own it; else nil.
	Reason *Reason
	// Ended is true for a tombstone; then EndedAt and EndedWall are set.
	Ended     bool
	EndedAt   Instant
	EndedWall int64
}

// State is the state of an allocation. The numbers are part of the snapshot format.
type State uint8

// The closed list of states.
const (
	Held         State = 0
	Reserved     State = 1
	Released     State = 2
	Expired      State = 3
	WasPreempted State = 4
	Cancelled    State = 5
	// Waiting holds nothing yet.
	Waiting State = 6
	// TimedOut: the deadline passed while the request waited.
	TimedOut State = 7
	// Abandoned: the caller stopped sending heartbeats while the request waited.
	Abandoned State = 8

	// StateCount is the number of states.
	StateCount = 9
)

// WaitingInfo is the place of a request in the queue.
type WaitingInfo struct {
	Since     Instant
	SinceWall int64
	// CertainBy is when the request is granted at the latest if nothing else changes, see Sandbox.Forecast of package
	// ledger; 0 if that is not known, or was not asked.
	CertainBy Instant
	// Until is the deadline, KeepUntil the time at which the request is dropped unless a heartbeat arrives.
	Until, KeepUntil Instant
	// Position is the place among the requests with the same blocker, from 1; Line describes that blocker for people, and
	// BlockedAt is its node. They are set only by a reader, and are those of the first alternative.
	Position  int
	Line      string
	BlockedAt Subtree
	// Alternatives are the lists of AnyOf that the request waits for, in order; nil if it has none. Set only by a reader.
	Alternatives []WaitingPlace
}

// WaitingPlace is the place of one alternative of a request in a queue. Each alternative counts as a request there.
type WaitingPlace struct {
	// Alternative is its number in the request, from 1.
	Alternative int
	// Claims are those of the alternative, Position, Line and BlockedAt as in WaitingInfo.
	Claims    []ClaimInfo
	Position  int
	Line      string
	BlockedAt Subtree
}

// WaitingResize is a Resize in the queue. Its allocation holds its present amounts meanwhile.
type WaitingResize struct {
	// Generation is that of the Resize; 0 if it named none.
	Generation uint64
	// Claims have the new amounts of the resources that the Resize names, with the places of the claims.
	Claims []ClaimInfo
	// Waiting is its place in the queue. KeepUntil is Until: the queue does not need its caller.
	Waiting WaitingInfo
}

// ClaimInfo is one claim of an AllocationInfo.
type ClaimInfo struct {
	Tree, Node string
	Amounts    Vector
	// Ranges are those of the request for this node, with their least amounts, by resource.
	Ranges []RangeInfo
	// Picks are the requested items, Items the held ones, by resource and name.
	Picks []Pick
	Items []HeldItem
	// Placed is the path of the node where the claim is counted.
	Placed string
	Standing
	// Group is the group that the claim counts for; empty if it counts for none.
	Group string
}

// RangeInfo is a range of amounts that a request asked for.
type RangeInfo struct {
	AmountRange

	Least Amount
}

// AllocationFilter selects held allocations; all given conditions must be met.
type AllocationFilter struct {
	// Tree, if not empty, selects allocations with a claim in that tree; Node, if not empty, those with a claim placed at
	// that node or below.
	Tree, Node string
	// Labels must all be present.
	Labels []Label
	// Leases selects leases only.
	Leases bool
	// User, Application and Owner, if not empty, select those of a user, of an application of any user, and those that an
	// identity has made.
	User, Application, Owner string
	// Namespace, if not empty, selects those of a namespace, and IDPrefix is the beginning of their ids there.
	Namespace, IDPrefix string
	// State is Held or Reserved; nil selects both.
	State *State
}

// SelectsAll is true for the filter without a condition.
func (f *AllocationFilter) SelectsAll() bool {
	return f.Tree == "" && f.Node == "" && len(f.Labels) == 0 && !f.Leases && f.User == "" && f.Application == "" &&
		f.Owner == "" && f.Namespace == "" && f.IDPrefix == "" && f.State == nil
}

// AllocationPage is one page of held allocations in the order of their fences.
type AllocationPage struct {
	Allocations []AllocationInfo
	// Next is the fence to continue after; 0 on the last page. A page may be short although more follow, because it is
	// built from a bounded number of records.
	Next uint64
}

// TreeSummary is a tree without its nodes.
type TreeSummary struct {
	Name      string
	Policy    string
	Resources []Resource
	// Nodes counts nodes, including the root; Claims counts held claims in the tree.
	Nodes, Claims int
	// Requests are those of the tree, if they were asked for.
	Requests RequestCounts
}

// RequestCounts are the requests of a tree that hold nothing.
type RequestCounts struct {
	// Waiting has those with a claim in the tree, whatever the alternative.
	Waiting WaitingCount
	// Denied is the number of denials within the last RecentDenials, as far as the events have them.
	Denied int
}

// WaitingCount is how many requests wait, resizes included.
type WaitingCount struct {
	Requests int
	// Since is when the oldest of them arrived; it means nothing if there are none.
	Since Instant
}

// Add counts one more.
func (c *WaitingCount) Add(since Instant) { c.AddAll(WaitingCount{Requests: 1, Since: since}) }

// AddAll counts all of another count.
func (c *WaitingCount) AddAll(others WaitingCount) {
	if c.Requests == 0 || others.Requests > 0 && others.Since < c.Since {
		c.Since = others.Since
	}
	c.Requests += others.Requests
}

// NodeUsage is the configuration and usage of one node.
type NodeUsage struct {
	Path string
	// Policy is the policy in force, own or inherited.
	Policy    string
	Resources []ResourceUsage
	// Applications is the number of applications that run in the subtree; MaxApplications is its limit.
	Applications    int
	MaxApplications Limit
	// Hold is the hold of the node, or of the nearest node above it that is on hold; nil if there is none. Its Used,
	// IsUsed and Revoking are not set.
	Hold *NodeCordonInfo
	// Children is the number of nodes directly below it.
	Children int
	// Waiting are the requests with a claim at the node or below it, whatever the alternative, if the query counts them.
	Waiting WaitingCount
}

// ResourceUsage is the limit and usage of one resource at one node.
type ResourceUsage struct {
	Resource Resource
	// Set is the configured limit; Effective is the limit that applies: the set one, or what stands for an unset one.
	Set, Effective Limit
	// HasDefault is true if a default of a node above stands for an unset limit, and DefaultAt is the path of that node;
	// otherwise the policy says what stands for it.
	HasDefault bool
	DefaultAt  string
	// DefaultHidden is true if the reader may not see the level of that node. Then DefaultAt is empty.
	DefaultHidden bool
	// ChangesAt is when the next window of a scheduled limit of the resource at the node begins or ends; 0 if none does.
	ChangesAt CivilTime
	// Own is the amount held at the node itself, Subtree the amount held at the node and below.
	Own, Subtree Amount
	// Headroom is the amount that a claim at this node could get now: the smallest remainder on the path to the root,
	// never negative. It is meaningful only if Bounded; otherwise no node on the path is limited.
	Headroom Amount
	Bounded  bool
	// Over is the amount by which the subtree exceeds the node's limit, also if that is advisory.
	Over Amount
	// Borrowed is what the subtree holds of others. Lends is the unused part of its own, at most what it may lend; others
	// may have borrowed it already. Both are 0 unless its policy bounds borrowing and that of its parent too.
	Borrowed, Lends Amount
}

// Revision is one remembered change of configuration.
type Revision struct {
	Number        uint64
	Actor, Reason string
	RequestID     string
	Fingerprint   string
	Wall          int64
	// Changes has the first MaxRevisionChanges of ChangeCount changes.
	Changes     []Change
	ChangeCount int
	// Undo reverts the revision, tree by tree; it is meaningful only if Undoable.
	Undo     []TreeUndo
	Undoable bool
	// UndoPolicies reverts the definitions of policies, as Undo reverts trees.
	UndoPolicies []PolicyUndo
	// UndoAccess is the access section before a revision that replaced it; nil if it did not.
	UndoAccess *access.Section
	// Subtree is what the change was limited to; nil if it was not.
	Subtree *Subtree
	// Request is the request that the change carried out; nil if it carried out none.
	Request *ApprovedRequest
}

// Keep drops the changes that do not pass, in a copy of the list, and reports whether any are left. What the revision
// counts are then those that are left.
func (r *Revision) Keep(passes func(*Change) bool) bool {
	var kept []Change
	for i := range r.Changes {
		if passes(&r.Changes[i]) {
			kept = append(kept, r.Changes[i])
		}
	}
	if len(kept) < len(r.Changes) {
		r.Changes, r.ChangeCount = kept, len(kept)
	}
	return len(kept) > 0
}

// ApprovedRequest says who asked for a change of limits, and who approved it, in the order in which they did.
type ApprovedRequest struct {
	Number    uint64
	Asker     string
	Approvers []string
}

// PolicyUndo is the definition of a policy before a revision that changed or removed it.
type PolicyUndo struct {
	PolicySpec
	// Added is true if the revision added the definition; then only the name is set.
	Added bool
}

// TreeUndo is the state of a tree before a revision.
type TreeUndo struct {
	Name string
	// Added is true if the revision added the tree; then nothing else is set. Removed is true if it removed the tree; then
	// Nodes has all of it.
	Added, Removed bool
	TreeSettings
	// Resources are empty if some are itemized and the revision left all unchanged, because they may have many names.
	Resources []Resource
	// Nodes are the nodes that the revision changed or removed, as they were before, under their earlier paths.
	Nodes []NodeSpec
	// AddedPaths are the paths of nodes that the revision added.
	AddedPaths []string
	// Moves lead from the later paths back to the earlier ones, in the order in which to apply them.
	Moves []Move
}

// Counts are the sizes of a ledger.
type Counts struct {
	Trees, Nodes, Held, Ended, Waiting, Items int
	// Leases is the number of held allocations that end unless they are renewed.
	Leases int
	// Sizes are estimates in bytes; MostLiveBytes is the bound of Sizes.Live.
	Sizes         Sizes
	MostLiveBytes int64
}

// QueueFilter selects waiting requests; all given conditions must be met.
type QueueFilter struct {
	Tree, Node, Resource string
	// Owner, if not empty, selects the requests that an identity has made, and Namespace those whose ids are in it.
	Owner, Namespace string
}

// QueuePage is one page of waiting requests in the order of the queue.
type QueuePage struct {
	Requests []QueuedInfo
	// Next is where the next page begins; nil on the last page.
	Next *QueueTurn
}

// QueueTurn is a place in the order of the queue.
type QueueTurn struct {
	Priority int64
	Arrival  uint64
}

// QueuedInfo is a waiting request with the violations that block it.
type QueuedInfo struct {
	Allocation AllocationInfo
	Decision   Decision
}

// PrincipalUsage is the limits and usage of one user or group in a tree.
type PrincipalUsage struct {
	Name string
	// Groups maps, for a user, each running application to the group that it counts for.
	Groups []Label
	// Users are, for a group, those who hold something that is counted for it, sorted.
	Users []string
	// Nodes are those where the principal holds something or is limited, parents before children, siblings by name. Which
	// of the nodes with a limit for all users are among them is said by the function that returns the list.
	Nodes []PrincipalNode
}

// PrincipalNode is the limits and usage of one user or group at one node.
type PrincipalNode struct {
	Path string
	// Used is sorted by resource, without zeros.
	Used Vector
	// Applications are the running ones, sorted.
	Applications []string
	// Limits are sorted by resource; MaxApplications is unset for no limit. Wildcard is true if the limits are those of
	// the wildcard.
	Limits          Vector
	MaxApplications Limit
	Wildcard        bool
	// Members are, at a node where a group holds something, its users by name with what is counted for the group, at most
	// [MaxGroupMembers] of them; MoreMembers counts the others. Only of a group that is asked for by name.
	Members     []GroupMember
	MoreMembers int
}

// MaxGroupMembers bounds the members of a group that are shown at one node.
const MaxGroupMembers = 100

// GroupMember is what one user holds at a node and below it that is counted for a group.
type GroupMember struct {
	User string
	// Used is sorted by resource, without zeros.
	Used Vector
	// Applications are the running ones, sorted.
	Applications []string
}

// HeldClaims counts the held claims of a tree by node. A claim counts at its own node only, not at the ancestors; an
// allocation with several claims counts once for each.
type HeldClaims struct {
	// Nodes are counts by path, parents before children, siblings by name, without zeros.
	Nodes []NamedCount
	// Next is the path to continue after; More is false on the last page.
	Next string
	More bool
}

// HeldAmount is what the subtree of a node holds of a resource, and the limit in force there.
type HeldAmount struct {
	Resource string
	Unit     Unit
	Used     Amount
	Limit    Limit
}

// WaitingClaim is a claim of a waiting request.
type WaitingClaim struct {
	// Node is the path of the nearest existing node.
	Tree, Node string
	// Amounts are the requested amounts, Picks the requested items. They are never changed in place.
	Amounts Vector
	Picks   []Pick
}

// Sizes are the estimated sizes of the parts of a ledger, in bytes. Allocations, waiting requests and items count only
// the part of each record beyond Bounds.FreeBytes, because their numbers have bounds of their own.
type Sizes struct {
	// Allocations are the held ones, Waiting the requests in the queue.
	Allocations, Waiting, Items, Trees int64
	// Ended are the tombstones. Beyond their bounds the oldest tombstones, revisions and events are forgotten.
	Ended, History, Events int64
}

// Live is the size that LiveBytes bounds: the parts that cannot be forgotten.
func (s Sizes) Live() int64 { return s.Allocations + s.Waiting + s.Items + s.Trees }
