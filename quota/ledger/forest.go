package ledger

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// resource is a registered resource with its index in the arrays of nodes.
type resource struct {
	quota.Resource
	index int
	holds int // components of held claims
	// queues are those of requests for its items.
	queues []*blockerQueue
	// stock is nil unless the resource is itemized; always nil in a draft.
	stock *stock
}

// forest owns the trees, their nodes and the usage counted at them.
type forest struct {
	*environment
	trees map[string]*tree
	// policies are those that trees may name.
	policies *policySet
	nodes    int    // in all trees
	nodeID   uint64 // last assigned
	version  uint64 // last assigned to a tree, see markChanged
	bytes    int64  // size of the trees and policies, see quota.Sizes
	// idleCandidates are dynamic nodes that a claim has left in the present command.
	idleCandidates []*node
	// usedCells are where the use of limits with thresholds has changed in the present command, rewarned the trees whose
	// configuration has changed; see judgeThresholds.
	usedCells []usedCell
	rewarned  []*tree
	// onHold are the nodes on hold by their identities, drained those that are being drained and that a claim has left in
	// the present command.
	onHold  map[uint64]*node
	drained []*node
	// forgotten is the log index of the state that the ledger began with, configured that of the last change of the
	// configuration or of access; see Reader.Changes.
	forgotten, configured uint64
}

// tree is a hierarchy of nodes.
type tree struct {
	env       *environment
	name      string
	settings  quota.TreeSettings
	resources []*resource // by name
	root      *node
	byPath    map[string]*node
	policies  *policySet
	claims    int // held claims in the whole tree
	accounts  accounts
	// governed is true if any node names admins.
	governed bool
	// soft is true if any node of the tree borrows softly.
	soft bool
	// version changes with every change of usage in the tree, see markChanged.
	version uint64
	// queues are all queues whose blocker is in the tree.
	queues []*blockerQueue
	marks  treeMarks
}

// node is a node of a tree. It exists as long as it is configured or, if it is dynamic, holds something. A change of
// configuration changes it in place, so that allocations keep pointing at it.
type node struct {
	id uint64 // never changes
	// address is replaced, never changed, when the node is renamed or moved. It has the path.
	*address

	tree     *tree
	parent   *node
	children []*node // by name
	spec     *quota.NodeSpec
	bindings *access.Table // those of the specification; nil if there are none
	policy   *policy.Policy
	// By resource index: the configured limits, and the usage.
	limits       []quota.Limit
	ceilings     []quota.Amount // the limits that admission compares with: effective limits, MaxAmount if unlimited
	own, subtree []quota.Amount
	claims       int // held claims placed here
	// fallbacks are the defaults for unset limits of the children, by resource index: the node's own, or else the
	// parent's. Nil if there are none.
	fallbacks []quota.Limit
	// borrows is how the policy borrows; special is true if the node or one above it borrows.
	borrows policy.Borrowing
	special bool
	// strict is true if requests that wait for capacity here must not be overtaken; queues are those of such requests.
	strict bool
	queues []*blockerQueue
	// dynamic is true if a claim created the node (CreateUnknown): it is not configured, and is removed when it is idle.
	dynamic bool
	homes   int // held claims that belong here and are counted further up
	// borrowers has the claims counted here if the node borrows softly; nil if there never was one.
	borrowers *borrowIndex
	// rules limit users and groups; nil if there are none. applications is the number of running applications in the
	// subtree.
	rules        *rules
	applications int
	// warnAt are the thresholds in force, nil if there are none; hasThresholds is true if the node or one above it has
	// some. crossed are those that are crossed, by resource; nil if there are none.
	warnAt        *quota.WarnAt
	hasThresholds bool
	crossed       map[*resource][]int
	// scheduled are the limits that the calendar has for the node, in the order in which they were made; a list is
	// replaced, never changed.
	scheduled []*scheduledLimit
	// raisedByRule is when the rule of the parent last approved a request for limits of the node; 0 if it never has.
	raisedByRule quota.Instant
	// hold is nil unless the node is on hold.
	hold *HoldImage
	// In a cohort, by resource index: the bounds of borrowing, MaxAmount if there are none, and the pools.
	borrow, lend []quota.Amount
	pools        []pool
	// from, in a draft only, is the predecessor of the node in the ledger; nil if it is new.
	from *node
	mark nodeMark
}

