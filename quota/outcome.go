package quota

// Configuration is the result of a change of configuration.
type Configuration struct {
	// Revision after the change.
	Revision uint64
	// Changes are listed tree by tree: resources, then nodes, parents before children, removed nodes last. They are empty
	// if the configuration was as specified already.
	Changes []Change
	// Over lists usage above a limit in the changed trees, at most MaxOver entries. The answer to a repeated request does
	// not list it again.
	Over []Overuse
	// Effects is set in a dry run only.
	Effects *Effects
}

// Effects is how a change of configuration would affect later requests.
type Effects struct {
	// Rooms are the nodes whose headroom for a resource becomes zero or stops being zero, at most MaxOver.
	Rooms []RoomChange
	// Admitted are the ids of recently denied requests that would be granted, newest first, at most MaxOver.
	Admitted []string
	// Queue is what would become of waiting requests, and of those that would make room for them. Only a what-if sets it.
	Queue *QueueEffects
	// Unjudged is true for a what-if that did not evaluate waiting requests, because the ledger holds too much to be
	// copied. Then Queue is nil, and Admitted lacks requests that may borrow softly or want items.
	Unjudged bool
}

// QueueEffects is what a change of configuration would do at once to waiting requests, and to allocations that make
// room for them.
type QueueEffects struct {
	// Granted are waiting requests that would be granted, and the allocations whose waiting resizes would be, in this
	// order.
	Granted Affected
	// Preempted are allocations that would end, each in favour of the request By.
	Preempted Affected
	// Revoked are leases with a grace span whose revocation would be announced, in favour of the request By.
	Revoked Affected
	// Cancelled are waiting requests that the configuration would refuse, so they would leave the queue, and allocations
	// whose waiting resizes would.
	Cancelled Affected
	// SetAside are waiting requests, and allocations whose waiting resizes, would be larger than a whole limit. They would
	// step aside until they can fit again, see ADR 0121.
	SetAside Affected
}

// Affected are the first MaxOver allocations or requests to which something would happen, and the number of all.
type Affected struct {
	List  []AffectedRequest
	Total int
}

// AffectedRequest is an allocation or request to which something would happen, By in favour of another one.
type AffectedRequest struct{ ID, By string }

// RoomChange is the headroom of a node for a resource before and after a change. An amount is meaningful only if it is
// bounded.
type RoomChange struct {
	Tree, Node, Resource        string
	Before, After               Amount
	BeforeBounded, AfterBounded bool
}

// MaxOver bounds each list of a Configuration and its Effects.
const MaxOver = 100

// Overuse is a node, or a user or group at a node, that holds more than its limit. Nothing is evicted; the holder
// cannot grow, unless the limit is advisory.
type Overuse struct {
	Tree, Node, Resource string
	Limit, Used          Amount
	// Kind is the kind of limit, OfResource or OfApplications; Holder is its owner.
	Kind   ViolationKind
	Holder Holder
	// IsAdvisory is true if the limit denies nothing.
	IsAdvisory bool
}

// ChangeKind is the kind of a change. The numbers are part of the snapshot format.
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
	// Field is "tree", "node", "policy", "label NAME", "limit RESOURCE", "resource NAME", "unit RESOURCE", "default
	// RESOURCE", "borrow RESOURCE", "lend RESOURCE", "hard", "applications", "principals", "forest",
	// "require_reason", "items RESOURCE", "queueing", "auto_approve", "lease default", "lease max", "lease
	// grace", "overtake", "approvals", "tenants_see", "hold" or, for a moved node, "path". Without a tree it is "policy
	// NAME", or with the definition of the policy changed "policy NAME base" or "policy NAME SWITCH". In audit records it
	// may also be "owner of ID", "request NUMBER" or "webhook NAME".
	Field string
	// Before and After are texts; empty if the field is absent.
	Before, After string
}

// IsWithin is true if the change is at a node of a tree or below it, before or after.
func (c *Change) IsWithin(tree, node string) bool {
	return c.Tree == tree && (IsWithin(c.Node, node) || c.Field == "path" && IsWithin(c.Before, node))
}
