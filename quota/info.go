package quota

// AllocationInfo is a reader's own copy of one allocation.
type AllocationInfo struct {
	ID     string
	Claims []ClaimInfo
	Labels []Label
	// Fence is unique and larger than that of every earlier grant.
	Fence uint64
	// GrantedAt is ledger time; GrantedWall is for people.
	GrantedAt   Instant
	GrantedWall int64
	Principal   Principal
	// State is where it is in its life.
	State State
	// Forced is true if it was held whatever the limits said.
	Forced bool
	// ReservedUntil is ledger time; 0 if it is not a reservation.
	ReservedUntil Instant
	// TTL is how long a renewal extends a lease, ExpiresAt when it ends unless it is renewed; 0 if it is no lease.
	TTL       Span
	ExpiresAt Instant
	// RevokedBy is the id of the allocation that a lease has to give way to: it ends at ExpiresAt whatever its holder does.
	RevokedBy string
	// Unclaimed is true for a lease that was granted from the queue and whose caller has not come for it.
	Unclaimed bool
	// Data are user data, sorted by key.
	Data []Label
	// Priority in the queue.
	Priority int64
	// Waiting is its place in the queue; nil unless it waits.
	Waiting *WaitingInfo
	// Preempted are those that its grant ended; PreemptedBy is the id of the one that ended it.
	Preempted   []Preempted
	PreemptedBy string
	// Ended is true for a tombstone; then EndedAt and EndedWall are set.
	Ended     bool
	EndedAt   Instant
	EndedWall int64
}

// State is where an allocation is in its life. The numbers are part of the snapshot format.
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
	// TimedOut had its deadline come while it waited.
	TimedOut State = 7
	// Abandoned had no sign of its caller while it waited.
	Abandoned State = 8
)

// WaitingInfo is the place of a request in the queue.
type WaitingInfo struct {
	Since     Instant
	SinceWall int64
	// Until is when it gives up, KeepUntil when it is dropped without a sign of its caller.
	Until, KeepUntil Instant
	// Position is its place in its line, from 1; Line says for people where that is. Both are known only to a View.
	Position int
	Line     string
}

// ClaimInfo is one claim of an AllocationInfo.
type ClaimInfo struct {
	Tree, Node string
	Amounts    Vector
	// Picks are the items asked for, Items those that it holds, by resource and name.
	Picks []Pick
	Items []HeldItem
	// Placed is the path of the node where the claim is counted.
	Placed string
	Standing
	// Group is the one that is counted for the claim; empty if none is.
	Group string
}

// HeldItem is an item in an allocation.
type HeldItem struct {
	Resource, Name, State string
	// Data are its user data, sorted by key.
	Data []Label
	// UpdatedWall is for people.
	UpdatedWall int64
}

// AllocationFilter selects held allocations; all given conditions must hold.
type AllocationFilter struct {
	// Tree, if not empty, wants a claim in that tree; Node, if not empty, wants it placed at that node or below.
	Tree, Node string
	// Labels must all be there.
	Labels []Label
	// Leases wants only leases.
	Leases bool
}

// AllocationPage is one page of held allocations in the order of their fences.
type AllocationPage struct {
	Allocations []AllocationInfo
	// Next is the fence to continue after; 0 on the last page. A page may be short although more follow, because a
	// page looks at a bounded number of records.
	Next uint64
}

// TreeSummary is a tree without its nodes.
type TreeSummary struct {
	Name      string
	Policy    string
	Resources []Resource
	// Nodes counts nodes, the root included; Claims counts held claims in the tree.
	Nodes, Claims int
}

// NodeUsage is the standing of one node.
type NodeUsage struct {
	Path string
	// Policy is the one in force, own or inherited.
	Policy    string
	Resources []ResourceUsage
	// Applications are how many run in the subtree; MaxApplications is the most that may, 0 for no limit.
	Applications    int
	MaxApplications Amount
}

// ResourceUsage is the standing of one resource at one node.
type ResourceUsage struct {
	Resource Resource
	// Set is the limit as configured; Effective is what admission applies.
	Set, Effective Limit
	// Own is held at the node itself, Subtree at the node and below.
	Own, Subtree Amount
	// Headroom is what a claim at this node could get now: the least room on the path to the root, never negative.
	// It means nothing if Bounded is false: then no node on the path is limited.
	Headroom Amount
	Bounded  bool
	// Over is how much the subtree holds above the node's limit.
	Over Amount
}

// UsagePage is one page of nodes, parents before children, siblings by name.
type UsagePage struct {
	Nodes []NodeUsage
	// Next is the path to continue after; More is false on the last page.
	Next string
	More bool
}

// Revision is one remembered change of configuration.
type Revision struct {
	Number        uint64
	Actor, Reason string
	RequestID     string
	Fingerprint   string
	Wall          int64
	// Changes holds the first MaxRevisionChanges of ChangeCount changes.
	Changes     []Change
	ChangeCount int
	// Undo is how to take it back, tree by tree; meaningful only if Undoable.
	Undo     []TreeUndo
	Undoable bool
}

// TreeUndo is how a tree was before a revision.
type TreeUndo struct {
	Name string
	// Added by the revision; then nothing else is set. Removed by it; then Nodes holds all of it.
	Added, Removed bool
	TreeSettings
	// Resources are empty if some are itemized and the revision has left all as they were: their names may be many.
	Resources []Resource
	// Nodes that the revision changed or removed, as they were before, by the paths of before.
	Nodes []NodeSpec
	// AddedPaths are those of nodes that the revision added.
	AddedPaths []string
	// Moves lead from the paths of after to those of before, in the order in which they are to be done.
	Moves []Move
}

