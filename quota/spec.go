package quota

import "github.com/quorate/quorate/internal/access"

// Label is one pair of free text.
type Label struct {
	Key, Value string
}

// NodeSpec is the configuration of one node. A spec inside a ledger is never changed in place.
type NodeSpec struct {
	// Path joins the names from the root down with slashes; empty for the root.
	Path string
	// Policy is the name of the subtree's policy; empty inherits the parent's, or means DefaultPolicy at a root.
	Policy string
	// Limits has the set limits, sorted by resource; absent ones are unset.
	Limits []ResourceLimit
	// Labels are sorted by key.
	Labels []Label
	// Hard keeps claims from below from borrowing further up. It applies only under policies with soft borrowing.
	Hard bool
	// Principals limit users and groups in the subtree. The order decides which of a user's groups is counted.
	Principals []PrincipalLimit
	// Defaults are the limits that unset limits below the node take, sorted by resource; the nearest ancestor with a
	// default counts.
	Defaults []ResourceLimit
	// Borrow bounds how much the subtree may hold beyond its limit, Lend how much of its unused limit others may hold.
	// Both are sorted by resource and apply only under policies with bounded borrowing.
	Borrow, Lend []ResourceLimit
	// Applications limits the number of applications that may run in the subtree: an amount, or unset for no limit.
	Applications Limit
	// Bindings give roles at the node and everything below it. They are in canonical form, see
	// [access.CanonicalBindings].
	Bindings []access.Binding
	// Queueing determines whether requests that wait for capacity here may be overtaken.
	Queueing Queueing
	// AutoApprove approves requests for limits of the children without people. Since feature level 7.
	AutoApprove AutoApprove
	// Thresholds has the thresholds of the limits of the node and of everything below it. Since feature level 9.
	Thresholds Thresholds
}

// AutoApprove is a rule that approves requests for higher limits of the children of a node at once. The zero value is
// no rule.
type AutoApprove struct {
	// AtMost is by how many percent of its present value a limit may be raised, 1 to MaxAutoApprovePercent.
	AtMost int
	// Every is how long a child must wait after one request that the rule approved, MinAutoApproveEvery to
	// MaxAutoApproveEvery.
	Every Span
	// WithinHeadroom is true if afterwards the limits of all children may not add up to more than the limit of the node,
	// whatever the policy allows. A node without a limit has no headroom.
	WithinHeadroom bool
}

// Queueing determines whether requests may overtake each other. The numbers are part of the log format.
type Queueing uint8

// The closed list of values.
const (
	// InheritQueueing takes the parent's value; BestEffort at a root, Strict for items.
	InheritQueueing Queueing = 0
	// Strict: no request is overtaken.
	Strict Queueing = 1
	// BestEffort: later requests that fit may overtake the first one, until it has been first for TreeSettings.Overtake.
	BestEffort Queueing = 2
)

// PrincipalLimit limits users and groups in the subtree of a node, each one separately.
type PrincipalLimit struct {
	// Users and Groups are names. The user "*" stands for every user that the node does not name, each limited separately;
	// the group "*" is one limit shared by all users without a matching group. A wildcard ends its list.
	Users, Groups []string
	// Limits are sorted by resource; absent resources are unlimited.
	Limits Vector
	// Applications limits the number of applications that may run: an amount, or unset for no limit.
	Applications Limit
	// Description is free text.
	Description string
}

// Wildcard is the user or group that stands for all names not listed.
const Wildcard = "*"

// TreeSettings is the configuration of a tree as a whole.
type TreeSettings struct {
	// Forest is the name of the tree's forest; empty for none. All trees of a request must be in the same forest.
	Forest string
	// RequireReason refuses changes of the tree without a reason.
	RequireReason bool
	// Leases bounds the leases with a claim in the tree.
	Leases LeaseSettings
	// Overtake is how long later requests may overtake the first one; 0 means DefaultOvertake.
	Overtake Span
	// TenantsSee is what callers learn of the levels above the nodes that they may see. Since feature level 7.
	TenantsSee TenantsSee
	// Approvals is how many different users must approve a request for limits; 0 means 1.
	Approvals int
	// RequirePrincipal refuses requests without a user where users or groups are limited: at a claimed node or above it,
	// whatever the mode of the request is. Changes of an allocation without a user may not put more
	// there. Since feature level 8.
	RequirePrincipal bool
}

// ApprovalsNeeded is Approvals with its default.
func (s TreeSettings) ApprovalsNeeded() int { return max(s.Approvals, 1) }

// TenantsSee is what a caller of a guarded ledger, who may read usage at a node, learns of the levels above it, where
// it may not. The numbers are part of the formats of the log and of snapshots.
type TenantsSee uint8

// The closed list.
const (
	// SeeTotals shows names, limits and totals. It is the default: requests are counted there too.
	SeeTotals TenantsSee = 0
	// SeeNames shows names, and of a limit that a request exceeds only by how much.
	SeeNames TenantsSee = 1
	// SeeNothing does not say either at which level it is.
	SeeNothing TenantsSee = 2
)

// tenantsSee are the words for it.
var tenantsSee = [...]string{SeeTotals: "totals", SeeNames: "names", SeeNothing: "nothing"}

// IsKnown is true for what is in the list.
func (s TenantsSee) IsKnown() bool { return int(s) < len(tenantsSee) }

// String is the word for it.
func (s TenantsSee) String() string {
	if !s.IsKnown() {
		return "unknown"
	}
	return tenantsSee[s]
}

// LeaseSettings bounds leases; 0 means the default for each field.
type LeaseSettings struct {
	// Default is the TTL of requests that name none; 0 makes such allocations permanent.
	Default Span
	// Max is the longest TTL that a request may name; 0 means MaxTTL.
	Max Span
	// Grace is the time between announcing the revocation of a lease and ending it; with 0 it ends at once.
	Grace Span
}

// TreeSpec is the configuration of one tree.
type TreeSpec struct {
	Name string
	TreeSettings
	// Resources are sorted by name.
	Resources []Resource
	// Nodes[0] is the root; parents come before their children.
	Nodes []NodeSpec
	// Moves are renamed or moved nodes, in the order in which to apply them. They are not part of the configuration: a
	// move is skipped if its old path does not exist or its new path does.
	Moves []Move
}

// Move gives a node and its subtree another path.
type Move struct {
	From, To string
}

// PolicySpec defines a policy: a built-in one, its base, with other values for some switches. Values are words, which
// package policy lists; an empty one keeps the value of the base.
type PolicySpec struct {
	Name, Base   string
	Unset        string
	Sum          string
	ChildLimit   string
	UnknownNodes string
	ClaimNodes   string
	Borrowing    string
	Preemption   string
}

// DefaultPolicy is the policy of a root that names none.
const DefaultPolicy = "open"
