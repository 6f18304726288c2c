package configure

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// installTrees makes a checked draft part of the ledger, or takes a tree away. Where an old tree exists, its nodes and
// resources are changed in place: allocations point at them.
func (p Planner) installTrees(s *treeTransition) {
	defer noteConfigured(&p.State.Forest, s)
	defer markTree(&p.State.Forest, s)
	switch {
	case s.draft == nil:
		for _, r := range s.old.Resources {
			removeItems(&p.State.Inventory, r)
		}
		delete(p.State.Forest.Trees, s.old.Name)
		p.State.Forest.Bytes -= s.old.Bytes()
		p.State.Forest.Nodes -= len(s.old.ByPath)
	case s.old == nil:
		s.draft.Root.Walk(func(n *state.Node) bool {
			n.AssignID(&p.State.Forest)
			return true
		})
		admit.RepoolTree(s.draft)
		p.State.Forest.MarkChanged(s.draft)
		p.State.Forest.Trees[s.draft.Name] = s.draft
		p.State.Forest.Bytes += s.draft.Bytes()
		p.State.Forest.Nodes += len(s.draft.ByPath)
		installStocks(&p.State.Inventory, s.draft, nil)
	default:
		p.replaceTree(s)
	}
}

// replaceTree makes a tree what the draft says that continues it.
//
// Allocations, waiting requests and the calendar point at nodes and resources, so those that go on stay the same
// values: the draft gives its configuration, and its use of everything below, to the nodes that it continues, and only
// what is new in it joins the tree itself. What is derived from the whole tree is computed again, and only if it may
// differ: the borrow indexes, the accounts of users and groups, the pools, the stocks of items.
func (p Planner) replaceTree(s *treeTransition) {
	t := s.old
	p.State.Forest.Bytes -= t.Bytes()
	defer func() { p.State.Forest.Bytes += t.Bytes() }()
	p.State.Forest.Nodes += len(s.draft.ByPath) - len(t.ByPath)
	s.countRehomings(-1) // rebuildBorrowIndexes moves the claims themselves
	t.Settings, t.Soft = s.draft.Settings, s.draft.Soft
	if s.isChanged() {
		p.State.Forest.MarkChanged(t)
	}
	before, resources := admit.BorrowShapes(t), t.Resources
	formerItems := map[*state.Resource]*quota.ItemSpec{}
	for _, r := range resources {
		formerItems[r] = r.Items
	}
	adoptResources(t, s.draft.Resources)
	var drafted []*state.Node
	s.draft.Root.Walk(func(n *state.Node) bool {
		drafted = append(drafted, n)
		return true
	})
	clear(t.ByPath)
	for _, n := range drafted {
		node := successor(n)
		if node == n {
			n.AssignID(&p.State.Forest)
			n.Tree = t
		} else {
			configureNode(node, n)
			node.Own, node.Subtree = n.Own, n.Subtree
			renameNode(node, n.Path)
		}
		t.ByPath[n.Path] = node
	}
	for _, n := range drafted {
		relateNode(successor(n), n)
	}
	for _, n := range drafted {
		n.From = nil
	}
	if !slices.Equal(before, admit.BorrowShapes(t)) || !slices.Equal(resources, t.Resources) {
		p.rebuildBorrowIndexes(t)
	}
	if s.redefined || slices.ContainsFunc(s.changes, isStructuralChange) {
		t.Recount()
	}
	admit.RepoolTree(t)
	for _, r := range resources {
		if !slices.Contains(t.Resources, r) {
			removeItems(&p.State.Inventory, r)
		}
	}
	installStocks(&p.State.Inventory, t, formerItems)
}

func isStructuralChange(c quota.Change) bool {
	switch c.Field {
	case "node", "path", "policy", "hard":
		return true
	}
	return strings.HasPrefix(c.Field, "resource ")
}

// successor is the node of the ledger that a node of the draft becomes: its predecessor, or itself.
func successor(n *state.Node) *state.Node {
	if n.From != nil {
		return n.From
	}
	return n
}

// adoptResources takes over the draft's list, keeping the records of known resources, because claims point at them. A
// resource that changes between itemized and plain becomes a different resource for former holders.
func adoptResources(t *state.Tree, wanted []*state.Resource) {
	list := make([]*state.Resource, len(wanted))
	for i, w := range wanted {
		list[i] = w
		if known := t.Resource(w.Name); known != nil && (known.Unit == quota.Items) == (w.Unit == quota.Items) {
			list[i] = known
		}
	}
	for i, r := range list {
		r.Index, r.Unit, r.Items = i, wanted[i].Unit, wanted[i].Items
	}
	t.Resources = list
}