// address is the tree and path of a node. Allocations keep the one at which they were granted.
type address struct{ treeName, path string }

func (n *node) name() string { return quota.LastName(n.path) }

func (n *node) place() string { return quota.Place(n.treeName, n.path) }

// effective is the limit in force for a resource.
func (n *node) effective(r int) quota.Limit {
	limit := n.configuredLimit(r)
	if len(n.scheduled) == 0 {
		return limit
	}
	return n.adjusted(r, limit, (*scheduledLimit).isInForce)
}

// configuredLimit is the limit for a resource by the configuration alone.
func (n *node) configuredLimit(r int) quota.Limit {
	var fallback quota.Limit
	if n.parent != nil && n.parent.fallbacks != nil {
		fallback = n.parent.fallbacks[r]
	}
	return n.policy.Effective(n.limits[r], fallback)
}

func (t *tree) resource(name string) *resource {
	if i, found := t.findResource(name); found {
		return t.resources[i]
	}
	return nil
}

func (t *tree) findResource(name string) (int, bool) {
	return slices.BinarySearchFunc(t.resources, name,
		func(r *resource, name string) int { return strings.Compare(r.Name, name) })
}

func (t *tree) resourceNames() string {
	names := make([]string, len(t.resources))
	for i, r := range t.resources {
		names[i] = r.Name
	}
	return strings.Join(names, ", ")
}

// nearest is the node at path, or its nearest existing ancestor.
func (t *tree) nearest(path string) *node {
	for {
		if n := t.byPath[path]; n != nil {
			return n
		}
		path = quota.ParentPath(path)
	}
}

// addUsage charges an amount to the node and all its ancestors; a negative one is a refund.
func (n *node) addUsage(r int, amount quota.Amount) {
	n.own[r] += amount
	for at := n; at != nil; at = at.parent {
		at.subtree[r] += amount
	}
	if n.special {
		n.draw(r, amount)
	}
}

// walk yields the node and its subtree, parents before children, siblings by name, until yield returns false.
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

// Dynamic nodes (CreateUnknown, docs/adr/0025): a claim at a path that does not exist creates its nodes. Until the
// request is admitted they are detached: they have a parent and limits but are not yet in the tree. They are removed at
// the end of the command that empties them.

// isDetached is true for a dynamic node that is not in its tree yet.
func (n *node) isDetached() bool { return n.dynamic && n.id == 0 }

// newDynamicNodes are the detached nodes of an allocation, parents before children.
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

// checkDynamicNodes refuses a request whose dynamic nodes would exceed a bound.
func (f *forest) checkDynamicNodes(a *Allocation) *quota.Error {
	sprouts := a.newDynamicNodes()
	if n := f.nodes + len(sprouts); n > f.bounds.Nodes {
		return quota.Errorf(quota.Full, "claims",
			"with the nodes that the request needs the ledger would have %d; at most %d are allowed: release what is "+
				"held at nodes made on demand, or claim at one that exists", n, f.bounds.Nodes)
	}
	more := map[*tree]int{}
	for _, s := range sprouts {
		more[s.tree]++
		if n := (len(s.tree.byPath) + more[s.tree]) * len(s.tree.resources); n > f.bounds.Cells {
			return quota.Errorf(quota.Full, "claims",
				"with the nodes that the request needs tree %s would have %d nodes times resources; at most %d are "+
					"allowed: release what is held at nodes made on demand, or claim at one that exists", s.treeName,
				n, f.bounds.Cells)
		}
		if n := len(s.tree.byPath) + more[s.tree]; n > f.bounds.NodesPerTree {
			return quota.Errorf(quota.Full, "claims",
				"with the nodes that the request needs tree %s would have %d; at most %d are allowed: release what "+
					"is held at nodes made on demand, or claim at one that exists", s.treeName, n,
				f.bounds.NodesPerTree)
		}
	}
	return nil
}

