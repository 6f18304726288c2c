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
}

// TreeSpec is the configuration of one tree.
type TreeSpec struct {
	Name string
	// Resources are sorted by name.
	Resources []Resource
	// Nodes[0] is the root; parents come before their children.
	Nodes []NodeSpec
}

// DefaultPolicy is the policy of a root that names none.
const DefaultPolicy = "open"
