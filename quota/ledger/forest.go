package ledger

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// resource is a registered resource with its place in every node's arrays.
type resource struct {
	quota.Resource
	index int
	holds int // components of held claims
	// queues are those of requests that wait for items of it.
	queues []*blockerQueue
	// stock is nil unless the resource is itemized, and in a draft.
	stock *stock
}

// forest owns the trees with their nodes, and what is counted at them.
type forest struct {
	*environment
	trees   map[string]*tree
	nodes   int    // in all trees
	nodeID  uint64 // last given
	version uint64 // last one given to a tree, see markChanged
	bytes   int64  // what the trees take, see quota.Sizes
	// idleCandidates are dynamic nodes that a claim has left in the present command.
	idleCandidates []*node
}

// tree is a hierarchy of nodes.
type tree struct {
	name      string
	settings  quota.TreeSettings
	resources []*resource // by name
	root      *node
	byPath    map[string]*node
	claims    int // held claims in the whole tree
	accounts  accounts
	// governed is true if any node names admins.
	governed bool
	// soft is true if claims may borrow softly anywhere in the tree.
	soft bool
	// version changes with every change of what is held in the tree, see markChanged.
	version uint64
	// queues are all in which requests wait for something in the tree.
	queues []*blockerQueue
}

// node is a place in a tree. It lives as long as it is configured or, if it was made on demand, something is held there:
// a changed configuration changes it in place, so that allocations keep pointing at it.
type node struct {
	id uint64 // fixed for life
	// address is replaced, never changed, when the node is renamed or moved; path is the one in it.
	*address

	tree     *tree
	parent   *node
	children []*node // by name
	spec     *quota.NodeSpec
	policy   *policy.Policy
	// By resource index: what was configured, and what is held.
	limits       []quota.Limit
	ceilings     []quota.Amount // what admission compares with: effective limits, MaxAmount if unlimited
	own, subtree []quota.Amount
	claims       int // held claims placed here
	// fallbacks are what unset limits of the children mean, by resource index: own defaults, or else the parent's. Nil if
	// there are none.
	fallbacks []quota.Limit
	// borrows is the policy's answer; special is true if the node or one above it borrows.
	borrows policy.Borrowing
	special bool
	// strict is true if requests that wait for room here must not be overtaken; lines are those that do.
	strict bool
	queues []*blockerQueue
	// dynamic is true if the node was made on demand (CreateUnknown): it is not configured, and goes when nothing is held there.
	dynamic bool
	homes   int // held claims that are counted further up, but belong here
	// borrowers has the claims counted here if the node borrows softly; nil if there never was one.
	borrowers *borrowIndex
	// rules limit users and groups; nil if there are none. applications counts those that run in the subtree.
	rules        *rules
	applications int
	// In a cohort, by resource index: the bounds of borrowing, MaxAmount if there are none, and the pools.
	borrow, lend []quota.Amount
	pools        []pool
	// from is, in a draft only, the node of the ledger that it succeeds; nil if it is new.
	from *node
}

// address is where a node is. Allocations keep the one that they were granted at.
type address struct{ treeName, path string }

func (n *node) name() string { return quota.LastName(n.path) }

func (n *node) place() string { return quota.Place(n.treeName, n.path) }

// effective is the limit in force for a resource.
func (n *node) effective(r int) quota.Limit {
	var fallback quota.Limit
	if n.parent != nil && n.parent.fallbacks != nil {
		fallback = n.parent.fallbacks[r]
	}
	return n.policy.Effective(n.limits[r], fallback)
}

// resource finds a registered resource by name, or nil.
func (t *tree) resource(name string) *resource {
	if i, found := t.findResource(name); found {
		return t.resources[i]
	}
	return nil
}

func (t *tree) findResource(name string) (int, bool) {
	return slices.BinarySearchFunc(t.resources, name, func(r *resource, name string) int { return strings.Compare(r.Name, name) })
}

func (t *tree) resourceNames() string {
	names := make([]string, len(t.resources))
	for i, r := range t.resources {
		names[i] = r.Name
	}
	return strings.Join(names, ", ")
}

// nearest is the node at path, or else its nearest ancestor that exists.
func (t *tree) nearest(path string) *node {
	for {
		if n := t.byPath[path]; n != nil {
			return n
		}
		path = quota.ParentPath(path)
	}
}

// addUsage books an amount at the node and all its ancestors; a negative one gives back.
func (n *node) addUsage(r int, amount quota.Amount) {
	n.own[r] += amount
	for at := n; at != nil; at = at.parent {
		at.subtree[r] += amount
	}
	if n.special {
		n.draw(r, amount)
	}
}