// renameNode leaves in records the address with which they were made.
func renameNode(n *state.Node, path string) {
	if n.Path != path {
		n.Address = &state.Address{TreeName: n.TreeName, Path: path}
	}
}

func configureNode(n, drafted *state.Node) {
	n.Spec, n.Policy, n.Limits, n.Ceilings, n.Fallbacks = drafted.Spec, drafted.Policy, drafted.Limits,
		drafted.Ceilings, drafted.Fallbacks
	n.Borrows, n.Special, n.Dynamic, n.Strict = drafted.Borrows, drafted.Special, drafted.Dynamic, drafted.Strict
	n.Rules, n.Borrow, n.Lend, n.Bindings = drafted.Rules, drafted.Borrow, drafted.Lend, drafted.Bindings
	n.Thresholds, n.HasThresholds = drafted.Thresholds, drafted.HasThresholds
}

// relateNode gives the node the parent and the children that it has in the draft, as they are in its own tree.
func relateNode(n, drafted *state.Node) {
	children := make([]*state.Node, len(drafted.Children))
	for i, child := range drafted.Children {
		children[i] = successor(child)
	}
	n.Children = children
	if drafted.Parent != nil {
		n.Parent = successor(drafted.Parent)
	}
}

// requeueWaiters updates waiting requests with claims in changed trees after moves of their nodes, ends those that the
// configuration now refuses, and assigns the requests that wait in such a tree to queues again. Its cost grows with the
// length of the queue.
func (p Planner) requeueWaiters(changed map[string]bool) {
	all := slices.Collect(p.State.Queue.All.All()) // a copy: the loops remove waiters
	for _, w := range all {
		for _, alt := range w.Alternatives {
			switch t := alt.BlockedIn.Tree; {
			case t != nil && changed[t.Name]:
				unassignWaiters(&p.State.Queue, alt)
			case alt.IsSpanning() && claimFromAny(alt.Wanted, changed):
				p.State.Queue.UnblockAll(alt.BlockedIn) // it may preempt now what is in its way in another tree
			}
		}
	}
	for _, w := range all {
		p.followMoves(w, changed)
	}
	if p.State.Queue.Unassigned.Waiters.Len() > 0 {
		p.State.Queue.MarkDirty(&p.State.Queue.Unassigned)
	}
}

// claimsFrom is also true if the allocation of a waiting resize claims in one of the trees.
func (p Planner) claimsFrom(alt *state.Alternative, trees map[string]bool) bool {
	a, isHeld := p.State.Allocations.Held.Get(alt.Of.Resizes)
	return claimFromAny(alt.Wanted, trees) || isHeld && slices.ContainsFunc(a.Claims, func(c state.PlacedClaim) bool {
		return trees[c.At.TreeName]
	})
}

// unassignWaiters removes an alternative from its queue without another becoming the head.
func unassignWaiters(q *state.WaitQueue, alt *state.Alternative) {
	bq := alt.BlockedIn
	if alt.AwaitsRevocation {
		bq.RevocationsPending--
	}
	if bq.Waiters.Remove(alt.Turn); bq.Waiters.Len() == 0 {
		q.RemoveQueue(bq)
	}
	q.Spanning.Remove(alt.Turn)
	alt.BlockedIn, alt.Need = &q.Unassigned, 0
	q.Unassigned.Insert(alt)
}

// followMoves updates the alternatives of a request with claims in changed trees. Those of which a node was removed, or
// that would be refused, are dropped, and the request with the last one.
func (p Planner) followMoves(w *state.Waiter, changed map[string]bool) {
	var kept, dropped []*state.Alternative
	moved := false
	for _, alt := range w.Alternatives {
		isConcerned := p.claimsFrom(alt, changed)
		if isConcerned && !p.followMove(alt) {
			dropped = append(dropped, alt)
			continue
		}
		kept, moved = append(kept, alt), moved || isConcerned
	}
	if len(kept) == 0 {
		admit.DropWaiter(p.State, w, state.Ending{State: quota.Cancelled, By: state.ByConfiguration})
		return
	}
	w.Alternatives = kept
	for _, alt := range dropped {
		p.State.Queue.LeaveQueue(alt)
	}
	if moved || len(dropped) > 0 {
		admit.ReplaceWaiting(&p.State.Queue, w, *w.Record.More.Waiting)
		w.Record.More.Lease = kept[0].Lease
		w.Record.ClearGrant()
	}
}

