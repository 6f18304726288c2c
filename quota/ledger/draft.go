package ledger

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// draft checks the shape of a specification and builds a tree from it that is not part of the ledger: its nodes have
// configuration but no identity, and no usage until they succeed others.
func (f *forest) draft(spec quota.TreeSpec, field string) (*tree, *quota.Error) {
	if !quota.IsName(spec.Name) {
		return nil, quota.Errorf(quota.Invalid, field+".name", "a tree's name is 1 to %d letters, digits and %s, beginning with a letter, digit or _; got %q", quota.MaxName, quota.NodeNameExtra, quota.Clip(spec.Name))
	}
	if name := spec.Forest; name != "" && !quota.IsName(name) {
		return nil, quota.Errorf(quota.Invalid, field+".forest", "a forest's name is 1 to %d letters, digits and %s, beginning with a letter, digit or _; got %q", quota.MaxName, quota.NodeNameExtra, quota.Clip(name))
	}
	if err := checkTreeSettings(spec.TreeSettings, spec.Name, field); err != nil {
		return nil, err
	}
	t := &tree{name: spec.Name, settings: spec.TreeSettings, byPath: make(map[string]*node, len(spec.Nodes))}
	if err := f.draftResources(t, spec.Resources, field); err != nil {
		return nil, err
	}
	if n := len(spec.Nodes); n < 1 || n > f.bounds.NodesPerTree {
		return nil, quota.Errorf(quota.Invalid, field+".nodes", "tree %s has %d nodes with its root; 1 to %d are allowed", spec.Name, n, f.bounds.NodesPerTree)
	}
	if n, cells := len(spec.Nodes), f.bounds.Cells; n*len(spec.Resources) > cells {
		return nil, quota.Errorf(quota.Invalid, field+".nodes", "tree %s has %d nodes and %d resources, for each of which every node keeps account; at most %d of such accounts are allowed: divide the tree",
			spec.Name, n, len(spec.Resources), cells)
	}
	for i, n := range spec.Nodes {
		if err := f.draftNode(t, n, i); err != nil {
			err.Field = nodeField(field, i) + err.Field
			return nil, err
		}
	}
	if err := t.connect(field, spec.Nodes); err != nil {
		return nil, err
	}
	return t, t.draftBounds(field, spec.Nodes)
}

// nodeField names a node as the API does, where the root's configuration stands in the tree itself.
func nodeField(field string, i int) string {
	if i == 0 {
		return field
	}
	return fmt.Sprintf("%s.nodes[%d]", field, i-1)
}

func (f *forest) draftResources(t *tree, resources []quota.Resource, field string) *quota.Error {
	if n := len(resources); n < 1 || n > f.bounds.Resources {
		return quota.Errorf(quota.Invalid, field+".resources", "tree %s registers %d resources; 1 to %d are allowed", t.name, n, f.bounds.Resources)
	}
	for i, r := range resources {
		at := fmt.Sprintf("%s.resources[%d]", field, i)
		switch {
		case !quota.IsResourceName(r.Name):
			return quota.Errorf(quota.Invalid, at+".name", "a resource's name is 1 to %d letters, digits and %s, beginning with a letter, digit or _; got %q", quota.MaxName, quota.ResourceNameExtra, quota.Clip(r.Name))
		case r.Unit < quota.Count || r.Unit > quota.Items:
			return quota.Errorf(quota.Invalid, at+".unit", "unit %d of resource %s is unknown; it is count, milli, bytes or items", r.Unit, r.Name)
		case i > 0 && resources[i-1].Name >= r.Name:
			return quota.Errorf(quota.Invalid, at+".name", "resource %s is not in order, or registered twice", r.Name)
		}
		if err := f.checkItemSpec(r, maxLeaseTTL(t.settings.Leases), at+".items"); err != nil {
			return err
		}
		t.resources = append(t.resources, &resource{Resource: r, index: i})
	}
	return nil
}

// connect ties the nodes together and settles policies and ceilings, from the root down.
func (t *tree) connect(field string, specs []quota.NodeSpec) *quota.Error {
	t.root = t.byPath[""]
	for i, spec := range specs[1:] {
		n := t.byPath[spec.Path]
		if n.parent = t.byPath[quota.ParentPath(spec.Path)]; n.parent == nil {
			return quota.Errorf(quota.Invalid, nodeField(field, i+1)+".path", "the parent %q of node %q is not listed in tree %s; list every level", quota.ParentPath(spec.Path), spec.Path, t.name)
		}
		n.parent.children = append(n.parent.children, n)
	}
	if t.governed && len(t.root.spec.Admins) == 0 {
		return quota.Errorf(quota.Invalid, field+".admins", "tree %s names admins, but none at its root, so that nobody could ever change the tree as a whole; name one there", t.name)
	}
	t.root.walk(func(n *node) bool {
		slices.SortFunc(n.children, byPath)
		n.settle()
		t.soft = t.soft || n.borrows == policy.BorrowSoft
		return true
	})
	return nil
}

func byPath(a, b *node) int { return strings.Compare(a.path, b.path) }

// settle derives from the configuration of the node and what its parent hands down: policy, defaults and ceilings.
func (n *node) settle() {
	switch {
	case n.spec.Policy != "":
		n.policy = policies[n.spec.Policy]
	case n.parent != nil:
		n.policy = n.parent.policy
	default:
		n.policy = policies[quota.DefaultPolicy]
	}
	n.borrows = n.policy.Borrowing
	n.special = n.borrows != policy.BorrowNothing || n.parent != nil && n.parent.special
	n.strict = n.queuesStrictly()
	n.settleDefaults()
	n.ceilings = make([]quota.Amount, len(n.limits))
	for r := range n.limits {
		n.ceilings[r] = n.ceiling(r)
	}
}

// ceiling is what the plain check holds the subtree to. In a cohort a limit is not a cap: checkBounded looks at it.
func (n *node) ceiling(r int) quota.Amount {
	if n.borrows == policy.BorrowBounded {
		return quota.MaxAmount
	}
	return n.effective(r).Ceiling()
}

// settleDefaults lays the node's own defaults over those from above.
func (n *node) settleDefaults() {
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
