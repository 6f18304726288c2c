package quota

import (
	"fmt"
	"slices"
	"strings"
)

// draft checks the shape of a specification and builds a tree from it that is not part of the ledger: its nodes have
// configuration but no usage and no identity.
func (l *Ledger) draft(spec TreeSpec, field string) (*tree, *Error) {
	if !validName(spec.Name) {
		return nil, refuse(Invalid, field+".name", "a tree's name is 1 to %d letters, digits and %s, beginning with a letter, digit or _; got %q", MaxName, nodeExtra, clip(spec.Name))
	}
	t := &tree{name: spec.Name, settings: spec.TreeSettings, byPath: make(map[string]*node, len(spec.Nodes))}
	if err := l.draftResources(t, spec.Resources, field); err != nil {
		return nil, err
	}
	if n := len(spec.Nodes); n < 1 || n > l.bounds.NodesPerTree {
		return nil, refuse(Invalid, field+".nodes", "tree %s has %d nodes with its root; 1 to %d are allowed", spec.Name, n, l.bounds.NodesPerTree)
	}
	for i, n := range spec.Nodes {
		if err := l.draftNode(t, n, i, nodeField(field, i)); err != nil {
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
		case r.Unit < Count || r.Unit > Bytes:
			return refuse(Invalid, at+".unit", "unit %d of resource %s is unknown; it is count, milli or bytes", r.Unit, r.Name)
		case i > 0 && resources[i-1].Name >= r.Name:
			return refuse(Invalid, at+".name", "resource %s is not in order, or registered twice", r.Name)
		}
		t.resources = append(t.resources, &resource{Resource: r, index: i})
	}
	return nil
}

func (l *Ledger) draftNode(t *tree, spec NodeSpec, i int, field string) *Error {
	if (i == 0) != (spec.Path == "") {
		return refuse(Invalid, field+".path", "the first node of tree %s is its root with an empty path, and no other is; got %q", t.name, clip(spec.Path))
	}
	if err := checkPath(spec.Path, field+".path", l.bounds.Depth); err != nil {
		return err
	}
	if t.byPath[spec.Path] != nil {
		return refuse(Invalid, field+".path", "tree %s lists node %q twice", t.name, spec.Path)
	}
	if spec.Policy != "" && policies[spec.Policy] == nil {
		return refuse(Invalid, field+".policy", "there is no policy %q; known are %s", clip(spec.Policy), policyNames())
	}
	if err := l.checkLabels(spec.Labels, field+".labels"); err != nil {
		return err
	}
	limits, err := t.limits(spec.Limits, field+".limits")
	if err != nil {
		return err
	}
	rules, err := l.draftPrincipals(t, &spec, field)
	if err != nil {
		return err
	}
	t.byPath[spec.Path] = &node{address: &address{t.name, spec.Path}, tree: t, spec: &spec, limits: limits, rules: rules}
	return nil
}

// limits spreads set limits over the resources of the tree.
func (t *tree) limits(set []ResourceLimit, field string) ([]Limit, *Error) {
	limits := make([]Limit, len(t.resources))
	for i, s := range set {
		if i > 0 && set[i-1].Resource >= s.Resource {
			return nil, refuse(Invalid, field, "resource %s is not in order, or limited twice", s.Resource)
		}
		r, err := t.checkLimit(s, field, Invalid)
		if err != nil {
			return nil, err
		}
		if s.Limit.Kind == Unset {
			return nil, refuse(Invalid, field, "the limit of %s is unset; leave it out", s.Resource)
		}
		limits[r.index] = s.Limit
	}
	return limits, nil
}

// checkLimit refuses a limit that cannot be; unknown is the kind of refusal for a resource that the tree does not have.
func (t *tree) checkLimit(s ResourceLimit, field string, unknown Kind) (*resource, *Error) {
	r := t.resource(s.Resource)
	switch {
	case r == nil:
		return nil, refuse(unknown, field, "tree %s registers no resource %q; it has %s", t.name, clip(s.Resource), t.resourceNames())
	case s.Limit.Kind > Unlimited:
		return nil, refuse(Invalid, field, "the limit of %s is neither an amount nor unlimited nor unset", s.Resource)
	case s.Limit.Kind != Limited && s.Limit.Amount != 0:
		return nil, refuse(Invalid, field, "the limit of %s is %s and still names the amount %d; it is one or the other", s.Resource, s.Limit, s.Limit.Amount)
	case s.Limit.Kind == Limited && (s.Limit.Amount < 0 || s.Limit.Amount > MaxAmount):
		return nil, refuse(Invalid, field, "the limit of %s is %d; 0 to %d are allowed", s.Resource, s.Limit.Amount, MaxAmount)
	}
	return r, nil
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
	t.root.walk(func(n *node) bool {
		slices.SortFunc(n.children, func(a, b *node) int { return strings.Compare(a.path, b.path) })
		n.settle()
		return true
	})
	return nil
}

// settle derives policy and ceilings from the configuration of the node and its parent's policy.
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
