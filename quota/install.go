package quota

import "slices"

// install makes a checked draft part of the ledger. Where an old tree exists, its nodes and resources are changed in
// place: allocations point at them.
func (l *Ledger) install(draft, old *tree) {
	if old == nil {
		draft.root.walk(func(n *node) bool {
			l.nodeID++
			n.enter(l.nodeID, len(draft.resources))
			return true
		})
		l.trees[draft.name] = draft
		l.nodes += len(draft.byPath)
		return
	}
	l.nodes += len(draft.byPath) - len(old.byPath)
	old.settings = draft.settings
	before, resources := old.seating(), old.resources
	from := old.adoptResources(draft.resources)
	for path := range old.byPath {
		if draft.byPath[path] == nil {
			delete(old.byPath, path)
		}
	}
	var drafted []*node
	draft.root.walk(func(n *node) bool {
		drafted = append(drafted, n)
		return true
	})
	for _, n := range drafted {
		l.adopt(old, n, from)
	}
	for _, n := range drafted {
		old.byPath[n.path].relate(n)
	}
	if !slices.Equal(before, old.seating()) || !slices.Equal(resources, old.resources) {
		l.reseat(old)
	}
}

// seating is what decides who may sit where in a tree: if it and the resources stay the same, everybody stays where he is.
type seating struct {
	id, parent uint64
	borrows    Borrowing
}

// seating lists the nodes as a walk visits them.
func (t *tree) seating() []seating {
	var nodes []seating
	t.root.walk(func(n *node) bool {
		s := seating{id: n.id, borrows: n.borrows}
		if n.parent != nil {
			s.parent = n.parent.id
		}
		nodes = append(nodes, s)
		return true
	})
	return nodes
}

// enter gives a new node its identity and its empty usage.
func (n *node) enter(id uint64, resources int) {
	n.id = id
	n.own = make([]Amount, resources)
	n.subtree = make([]Amount, resources)
}

// adoptResources takes over the draft's list, keeping the records of known resources, and answers for each new index
// the old one, or -1.
func (t *tree) adoptResources(wanted []*resource) []int {
	from := make([]int, len(wanted))
	list := make([]*resource, len(wanted))
	for i, w := range wanted {
		from[i], list[i] = -1, w
		if known := t.resource(w.Name); known != nil {
			from[i], list[i] = known.index, known
		}
	}
	for i, r := range list {
		r.index, r.Unit = i, wanted[i].Unit
	}
	t.resources = list
	return from
}

// adopt takes one node of a draft into the old tree: it changes the node that is there, or the draft's moves in.
func (l *Ledger) adopt(old *tree, n *node, from []int) {
	known := old.byPath[n.path]
	if known == nil {
		l.nodeID++
		n.enter(l.nodeID, len(from))
		n.tree = old
		old.byPath[n.path] = n
		return
	}
	known.configure(n)
	known.own, known.subtree = rearrange(known.own, from), rearrange(known.subtree, from)
}

// configure takes over the configuration of a draft's node.
func (n *node) configure(drafted *node) {
	n.spec, n.policy, n.limits, n.ceilings, n.fallbacks = drafted.spec, drafted.policy, drafted.limits, drafted.ceilings, drafted.fallbacks
	n.borrows, n.special = drafted.borrows, drafted.special
}

// relate gives the node the parent and the children that it has in the draft, as they are in its own tree.
func (n *node) relate(drafted *node) {
	children := make([]*node, len(drafted.children))
	for i, child := range drafted.children {
		children[i] = n.tree.byPath[child.path]
	}
	n.children = children
	if drafted.parent != nil {
		n.parent = n.tree.byPath[drafted.parent.path]
	}
}

func rearrange(amounts []Amount, from []int) []Amount {
	moved := make([]Amount, len(from))
	for i, f := range from {
		if f >= 0 {
			moved[i] = amounts[f]
		}
	}
	return moved
}