// Counts are the sizes of a ledger.
type Counts struct {
	Trees, Nodes, Held, Ended, Waiting, Items int
	// Leases are those of the held allocations that end unless they are renewed.
	Leases int
	// Sizes are what they take in bytes; MostLiveBytes is the bound of Sizes.Live.
	Sizes         Sizes
	MostLiveBytes int64
}

// ItemInfo is a reader's own copy of one item.
type ItemInfo struct {
	ItemName
	State string
	// Owner is the user of the allocation that holds it, Allocation its id and Fence its fence; empty if nobody does.
	Owner, Allocation string
	Fence             uint64
	Data              []Label
	// Updated is when state, owner or data last changed, or the holder last renewed.
	Updated     Instant
	UpdatedWall int64
	// Expires is when it goes unless somebody holds it; 0 for never.
	Expires     Instant
	ExpiresWall int64
	// Leaving is true if it is not configured any more.
	Leaving bool
}

// ItemFilter selects items of one tree; all given conditions must hold.
type ItemFilter struct {
	Tree, Resource, State, Name, Owner string
}

// ItemPage is one page of items, by resource and then by name.
type ItemPage struct {
	Items []ItemInfo
	// Next is the item to continue after; nil on the last page.
	Next *ItemName
}

// ItemCount is the standing of one itemized resource.
type ItemCount struct {
	Tree, Resource string
	// States counts items by state, Owners by the user who holds them, where nobody is the empty name. Both are sorted.
	States, Owners []NamedCount
	// Waiting counts the requests that wait for items of the resource.
	Waiting int
}

// NamedCount is how many there are of something.
type NamedCount struct {
	Name  string
	Count int
}

// QueueFilter selects waiting requests; all given conditions must hold.
type QueueFilter struct {
	Tree, Node, Resource string
}

// QueuePage is one page of waiting requests in the order of the queue.
type QueuePage struct {
	Requests []QueuedInfo
	// Next continues; nil on the last page.
	Next *QueueTurn
}

// QueueTurn is a place in the order of the queue.
type QueueTurn struct {
	Priority int64
	Arrival  uint64
}

// QueuedInfo is a waiting request with what stands in its way.
type QueuedInfo struct {
	Allocation AllocationInfo
	Decision   Decision
}

// EventKind says what happened. The numbers are part of the snapshot format.
type EventKind uint8

// The closed list of kinds.
const (
	// EventDenied: a request was denied.
	EventDenied EventKind = 1
	// EventPreempted: an allocation was ended to make room for another.
	EventPreempted EventKind = 2
	// EventExpired: a reservation was not confirmed in time, or a lease not renewed.
	EventExpired EventKind = 3
	// EventRestored: a preempted allocation holds again, because the reservation that preempted it was not confirmed.
	EventRestored EventKind = 4
	// EventRevoked: a lease was told that it has to give way.
	EventRevoked EventKind = 5
	// EventDropped: a request left the queue, because its deadline came or its caller did not come back.
	EventDropped EventKind = 6
)

// Event is something that happened to one allocation. It is never changed after it was made.
type Event struct {
	// Number counts up by one.
	Number uint64
	Kind   EventKind
	// ID is the allocation's or request's, By that of the allocation that caused it.
	ID, By string
	Stamp  Stamp
	// Request and Decision are set for a denial.
	Request  *Allocate
	Decision *Decision
}

// PrincipalUsage is the standing of one user or group in a tree.
type PrincipalUsage struct {
	Name string
	// Groups has, for a user, the group that is counted for each running application, by application.
	Groups []Label
	// Nodes where it holds something or is limited, parents before children, siblings by name.
	Nodes []PrincipalNode
}

// PrincipalNode is the standing of one user or group at one node.
type PrincipalNode struct {
	Path string
	// Used is sorted by resource, without zeros.
	Used Vector
	// Applications are those that run, sorted.
	Applications []string
	// Limits are sorted by resource; MaxApplications is 0 for no limit. Wildcard is true if they are those of the wildcard.
	Limits          Vector
	MaxApplications Amount
	Wildcard        bool
}

// HeldClaims says where in a tree claims are held. Each claim counts once at its node, not again above it; an allocation that
// has several there counts for each.
type HeldClaims struct {
	// Nodes are counts by path, in the order of a walk, without zeros.
	Nodes []NamedCount
	// Next is the path to continue after; More is false on the last page.
	Next string
	More bool
}

// WaitingClaim is a claim of a request that waits.
type WaitingClaim struct {
	// Node is the path of the nearest node that exists now.
	Tree, Node string
	// Picks are the items asked for. They are never changed in place.
	Picks []Pick
}

// EventPage is one page of events in the order of their numbers.
type EventPage struct {
	Events []Event
	// Next is the number to continue after; 0 on the last page.
	Next uint64
}

// Sizes are what the parts of a ledger take, in bytes, as the ledger estimates it. Of allocations, waiting requests and items
// they count what each has beyond Bounds.FreeBytes: how many there are has bounds of its own.
type Sizes struct {
	// Allocations are those that are held, Waiting the requests in the queue.
	Allocations, Waiting, Items, Trees int64
	// Ended are the tombstones. They, the history and the events have bounds beyond which the oldest is forgotten.
	Ended, History, Events int64
}

// Live is what is bounded together, because nothing of it can be forgotten.
func (s Sizes) Live() int64 { return s.Allocations + s.Waiting + s.Items + s.Trees }
