package admit

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
	"github.com/quorate/quorate/quota/policy"
)

// addDynamicNodes shares the nodes that an earlier claim has added.
func addDynamicNodes(a *state.Allocation, near *state.Node, path string) *state.Node {
	n := near
	rest := strings.TrimPrefix(path[len(near.Path):], "/")
	for name := range strings.SplitSeq(rest, "/") {
		n = addDynamicNode(a, n, quota.ChildPath(n.Path, strings.Clone(name)))
	}
	return n
}

func addDynamicNode(a *state.Allocation, parent *state.Node, path string) *state.Node {
	for i := range a.Claims {
		for n := a.Claims[i].At; n != nil && n.IsDetached(); n = n.Parent {
			if n.Tree == parent.Tree && n.Path == path {
				return n
			}
		}
	}
	n := NewBlankNode(parent.Tree, &quota.NodeSpec{Path: path})
	n.Parent, n.Dynamic = parent, true
	DeriveSettings(n)
	return n
}

// attachDynamicNodes adds the detached nodes of an allocation to their trees.
func attachDynamicNodes(f *state.Forest, a *state.Allocation) {
	for _, n := range a.NewDynamicNodes() {
		n.AssignID(f)
		n.AttachTo(n.Parent)
		f.Nodes++
		f.Bytes += n.Bytes()
	}
}

func (t *staged) attachDynamicNodes(a *state.Allocation) {
	sprouts := a.NewDynamicNodes()
	before := t.state.Forest.NodeID
	attachDynamicNodes(&t.state.Forest, a)
	t.OnUndo(func() {
		for _, n := range slices.Backward(sprouts) {
			t.state.Forest.DetachNode(n)
			n.ID = 0
		}
		t.state.Forest.NodeID = before
	})
}

// DeriveSettings derives from the configuration of the node and what its parent hands down: policy, defaults and
// ceilings.
func DeriveSettings(n *state.Node) {
	switch {
	case n.Spec.Policy != "":
		n.Policy = n.Tree.Policies.Find(n.Spec.Policy)
	case n.Parent != nil:
		n.Policy = n.Parent.Policy
	default:
		n.Policy = n.Tree.Policies.Find(quota.DefaultPolicy)
	}
	n.Borrows = n.Policy.Borrowing
	n.Special = n.Borrows != policy.BorrowNothing || n.Parent != nil && n.Parent.Special
	n.Strict = queuesStrictly(n)
	n.InheritThresholds()
	inheritDefaults(n)
	n.Ceilings = make([]quota.Amount, len(n.Limits))
	for r := range n.Limits {
		n.Ceilings[r] = n.Ceiling(r)
	}
}

// inheritDefaults lays the node's own defaults over those from above.
func inheritDefaults(n *state.Node) {
	n.Fallbacks = nil
	if n.Parent != nil {
		n.Fallbacks = n.Parent.Fallbacks
	}
	if len(n.Spec.Defaults) == 0 {
		return
	}
	own := make([]quota.Limit, len(n.Limits))
	copy(own, n.Fallbacks)
	for _, d := range n.Spec.Defaults {
		own[n.Tree.Resource(d.Resource).Index] = d.Limit
	}
	n.Fallbacks = own
}

func queuesStrictly(n *state.Node) bool {
	if n.Spec.Queueing == quota.InheritQueueing {
		return n.Parent != nil && n.Parent.Strict
	}
	return n.Spec.Queueing == quota.Strict
}

// NewBlankNode is a node without limits, identity and usage that stands nowhere yet.
func NewBlankNode(t *state.Tree, spec *quota.NodeSpec) *state.Node {
	n := len(t.Resources)
	amounts := make([]quota.Amount, 2*n)
	made := &state.Node{
		Address: &state.Address{TreeName: t.Name, Path: spec.Path}, Tree: t, Spec: spec,
		Limits: make([]quota.Limit, n), Own: amounts[:n:n],
		Subtree: amounts[n:],
	}
	made.Borrow, made.Lend = SpreadNode(made, nil), SpreadNode(made, nil)
	return made
}

// SpreadNode lays bounds over the resources of the tree; what is absent is not bounded.
func SpreadNode(n *state.Node, set []quota.ResourceLimit) []quota.Amount {
	most := slices.Repeat([]quota.Amount{quota.MaxAmount}, len(n.Tree.Resources))
	for _, s := range set {
		most[n.Tree.Resource(s.Resource).Index] = s.Limit.Ceiling()
	}
	return most
}

// chooseRules returns the group that a user with these groups counts for, if the node decides it: the first in the
// order of the configuration, else the shared one.
func chooseRules(r *state.Rules, groups []string) (string, bool) {
	if r == nil {
		return "", false
	}
	first, name := r.Groups[quota.Wildcard], quota.Wildcard
	for _, g := range groups {
		if named := r.Groups[g]; named != nil && (first == nil || named.Order < first.Order) {
			first, name = named, g
		}
	}
	return name, first != nil
}
