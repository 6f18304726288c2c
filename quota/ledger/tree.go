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
	// lines are those of requests that wait for items of it.
	lines []*line
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
	// vacated are dynamic nodes that a claim has left in the present command.
	vacated []*node
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
	// lines are all in which requests wait for something in the tree.
	lines []*line
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
	lines  []*line
	// made is true if the node was made on demand (CreateUnknown): it is not configured, and goes when nothing is held there.
	made  bool
	homes int // held claims that are counted further up, but belong here
	// bench has the claims counted here if the node borrows softly; nil if there never was one.
	bench *bench
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

// add books an amount at the node and all its ancestors; a negative one gives back.
func (n *node) add(r int, amount quota.Amount) {
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
