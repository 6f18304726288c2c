package ledger

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// install makes a checked draft part of the ledger, or takes a tree away. Where an old tree exists, its nodes and
// resources are changed in place: allocations point at them.
func (pl planner) install(s *succession) {
	switch {
	case s.draft == nil:
		for _, r := range s.old.resources {
			pl.inventory.dropItems(r)
		}
		delete(pl.forest.trees, s.old.name)
		pl.forest.bytes -= s.old.bytes()
		pl.forest.nodes -= len(s.old.byPath)
	case s.old == nil:
		s.draft.root.walk(func(n *node) bool {
			n.enter(&pl.forest)
			return true
		})
		s.draft.repool()
		pl.forest.markChanged(s.draft)
		pl.forest.trees[s.draft.name] = s.draft
		pl.forest.bytes += s.draft.bytes()
		pl.forest.nodes += len(s.draft.byPath)
		pl.inventory.stockUp(s.draft, nil)
	default:
		pl.replace(s)
	}
}

// enter gives a new node its identity.
func (n *node) enter(f *forest) {
	f.nodeID++
	n.id = f.nodeID
}

// replace puts a draft in the place of the tree that it continues.
func (pl planner) replace(s *succession) {
	t := s.old
	pl.forest.bytes -= t.bytes()
	defer func() { pl.forest.bytes += t.bytes() }()
	pl.forest.nodes += len(s.draft.byPath) - len(t.byPath)
	s.countHomings(-1) // reseat moves the claims themselves
	t.settings, t.governed, t.soft = s.draft.settings, s.draft.governed, s.draft.soft
	if len(s.changes) > 0 {
		pl.forest.markChanged(t)
	}
	before, resources := t.seating(), t.resources
	was := map[*resource]*quota.ItemSpec{}
	for _, r := range resources {
		was[r] = r.Items
	}
	t.adoptResources(s.draft.resources)
	var drafted []*node
	s.draft.root.walk(func(n *node) bool {
		drafted = append(drafted, n)
		return true
	})
	clear(t.byPath)
	for _, n := range drafted {
		is := n.settled()
		if is == n {
			n.enter(&pl.forest)
			n.tree = t
		} else {
			is.configure(n)
			is.own, is.subtree = n.own, n.subtree
			is.rename(n.path)
		}
		t.byPath[n.path] = is
	}
	for _, n := range drafted {
		n.settled().relate(n)
	}
	for _, n := range drafted {
		n.from = nil
	}
	if !slices.Equal(before, t.seating()) || !slices.Equal(resources, t.resources) {
		pl.reseat(t)
	}
	if slices.ContainsFunc(s.changes, isStructuralChange) {
		t.recount()
	}
	t.repool()
	for _, r := range resources {
		if !slices.Contains(t.resources, r) {
			pl.inventory.dropItems(r)
		}
	}
	pl.inventory.stockUp(t, was)
}

// isStructuralChange is true for a change after which claims may have to be counted elsewhere.
func isStructuralChange(c quota.Change) bool {
	switch c.Field {
	case "node", "path", "policy", "hard":
		return true
	}
	return strings.HasPrefix(c.Field, "resource ")
}

// settled is the node that a node of the draft becomes: the one that it continues, or itself.
func (n *node) settled() *node {
	if n.from != nil {
		return n.from
	}
	return n
}

// adoptResources takes over the draft's list, keeping the records of known resources: claims point at them. What was itemized
// and is not any more, or the other way round, is another resource for those who held it once.
func (t *tree) adoptResources(wanted []*resource) {
	list := make([]*resource, len(wanted))
	for i, w := range wanted {
		list[i] = w
		if known := t.resource(w.Name); known != nil && (known.Unit == quota.Items) == (w.Unit == quota.Items) {
			list[i] = known
		}
	}
	for i, r := range list {
		r.index, r.Unit, r.Items = i, wanted[i].Unit, wanted[i].Items
	}
	t.resources = list
}

// rename gives the node another address; records keep the one that they were made with.
func (n *node) rename(path string) {
	if n.path != path {
		n.address = &address{n.treeName, path}
	}
}

// configure takes over the configuration of a draft's node.
func (n *node) configure(drafted *node) {
	n.spec, n.policy, n.limits, n.ceilings, n.fallbacks = drafted.spec, drafted.policy, drafted.limits, drafted.ceilings, drafted.fallbacks
	n.borrows, n.special, n.made, n.strict = drafted.borrows, drafted.special, drafted.made, drafted.strict
	n.rules, n.borrow, n.lend = drafted.rules, drafted.borrow, drafted.lend
}

// relate gives the node the parent and the children that it has in the draft, as they are in its own tree.
func (n *node) relate(drafted *node) {
	children := make([]*node, len(drafted.children))
	for i, child := range drafted.children {
		children[i] = child.settled()
	}
	n.children = children
	if drafted.parent != nil {
		n.parent = drafted.parent.settled()
	}
}
