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
	// Ended is true for a tombstone; then EndedAt and EndedWall are set.
	Ended     bool
	EndedAt   Instant
	EndedWall int64
}

// ClaimInfo is one claim of an AllocationInfo.
type ClaimInfo struct {
	Tree, Node string
	Amounts    Vector
	// Placed is the path of the node where the claim is counted.
	Placed string
}

// AllocationFilter selects held allocations; all given conditions must hold.
type AllocationFilter struct {
	// Tree, if not empty, wants a claim in that tree; Node, if not empty, wants it placed at that node or below.
	Tree, Node string
	// Labels must all be there.
	Labels []Label
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
}

// Counts are the sizes of a ledger.
type Counts struct {
	Trees, Nodes, Held, Ended int
}
