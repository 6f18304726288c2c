package quota

// Configuration is the result of a change of configuration.
type Configuration struct {
	// Revision after the change.
	Revision uint64
	// Changes tree by tree: resources, then nodes parents before children, removed nodes last. Empty if everything was so
	// already.
	Changes []Change
	// Over lists what is above a limit in the changed trees, at most MaxOver.
	// A repeat does not list them again.
	Over []Overuse
	// Effects is set in a dry run only.
	Effects *Effects
}

// Effects is what a change of configuration would do to the requests to come.
type Effects struct {
	// Rooms are the nodes whose room for a claim appears or vanishes, at most MaxOver.
	Rooms []RoomChange
	// Admitted are the ids of requests that were denied lately and would be granted, newest first, at most MaxOver.
	Admitted []string
}

// RoomChange is a node whose room for a resource appears or vanishes. An amount means nothing if it is not bounded.
type RoomChange struct {
	Tree, Node, Resource        string
	Before, After               Amount
	BeforeBounded, AfterBounded bool
}

// MaxOver bounds the list of nodes over a limit in a Configuration.
const MaxOver = 100

// Overuse is a node, or a user or group at a node, that holds more than its limit: nothing is evicted, it only cannot grow.
type Overuse struct {
	Tree, Node, Resource string
	Limit, Used          Amount
	// Kind says what is limited, OfResource or OfApplications, Holder whose limit it is.
	Kind   ViolationKind
	Holder Holder
}

// ChangeKind says what happened to a piece of configuration. The numbers are part of the snapshot format.
type ChangeKind uint8

// The closed list of change kinds.
const (
	Added   ChangeKind = 1
	Changed ChangeKind = 2
	Removed ChangeKind = 3
)

// Change is one difference between two configurations.
type Change struct {
	Kind       ChangeKind
	Tree, Node string
	// Field is "tree", "node", "policy", "label NAME", "limit RESOURCE", "resource NAME",
	// "unit RESOURCE", "default RESOURCE", "borrow RESOURCE", "lend RESOURCE", "hard", "applications", "principals", "admins",
	// "forest", "maintenance", "require_reason", "items RESOURCE", "queueing", "lease default", "lease max", "lease grace",
	// "overtake" or, for a moved node, "path".
	Field string
	// Before and After are texts; empty for what was or is not there.
	Before, After string
}
