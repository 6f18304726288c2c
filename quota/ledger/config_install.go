package ledger

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// installTrees makes a checked draft part of the ledger, or takes a tree away. Where an old tree exists, its nodes and
// resources are changed in place: allocations point at them.
func (p planner) installTrees(s *treeTransition) {
	defer p.ledger.forest.noteConfigured(s)
	defer p.ledger.forest.markTree(s)
	switch {
	case s.draft == nil:
		for _, r := range s.old.resources {
			p.ledger.inventory.removeItems(r)
		}
		delete(p.ledger.forest.trees, s.old.name)
		p.ledger.forest.bytes -= s.old.bytes()
		p.ledger.forest.nodes -= len(s.old.byPath)
	case s.old == nil:
		s.draft.root.walk(func(n *node) bool {
			n.assignID(&p.ledger.forest)
			return true
		})
		s.draft.repool()
		p.ledger.forest.markChanged(s.draft)
		p.ledger.forest.trees[s.draft.name] = s.draft
		p.ledger.forest.bytes += s.draft.bytes()
		p.ledger.forest.nodes += len(s.draft.byPath)
		p.ledger.inventory.installStocks(s.draft, nil)
	default:
		p.replaceTree(s)
	}
}

// replaceTree replaces a tree by the draft that continues it.
func (p planner) replaceTree(s *treeTransition) {
	t := s.old
	p.ledger.forest.bytes -= t.bytes()
	defer func() { p.ledger.forest.bytes += t.bytes() }()
	p.ledger.forest.nodes += len(s.draft.byPath) - len(t.byPath)
	s.countRehomings(-1) // rebuildBorrowIndexes moves the claims themselves
	t.settings, t.governed, t.soft = s.draft.settings, s.draft.governed, s.draft.soft
	if s.isChanged() {
		p.ledger.forest.markChanged(t)
	}
	before, resources := t.borrowShapes(), t.resources
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
		is := n.successor()
		if is == n {
			n.assignID(&p.ledger.forest)
			n.tree = t
		} else {
			is.configure(n)
			is.own, is.subtree = n.own, n.subtree
			is.rename(n.path)
		}
		t.byPath[n.path] = is
	}
	for _, n := range drafted {
		n.successor().relate(n)
	}
	for _, n := range drafted {
		n.from = nil
	}
	if !slices.Equal(before, t.borrowShapes()) || !slices.Equal(resources, t.resources) {
		p.rebuildBorrowIndexes(t)
	}
	if s.redefined || slices.ContainsFunc(s.changes, isStructuralChange) {
		t.recount()
	}
	t.repool()
	for _, r := range resources {
		if !slices.Contains(t.resources, r) {
			p.ledger.inventory.removeItems(r)
		}
	}
	p.ledger.inventory.installStocks(t, was)
}

// isStructuralChange is true for a change that may require claims to be counted elsewhere.
func isStructuralChange(c quota.Change) bool {
	switch c.Field {
	case "node", "path", "policy", "hard":
		return true
	}
	return strings.HasPrefix(c.Field, "resource ")
}

// successor is the node of the ledger that a node of the draft becomes: its predecessor, or itself.
func (n *node) successor() *node {
	if n.from != nil {
		return n.from
	}
	return n
}

// adoptResources takes over the draft's list, keeping the records of known resources, because claims point at them. A
// resource that changes between itemized and plain becomes a different resource for former holders.
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

// rename gives the node another address; records keep the one with which they were made.
func (n *node) rename(path string) {
	if n.path != path {
		n.address = &address{n.treeName, path}
	}
}

// configure takes over the configuration of a draft's node.
func (n *node) configure(drafted *node) {
	n.spec, n.policy, n.limits, n.ceilings, n.fallbacks = drafted.spec, drafted.policy, drafted.limits,
		drafted.ceilings, drafted.fallbacks
	n.borrows, n.special, n.dynamic, n.strict = drafted.borrows, drafted.special, drafted.dynamic, drafted.strict
	n.rules, n.borrow, n.lend, n.bindings = drafted.rules, drafted.borrow, drafted.lend, drafted.bindings
	n.warnAt, n.hasThresholds = drafted.warnAt, drafted.hasThresholds
}

// relate gives the node the parent and the children that it has in the draft, as they are in its own tree.
func (n *node) relate(drafted *node) {
	children := make([]*node, len(drafted.children))
	for i, child := range drafted.children {
		children[i] = child.successor()
	}
	n.children = children
	if drafted.parent != nil {
		n.parent = drafted.parent.successor()
	}
}

// requeueWaiters updates waiting requests with claims in changed trees after moves of their nodes, ends those that the
// configuration now refuses, and assigns the requests that wait in such a tree to queues again. Its cost grows with the
// length of the queue.
func (p planner) requeueWaiters(changed map[string]bool) {
	all := slices.Collect(p.ledger.queue.all.All()) // a copy: the loops remove waiters
	for _, w := range all {
		for _, alt := range w.alternatives {
			switch t := alt.blockedIn.tree; {
			case t != nil && changed[t.name]:
				p.ledger.queue.unassignWaiters(alt)
			case alt.isSpanning() && claimFromAny(alt.wanted, changed):
				p.ledger.queue.unblockAll(alt.blockedIn) // it may preempt now what is in its way in another tree
			}
		}
	}
	for _, w := range all {
		p.followMoves(w, changed)
	}
	if p.ledger.queue.unassigned.waiters.Len() > 0 {
		p.ledger.queue.markDirty(&p.ledger.queue.unassigned)
	}
}