func (f *forest) detachNode(n *node) {
	siblings := n.parent.children
	n.parent.children = slices.Delete(siblings, slices.Index(siblings, n), slices.Index(siblings, n)+1)
	delete(n.tree.byPath, n.path)
	n.tree.marks.remove(n)
	f.markNode(n.parent)
	f.nodes--
	f.bytes -= n.bytes()
}

// noteIdle records that a claim has left a dynamic node.
func (f *forest) noteIdle(n *node) {
	if n.dynamic {
		f.idleCandidates = append(f.idleCandidates, n)
	}
}

// removeIdleNodes removes idle dynamic nodes and reports whether it removed any. It runs at the end of a command, when
// nothing can be reverted any more.
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

// isIdle is true if no claim is counted at the node or belongs there, no request waits for its capacity, and it has no
// children.
func (n *node) isIdle() bool { return n.claims+n.homes+len(n.queues)+len(n.children) == 0 }

// markChanged assigns a new version to a tree whose usage or configuration changed. Equal versions of a tree mean equal
// placements: a cancellation that finds the version that its reservation left knows that nothing happened in between.
func (f *forest) markChanged(t *tree) {
	f.version++
	t.version = f.version
}

// ceiling is what the plain check holds the subtree to. In a cohort a limit is not a cap: checkBounded looks at it.
func (n *node) ceiling(r int) quota.Amount {
	if n.borrows == policy.BorrowBounded {
		return quota.MaxAmount
	}
	return n.effective(r).Ceiling()
}

// byConfiguration is recorded as the cause of the end of a request whose node or resource was removed.
const byConfiguration = "configuration"

// policySet is the policies that a configuration may name: the built-in ones and those that it defines. It is never
// changed: a change of definitions makes another one, in which a policy whose rules stay is the same value. So equal
// pointers mean that no rule of a node has changed.
type policySet struct {
	specs   []quota.PolicySpec // by name
	defined map[string]*policy.Policy
}

// nodeHold is the hold of the node for readers.
func (n *node) nodeHold() quota.NodeHoldInfo {
	return quota.NodeHoldInfo{Tree: n.treeName, Node: n.path, NodeHold: n.hold.NodeHold}
}

// holdAbove is the nearest hold of the node or of one above it, for readers; nil if there is none.
func (n *node) holdAbove() *quota.NodeHoldInfo {
	for ; n != nil; n = n.parent {
		if n.hold != nil {
			hold := n.nodeHold()
			return &hold
		}
	}
	return nil
}

// HoldImage is a hold in a snapshot.
type HoldImage struct {
	quota.NodeHold
	// DrainAt is when the next step of the drain is due, 0 if all leases have been revoked. It goes on after the fence
	// DrainAfter.
	DrainAt    quota.Instant
	DrainAfter uint64
}

// swapLimit puts another limit in force, as SetLimits does.
func (n *node) swapLimit(resource int, limit quota.Limit) {
	n.limits[resource] = limit
	n.ceilings[resource] = n.ceiling(resource)
	if n.pools != nil {
		n.setPoolLimit(resource, n.effective(resource).Ceiling())
	}
}

func (t *tree) registered() []quota.Resource {
	list := make([]quota.Resource, len(t.resources))
	for i, r := range t.resources {
		list[i] = r.Resource
	}
	return list
}

// comparePaths orders paths like walk: by name at each level, which is byte order with the slash first.
func comparePaths(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i] != b[i] {
			return rank(a[i]) - rank(b[i])
		}
	}
	return len(a) - len(b)
}

func rank(c byte) int {
	if c == '/' {
		return 0
	}
	return int(c)
}

// nearestNode is the node at a place, or the nearest above it that exists; nil in a tree that does not exist.
func (f *forest) nearestNode(tree, path string) *node {
	if t := f.trees[tree]; t != nil {
		return t.nearest(path)
	}
	return nil
}

// pathAt are the tables of bindings from a node up, and that of the cluster; readers that share the ledger each have
// their own.
func (f *forest) pathAt(n *node) access.Path {
	var path access.Path
	for ; n != nil; n = n.parent {
		path = append(path, n.bindings)
	}
	return append(path, f.book.Cluster())
}
