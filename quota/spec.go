package quota

// Label is one pair of free text.
type Label struct {
	Key, Value string
}

// NodeSpec is the configuration of one node. A spec inside a ledger is never changed in place.
type NodeSpec struct {
	// Path joins the names from the root down with slashes; empty for the root.
	Path string
	// Policy is the name of the subtree's policy; empty inherits the parent's, and means "open" at a root.
	Policy string
	// Limits holds the set limits, sorted by resource; what is absent is unset.
	Limits []ResourceLimit
	// Labels are sorted by key.
	Labels []Label
	// Hard nodes let no claim from below borrow further up. Only policies with soft nodes know it.
	Hard bool
	// Principals limit users and groups in the subtree, in the order in which groups are looked for.
	Principals []PrincipalLimit
	// Defaults say what an unset limit means below the node, sorted by resource; the nearest ancestor that says it counts.
	Defaults []ResourceLimit
	// Borrow bounds how much the subtree may hold beyond its limit, Lend how much of its unused limit others may hold; both
	// sorted by resource. Only policies with bounded borrowing know them.
	Borrow, Lend []ResourceLimit
	// Applications is the most applications that may run in the subtree; 0 is no limit.
	Applications Amount
	// Admins are the actors who may set limits below, sorted. If a tree names none at all, anybody may.
	Admins []string
	// Queueing says whether requests that wait for room here may be overtaken.
	Queueing Queueing
}

// Queueing says whether requests may overtake each other. The numbers are part of the log format.
type Queueing uint8

// The closed list.
const (
	// InheritQueueing is the parent's; of a root, BestEffort; of items, Strict.
	InheritQueueing Queueing = 0
	// Strict: nobody overtakes.
	Strict Queueing = 1
	// BestEffort: later requests that fit may pass, until the first in the line has been there for TreeSettings.Overtake.
	BestEffort Queueing = 2
)

// PrincipalLimit limits users and groups in the subtree of a node, each of them for itself.
type PrincipalLimit struct {
	// Users and Groups are names. The user "*" is every user that the node does not name, each for itself; the group "*"
	// is one common pot for everybody whose group is not found otherwise. A wildcard ends its list.
	Users, Groups []string
	// Limits are sorted by resource; what is absent is not limited.
	Limits Vector
	// Applications is the most applications that may run; 0 is no limit.
	Applications Amount
	// Description is free text.
	Description string
}

// Wildcard is the user or group that stands for all that are not named.
const Wildcard = "*"

// TreeSettings is what is configured of a tree as a whole.
type TreeSettings struct {
	// Forest is the forest that the tree is in; empty if in none. A request may not draw from trees of two forests.
	Forest string
	// RequireReason refuses changes of the tree without a reason.
	RequireReason bool
	// Maintenance holds every allocation at its named node, whatever the limits say.
	Maintenance bool
	// Leases say what leases with a claim in the tree may be.
	Leases LeaseSettings
	// Overtake is how long the first in a line may be overtaken; 0 means DefaultOvertake.
	Overtake Span
}

// LeaseSettings say what leases may be; 0 means the default for each.
type LeaseSettings struct {
	// Default is the TTL of requests that name none; 0 makes no leases of them.
	Default Span
	// Max is the longest TTL that a request may name; 0 means MaxTTL.
	Max Span
	// Grace is how long the holder of a lease is told before it is preempted; 0 is not at all.
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
	// Moves are nodes that have got other paths since, in the order in which they are to be done. They are not part of the
	// configuration: a move whose old path does not exist, or whose new one does, is passed over.
	Moves []Move
}

// Move is a node that has got another path, with everything below it.
type Move struct {
	From, To string
}

// DefaultPolicy is the policy of a root that names none.
const DefaultPolicy = "open"
