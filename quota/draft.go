package quota

import (
	"fmt"
	"slices"
	"strings"
)

// draft checks the shape of a specification and builds a tree from it that is not part of the ledger: its nodes have
// configuration but no identity, and no usage until they succeed others.
func (l *Ledger) draft(spec TreeSpec, field string) (*tree, *Error) {
	if !validName(spec.Name) {
		return nil, refuse(Invalid, field+".name", "a tree's name is 1 to %d letters, digits and %s, beginning with a letter, digit or _; got %q", MaxName, nodeExtra, clip(spec.Name))
	}
	if f := spec.Forest; f != "" && !validName(f) {
		return nil, refuse(Invalid, field+".forest", "a forest's name is 1 to %d letters, digits and %s, beginning with a letter, digit or _; got %q", MaxName, nodeExtra, clip(f))
	}
	if err := spec.check(spec.Name, field); err != nil {
		return nil, err
	}
	t := &tree{name: spec.Name, settings: spec.TreeSettings, byPath: make(map[string]*node, len(spec.Nodes))}
	if err := l.draftResources(t, spec.Resources, field); err != nil {
		return nil, err
	}
	if n := len(spec.Nodes); n < 1 || n > l.bounds.NodesPerTree {
		return nil, refuse(Invalid, field+".nodes", "tree %s has %d nodes with its root; 1 to %d are allowed", spec.Name, n, l.bounds.NodesPerTree)
	}
	if n, cells := len(spec.Nodes), l.bounds.Cells; n*len(spec.Resources) > cells {
		return nil, refuse(Invalid, field+".nodes", "tree %s has %d nodes and %d resources, for each of which every node keeps account; at most %d of such accounts are allowed: divide the tree",
			spec.Name, n, len(spec.Resources), cells)
	}
	for i, n := range spec.Nodes {
		if err := l.draftNode(t, n, i); err != nil {
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

func (l *Ledger) draftResources(t *tree, resources []Resource, field string) *Error {
	if n := len(resources); n < 1 || n > l.bounds.Resources {
		return refuse(Invalid, field+".resources", "tree %s registers %d resources; 1 to %d are allowed", t.name, n, l.bounds.Resources)
	}
	for i, r := range resources {
		at := fmt.Sprintf("%s.resources[%d]", field, i)
		switch {
		case !validResource(r.Name):
			return refuse(Invalid, at+".name", "a resource's name is 1 to %d letters, digits and %s, beginning with a letter, digit or _; got %q", MaxName, resourceExtra, clip(r.Name))
		case r.Unit < Count || r.Unit > Items:
			return refuse(Invalid, at+".unit", "unit %d of resource %s is unknown; it is count, milli, bytes or items", r.Unit, r.Name)
		case i > 0 && resources[i-1].Name >= r.Name:
			return refuse(Invalid, at+".name", "resource %s is not in order, or registered twice", r.Name)
		}
		if err := l.checkItemSpec(r, t.settings.Leases.most(), at+".items"); err != nil {
			return err
		}
		t.resources = append(t.resources, &resource{Resource: r, index: i})
	}
	return nil
}

// connect ties the nodes together and settles policies and ceilings, from the root down.
func (t *tree) connect(field string, specs []NodeSpec) *Error {
	t.root = t.byPath[""]
	for i, spec := range specs[1:] {
		n := t.byPath[spec.Path]
		if n.parent = t.byPath[parentPath(spec.Path)]; n.parent == nil {
			return refuse(Invalid, nodeField(field, i+1)+".path", "the parent %q of node %q is not listed in tree %s; list every level", parentPath(spec.Path), spec.Path, t.name)
		}
		n.parent.children = append(n.parent.children, n)
	}
	if t.governed && len(t.root.spec.Admins) == 0 {
		return refuse(Invalid, field+".admins", "tree %s names admins, but none at its root, so that nobody could ever change the tree as a whole; name one there", t.name)
	}
	t.root.walk(func(n *node) bool {
		slices.SortFunc(n.children, byPath)
		n.settle()
		t.soft = t.soft || n.borrows == BorrowSoftly
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
		n.policy = policies[DefaultPolicy]
	}
	n.borrows = n.policy.Borrowing()
	n.special = n.borrows != BorrowNothing || n.parent != nil && n.parent.special
	n.strict = n.queuesStrictly()
	n.settleDefaults()
	n.ceilings = make([]Amount, len(n.limits))
	for r := range n.limits {
		n.ceilings[r] = n.ceiling(r)
	}
}

// ceiling is what the plain check holds the subtree to. In a cohort a limit is not a cap: checkBounded looks at it.
func (n *node) ceiling(r int) Amount {
	if n.borrows == BorrowBounded {
		return MaxAmount
	}
	return n.effective(r).ceiling()
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
	own := make([]Limit, len(n.limits))
	copy(own, n.fallbacks)
	for _, d := range n.spec.Defaults {
		own[n.tree.resource(d.Resource).index] = d.Limit
	}
	n.fallbacks = own
}

// queuesStrictly is what the node says of its queueing, or else its parent.
func (n *node) queuesStrictly() bool {
	if n.spec.Queueing == InheritQueueing {
		return n.parent != nil && n.parent.strict
	}
	return n.spec.Queueing == Strict
}