// claimsFrom is true if an alternative claims in one of some trees, or the allocation of a waiting resize does.
func (p planner) claimsFrom(alt *alternative, trees map[string]bool) bool {
	a, isHeld := p.ledger.allocations.held.Get(alt.of.resizes)
	return claimFromAny(alt.wanted, trees) || isHeld && slices.ContainsFunc(a.claims, func(c placedClaim) bool {
		return trees[c.at.treeName]
	})
}

// unassignWaiters removes an alternative from its queue without another becoming the head.
func (q *waitQueue) unassignWaiters(alt *alternative) {
	bq := alt.blockedIn
	if alt.awaitsRevocation {
		bq.revocationsPending--
	}
	if bq.waiters.Remove(alt.turn); bq.waiters.Len() == 0 {
		q.removeQueue(bq)
	}
	q.spanning.Remove(alt.turn)
	alt.blockedIn, alt.need = &q.unassigned, 0
	q.unassigned.insert(alt)
}

// followMoves updates the alternatives of a request with claims in changed trees. Those of which a node was removed, or
// that would be refused, are dropped, and the request with the last one.
func (p planner) followMoves(w *waiter, changed map[string]bool) {
	var kept, dropped []*alternative
	moved := false
	for _, alt := range w.alternatives {
		isConcerned := p.claimsFrom(alt, changed)
		if isConcerned && !p.followMove(alt) {
			dropped = append(dropped, alt)
			continue
		}
		kept, moved = append(kept, alt), moved || isConcerned
	}
	if len(kept) == 0 {
		p.ledger.dropWaiter(w, ending{state: quota.Cancelled, by: byConfiguration})
		return
	}
	w.alternatives = kept
	for _, alt := range dropped {
		p.ledger.queue.leaveQueue(alt)
	}
	if moved || len(dropped) > 0 {
		p.ledger.queue.replaceWaiting(w, *w.record.more.waiting)
		w.record.more.lease = kept[0].lease
		w.record.clearGrant()
	}
}

// followMove updates the paths of the nodes of an alternative; false if one was removed, or it would be refused.
func (p planner) followMove(alt *alternative) bool {
	if alt.of.isResize() {
		return p.followResize(alt)
	}
	request := alt.asked()
	request.Claims = slices.Clone(request.Claims)
	for i := range alt.claims {
		path, exists := p.presentPath(alt, i)
		if !exists {
			return false
		}
		request.Claims[i].Node = path
	}
	a, refused := p.ledger.placeClaims(&request)
	if refused != nil && refused.Kind != quota.Full {
		return false
	}
	if a != nil {
		for i := range a.claims {
			a.claims[i].asked = alt.claims[i].asked
		}
		alt.placeAt(a, request.Claims)
	}
	return true
}

// presentPath is where a claim of a waiter is now; false if its node was removed.
func (p planner) presentPath(alt *alternative, i int) (string, bool) {
	n := alt.claims[i].at
	if t := p.ledger.forest.trees[n.treeName]; t == nil || t.byPath[n.path] != n {
		return "", false
	}
	if alt.unconfiguredPaths != nil && alt.unconfiguredPaths[i] != "" {
		return quota.ChildPath(n.path, alt.unconfiguredPaths[i]), true
	}
	return n.path, true
}

// requeueTrees is requeueWaiters after a change of the configuration.
func (p planner) requeueTrees(steps []*treeTransition) {
	if p.ledger.queue.all.Len() == 0 {
		return
	}
	changed := map[string]bool{}
	for _, s := range steps {
		if s.isChanged() {
			changed[s.treeName()] = true
		}
	}
	p.requeueWaiters(changed)
	if len(p.ledger.queue.queuesForLedger) > 0 {
		p.ledger.queue.markDirty(p.ledger.queue.queuesForLedger[0])
	}
}

// noteConfigured records a tree whose configuration has changed, if it has thresholds or had some that are crossed.
func (f *forest) noteConfigured(s *treeTransition) {
	if t := f.trees[s.treeName()]; t != nil && t.hasAnyThresholds() {
		f.rewarned = append(f.rewarned, t)
	}
}

// followResize is followMove for a resize.
func (p planner) followResize(alt *alternative) bool {
	a, _ := p.ledger.allocations.held.Get(alt.of.resizes)
	moved := *alt
	moved.wanted, moved.claims = slices.Clone(alt.wanted), slices.Clone(alt.claims)
	for i := range alt.claims {
		if a.claimAskedAt(alt.claims[i].asked) >= 0 {
			continue
		}
		path, exists := p.presentPath(alt, i)
		if !exists {
			return false
		}
		moved.wanted[i].Node = path
	}
	if _, refused := p.ledger.placeResize(&moved); refused != nil && refused.Kind != quota.Full {
		return false
	}
	p.ledger.placeResizeClaims(&moved, a)
	alt.wanted, alt.claims, alt.unconfiguredPaths = moved.wanted, moved.claims, moved.unconfiguredPaths
	return true
}

// follow ends the scheduled limits that have no place in a configuration that is about to be installed: their node is
// removed, or their resource is not what it was.
func (c *calendar) follow(s *treeTransition) {
	for _, limit := range slices.Clone(c.all) {
		if s.old == nil || limit.node.tree != s.old {
			continue
		}
		kept := s.keptAdjustments(limit)
		if len(kept) == 0 {
			c.remove(limit, byConfiguration)
			continue
		}
		limit.Adjustments = kept
	}
}

// markTree notes that the present entry changes the configuration of a tree. It must be called when the tree has its
// new nodes.
func (f *forest) markTree(s *treeTransition) {
	if t := f.trees[s.treeName()]; t != nil {
		t.marks.clear()
		t.marks.many, t.marks.queued = f.index, f.index
	}
}