// walk yields the node and all below it, parents before children, siblings by name, until yield answers false.
func (n *node) walk(yield func(*node) bool) bool {
	if !yield(n) {
		return false
	}
	for _, child := range n.children {
		if !child.walk(yield) {
			return false
		}
	}
	return true
}

// Nodes that are made on demand (CreateUnknown, docs/adr/0025): a claim at a path that does not exist brings its nodes
// along. They sprout, that is, they have a parent and limits but are in no tree yet, until the request is admitted, and
// vanish at the end of the command after which nothing is held at or below them.

// addDynamicNodes makes the nodes that lack from the nearest known one to a path, sharing those of earlier claims.
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

// isDetached is true for a node made on demand that is not part of its tree yet.
func (n *node) isDetached() bool { return n.dynamic && n.id == 0 }

// newDynamicNodes are the nodes that an allocation brings along, parents before children.
func (a *Allocation) newDynamicNodes() []*node {
	var list []*node
	for i := range a.claims {
		var up []*node
		for n := a.claims[i].at; n.isDetached(); n = n.parent {
			if slices.Contains(list, n) {
				break
			}
			up = append(up, n)
		}
		slices.Reverse(up)
		list = append(list, up...)
	}
	return list
}

// checkDynamicNodes refuses a request that would bring along more nodes than there may be.
func (f *forest) checkDynamicNodes(a *Allocation) *quota.Error {
	sprouts := a.newDynamicNodes()
	if n := f.nodes + len(sprouts); n > f.bounds.Nodes {
		return quota.Errorf(quota.Full, "claims", "with the nodes that the request needs the ledger would have %d; at most %d are allowed: release what is held at nodes made on demand, or claim at one that exists", n, f.bounds.Nodes)
	}
	more := map[*tree]int{}
	for _, s := range sprouts {
		more[s.tree]++
		if n := (len(s.tree.byPath) + more[s.tree]) * len(s.tree.resources); n > f.bounds.Cells {
			return quota.Errorf(quota.Full, "claims", "with the nodes that the request needs tree %s would have %d nodes times resources; at most %d are allowed: release what is held at nodes made on demand, or claim at one that exists", s.treeName, n, f.bounds.Cells)
		}
		if n := len(s.tree.byPath) + more[s.tree]; n > f.bounds.NodesPerTree {
			return quota.Errorf(quota.Full, "claims", "with the nodes that the request needs tree %s would have %d; at most %d are allowed: release what is held at nodes made on demand, or claim at one that exists", s.treeName, n, f.bounds.NodesPerTree)
		}
	}
	return nil
}

// attachDynamicNodes makes the nodes that an allocation brings along part of their trees.
func (f *forest) attachDynamicNodes(a *Allocation) {
	for _, n := range a.newDynamicNodes() {
		n.assignID(f)
		n.attachTo(n.parent)
		f.nodes++
		f.bytes += n.bytes()
	}
}

// attachDynamicNodes is the same within a trial.
func (t *staged) attachDynamicNodes() {
	sprouts := t.newcomer().newDynamicNodes()
	before := t.ledger.forest.nodeID
	t.ledger.forest.attachDynamicNodes(t.newcomer())
	t.onUndo(func() {
		for _, n := range slices.Backward(sprouts) {
			t.ledger.forest.detachNode(n)
			n.id = 0
		}
		t.ledger.forest.nodeID = before
	})
}

func (f *forest) detachNode(n *node) {
	siblings := n.parent.children
	n.parent.children = slices.Delete(siblings, slices.Index(siblings, n), slices.Index(siblings, n)+1)
	delete(n.tree.byPath, n.path)
	f.nodes--
	f.bytes -= n.bytes()
}

// noteIdle remembers that a claim has left a node that was made on demand.
func (f *forest) noteIdle(n *node) {
	if n.dynamic {
		f.idleCandidates = append(f.idleCandidates, n)
	}
}

// removeIdleNodes lets nodes made on demand vanish where nothing is held any more. It runs at the end of a command, when nothing can
// be taken back. It answers whether any did.
func (f *forest) removeIdleNodes() (any bool) {
	for _, n := range f.idleCandidates {
		for n.dynamic && n.isIdle() && n.tree.byPath[n.path] == n {
			f.detachNode(n)
			n, any = n.parent, true
		}
	}
	f.idleCandidates = nil
	return any
}

// isIdle is true if no claim is counted at the node or belongs there, nobody waits for room there, and nothing is below.
func (n *node) isIdle() bool { return n.claims+n.homes+len(n.queues)+len(n.children) == 0 }