// followMove updates the paths of the nodes of an alternative; false if one was removed, or it would be refused.
func (p Planner) followMove(alt *state.Alternative) bool {
	if alt.Of.IsResize() {
		return p.followResize(alt)
	}
	request := admit.RequestOf(alt)
	request.Claims = slices.Clone(request.Claims)
	for i := range alt.Claims {
		path, exists := p.presentPath(alt, i)
		if !exists {
			return false
		}
		request.Claims[i].Node = path
	}
	a, refused := admit.PlaceClaims(p.State, &request)
	if refused != nil && refused.Kind != quota.Full {
		return false
	}
	if a != nil {
		for i := range a.Claims {
			a.Claims[i].Asked = alt.Claims[i].Asked
		}
		admit.AssignNodes(alt, a, request.Claims)
	}
	return true
}

// presentPath is false if the node of the claim was removed.
func (p Planner) presentPath(alt *state.Alternative, i int) (string, bool) {
	n := alt.Claims[i].At
	if t := p.State.Forest.Trees[n.TreeName]; t == nil || t.ByPath[n.Path] != n {
		return "", false
	}
	if alt.UnconfiguredPaths != nil && alt.UnconfiguredPaths[i] != "" {
		return quota.ChildPath(n.Path, alt.UnconfiguredPaths[i]), true
	}
	return n.Path, true
}

func (p Planner) requeueTrees(steps []*treeTransition) {
	if p.State.Queue.All.Len() == 0 {
		return
	}
	changed := map[string]bool{}
	for _, s := range steps {
		if s.isChanged() {
			changed[s.treeName()] = true
		}
	}
	p.requeueWaiters(changed)
	if len(p.State.Queue.QueuesForLedger) > 0 {
		p.State.Queue.MarkDirty(p.State.Queue.QueuesForLedger[0])
	}
}

// noteConfigured records a tree whose configuration has changed, if it has thresholds or had some that are crossed.
func noteConfigured(f *state.Forest, s *treeTransition) {
	if t := f.Trees[s.treeName()]; t != nil && t.HasAnyThresholds() {
		f.Rewarned = append(f.Rewarned, t)
	}
}

// followResize is followMove for a resize.
func (p Planner) followResize(alt *state.Alternative) bool {
	a, _ := p.State.Allocations.Held.Get(alt.Of.Resizes)
	moved := *alt
	moved.Wanted, moved.Claims = slices.Clone(alt.Wanted), slices.Clone(alt.Claims)
	for i := range alt.Claims {
		if admit.ClaimAskedAt(a, alt.Claims[i].Asked) >= 0 {
			continue
		}
		path, exists := p.presentPath(alt, i)
		if !exists {
			return false
		}
		moved.Wanted[i].Node = path
	}
	if _, refused := admit.PlaceResize(p.State, &moved); refused != nil && refused.Kind != quota.Full {
		return false
	}
	admit.PlaceResizeClaims(p.State, &moved, a)
	alt.Wanted, alt.Claims, alt.UnconfiguredPaths = moved.Wanted, moved.Claims, moved.UnconfiguredPaths
	return true
}

// followTransition ends the scheduled limits that have no place in a configuration that is about to be installed: their
// node is removed, or their resource is not what it was.
func followTransition(c *state.Calendar, s *treeTransition) {
	for _, limit := range slices.Clone(c.All) {
		if s.old == nil || limit.Node.Tree != s.old {
			continue
		}
		kept := s.keptAdjustments(limit)
		if len(kept) == 0 {
			c.Remove(limit, state.ByConfiguration)
			continue
		}
		limit.Adjustments = kept
	}
}

// markTree notes that the present entry changes the configuration of a tree. It must be called when the tree has its
// new nodes.
func markTree(f *state.Forest, s *treeTransition) {
	if t := f.Trees[s.treeName()]; t != nil {
		t.Marks.Clear()
		t.Marks.Many, t.Marks.Queued = f.Index, f.Index
	}
}
