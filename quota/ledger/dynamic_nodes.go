package ledger

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// addDynamicNodes creates the missing nodes from the nearest existing one to a path, sharing those of earlier claims.
func (a *Allocation) addDynamicNodes(near *node, path string) *node {
	n := near
	rest := strings.TrimPrefix(path[len(near.path):], "/")
	for name := range strings.SplitSeq(rest, "/") {
		n = a.addDynamicNode(n, quota.ChildPath(n.path, strings.Clone(name)))
	}
	return n
}

func (a *Allocation) addDynamicNode(parent *node, path string) *node {
	for i := range a.claims {
		for n := a.claims[i].at; n != nil && n.isDetached(); n = n.parent {
			if n.tree == parent.tree && n.path == path {
				return n
			}
		}
	}
	n := parent.tree.blank(&quota.NodeSpec{Path: path})
	n.parent, n.dynamic = parent, true
	n.deriveSettings()
	return n
}

// attachDynamicNodes adds the detached nodes of an allocation to their trees.
func (f *forest) attachDynamicNodes(a *Allocation) {
	for _, n := range a.newDynamicNodes() {
		n.assignID(f)
		n.attachTo(n.parent)
		f.nodes++
		f.bytes += n.bytes()
	}
}

// attachDynamicNodes adds the detached nodes of an allocation as a step of the transaction.
func (t *staged) attachDynamicNodes(a *Allocation) {
	sprouts := a.newDynamicNodes()
	before := t.ledger.forest.nodeID
	t.ledger.forest.attachDynamicNodes(a)
	t.onUndo(func() {
		for _, n := range slices.Backward(sprouts) {
			t.ledger.forest.detachNode(n)
			n.id = 0
		}
		t.ledger.forest.nodeID = before
	})
}

func byPath(a, b *node) int { return strings.Compare(a.path, b.path) }

// deriveSettings derives from the configuration of the node and what its parent hands down: policy, defaults and
// ceilings.
func (n *node) deriveSettings() {
	switch {
	case n.spec.Policy != "":
		n.policy = n.tree.policies.find(n.spec.Policy)
	case n.parent != nil:
		n.policy = n.parent.policy
	default:
		n.policy = n.tree.policies.find(quota.DefaultPolicy)
	}
	n.borrows = n.policy.Borrowing
	n.special = n.borrows != policy.BorrowNothing || n.parent != nil && n.parent.special
	n.strict = n.queuesStrictly()
	n.inheritThresholds()
	n.inheritDefaults()
	n.ceilings = make([]quota.Amount, len(n.limits))
	for r := range n.limits {
		n.ceilings[r] = n.ceiling(r)
	}
}

// inheritDefaults lays the node's own defaults over those from above.
func (n *node) inheritDefaults() {
	n.fallbacks = nil
	if n.parent != nil {
		n.fallbacks = n.parent.fallbacks
	}
	if len(n.spec.Defaults) == 0 {
		return
	}
	own := make([]quota.Limit, len(n.limits))
	copy(own, n.fallbacks)
	for _, d := range n.spec.Defaults {
		own[n.tree.resource(d.Resource).index] = d.Limit
	}
	n.fallbacks = own
}

// queuesStrictly is what the node says of its queueing, or else its parent.
func (n *node) queuesStrictly() bool {
	if n.spec.Queueing == quota.InheritQueueing {
		return n.parent != nil && n.parent.strict
	}
	return n.spec.Queueing == quota.Strict
}

// blank is a node without limits, identity and usage that stands nowhere yet.
func (t *tree) blank(spec *quota.NodeSpec) *node {
	n := len(t.resources)
	amounts := make([]quota.Amount, 2*n)
	made := &node{
		address: &address{t.name, spec.Path}, tree: t, spec: spec, limits: make([]quota.Limit, n), own: amounts[:n:n],
		subtree: amounts[n:],
	}
	made.borrow, made.lend = made.spread(nil), made.spread(nil)
	return made
}

// spread lays bounds over the resources of the tree; what is absent is not bounded.
func (n *node) spread(set []quota.ResourceLimit) []quota.Amount {
	most := slices.Repeat([]quota.Amount{quota.MaxAmount}, len(n.tree.resources))
	for _, s := range set {
		most[n.tree.resource(s.Resource).index] = s.Limit.Ceiling()
	}
	return most
}

// attachTo puts a node into its tree.
func (n *node) attachTo(parent *node) {
	n.parent = parent
	i, _ := slices.BinarySearchFunc(parent.children, n, byPath)
	parent.children = slices.Insert(parent.children, i, n)
	n.tree.byPath[n.path] = n
}

// assignID gives a new node its identity.
func (n *node) assignID(f *forest) {
	f.nodeID++
	n.id = f.nodeID
}

// builtIn are the policies that every configuration may name; tests add more.
var builtIn = policy.Presets()

// find returns a policy by its name, or nil. A definition precedes a built-in policy of its name, which a later version
// may have introduced.
func (s *policySet) find(name string) *policy.Policy {
	if p := s.defined[name]; p != nil {
		return p
	}
	return builtIn[name]
}

// choose returns the group that a user with these groups counts for, if the node decides it: the first in the order of
// the configuration, else the shared one.
func (r *rules) choose(groups []string) (string, bool) {
	if r == nil {
		return "", false
	}
	first, name := r.groups[quota.Wildcard], quota.Wildcard
	for _, g := range groups {
		if named := r.groups[g]; named != nil && (first == nil || named.order < first.order) {
			first, name = named, g
		}
	}
	return name, first != nil
}
