package ledger

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/quota"
)

// pathTree is a position in a tree of paths, with which moves of nodes are computed. A path exists if there is a node
// at it or below. A move costs the depth of its paths.
type pathTree struct {
	name  string
	above *pathTree
	below map[string]*pathTree
	// spec is nil if there are nodes below only; its path is the original one. from is the node of the ledger.
	spec *quota.NodeSpec
	from *node
}

// newPathTree returns the paths of the configured nodes of a tree; nil is an empty tree.
func (t *tree) newPathTree() *pathTree {
	root := &pathTree{}
	if t != nil {
		t.root.walk(func(n *node) bool {
			if !n.dynamic {
				s := root.ensurePath(n.path)
				s.spec, s.from = n.spec, n
			}
			return true
		})
	}
	return root
}

// findPath returns the position at a path below, or nil.
func (s *pathTree) findPath(path string) *pathTree {
	for path != "" && s != nil {
		var name string
		name, path, _ = strings.Cut(path, "/")
		s = s.below[name]
	}
	return s
}

// ensurePath returns the position at a path below, and creates it if necessary.
func (s *pathTree) ensurePath(path string) *pathTree {
	for path != "" {
		var name string
		name, path, _ = strings.Cut(path, "/")
		next := s.below[name]
		if next == nil {
			next = &pathTree{name: name}
			next.attachChild(s)
		}
		s = next
	}
	return s
}

func (s *pathTree) attachChild(above *pathTree) {
	if above.below == nil {
		above.below = map[string]*pathTree{}
	}
	above.below[s.name], s.above = s, above
}

// detachChild removes the position with its subtree, and those above that existed for its sake only.
func (s *pathTree) detachChild() {
	above := s.above
	delete(above.below, s.name)
	s.above = nil
	above.pruneEmpty()
}

// pruneEmpty removes a position without nodes at it or below.
func (s *pathTree) pruneEmpty() {
	if s.spec == nil && len(s.below) == 0 && s.above != nil {
		s.detachChild()
	}
}

// movePath gives the node at one path another path, with its subtree. It does nothing if there is no such node, or the
// other path exists.
func (s *pathTree) movePath(m quota.Move) {
	it := s.findPath(m.From)
	if it == nil || s.findPath(m.To) != nil {
		return
	}
	it.detachChild()
	it.name = quota.LastName(m.To)
	it.attachChild(s.ensurePath(quota.ParentPath(m.To)))
}

// removePath removes the node at a path, but not those below.
func (s *pathTree) removePath(path string) {
	if it := s.findPath(path); it != nil {
		it.spec, it.from = nil, nil
		it.pruneEmpty()
	}
}

// listNodes are the specifications at their present paths, parents before children, siblings by name.
func (s *pathTree) listNodes() []quota.NodeSpec {
	var list []quota.NodeSpec
	s.collectNodes("", &list)
	return list
}

func (s *pathTree) collectNodes(path string, list *[]quota.NodeSpec) {
	if s.spec != nil {
		spec := *s.spec
		spec.Path = path
		*list = append(*list, spec)
	}
	for _, name := range slices.Sorted(maps.Keys(s.below)) {
		s.below[name].collectNodes(quota.ChildPath(path, name), list)
	}
}

// treeTransition is a draft and the tree that it replaces: which node continues which, and the usage that follows from
// it. Either tree may be nil, for a new or a removed tree.
type treeTransition struct {
	draft, old *tree
	// next maps each node of the old tree to the node of the draft that continues it.
	next map[*node]*node
	// rehomings are claims that come home, and belongs what nodes of the old tree would hold if those had been there.
	rehomings  []rehoming
	heldAtHome map[*node][]quota.Amount
	// changes are the differences; see differ.
	changes []quota.Change
	// redefined is true if a node that stays gets other rules.
	redefined bool
}

// isChanged is true if the tree differs, or follows other rules.
func (s *treeTransition) isChanged() bool { return len(s.changes) > 0 || s.redefined }

func (s *treeTransition) treeName() string {
	if s.draft != nil {
		return s.draft.name
	}
	return s.old.name
}

// predecessor returns the node of a tree that the node at a path of a draft continues, nil if none.
type predecessor func(path string) *node

// byItsPath is the predecessor function of a draft whose nodes stay where they are.
func (t *tree) byItsPath(path string) *node { return t.byPath[path] }

// newTransition makes a draft continue a tree. The first predecessor function counts, then the next for the remaining
// nodes.
func newTransition(draft, old *tree, origins ...predecessor) *treeTransition {
	s := &treeTransition{draft: draft, old: old, next: map[*node]*node{}}
	if draft == nil || old == nil {
		return s
	}
	s.next = make(map[*node]*node, len(draft.byPath))
	for _, from := range origins {
		draft.root.walk(func(n *node) bool {
			if n.from == nil {
				s.followMoves(n, from(n.path))
			}
			return true
		})
	}
	s.keepDynamic()
	s.carrySchedules()
	s.carryUsage()
	draft.root.walk(func(n *node) bool {
		s.redefined = n.from != nil && n.from.policy != n.policy
		return !s.redefined
	})
	return s
}

// followMoves makes n of the draft continue was, unless another node does already.
func (s *treeTransition) followMoves(n, was *node) {
	if was != nil && s.next[was] == nil {
		n.from, s.next[was] = was, n
	}
}

// keepDynamic keeps dynamic nodes under the continuation of their parents. Nodes that are now configured replace
// dynamic ones.
func (s *treeTransition) keepDynamic() {
	s.old.root.walk(func(was *node) bool {
		if !was.dynamic || s.next[was] != nil || s.next[was.parent] == nil {
			return true
		}
		parent := s.next[was.parent]
		path := quota.ChildPath(parent.path, was.name())
		n := s.draft.byPath[path]
		if n == nil {
			n = s.draft.blank(&quota.NodeSpec{Path: path})
			n.dynamic = true
			n.attachTo(parent)
			n.deriveSettings()
		}
		if n.from == nil {
			s.followMoves(n, was)
		}
		return true
	})
}

// carryUsage gives the draft's nodes the usage of their predecessors, and sums it.
func (s *treeTransition) carryUsage() {
	from := s.old.places(s.draft.resources)
	s.draft.root.walk(func(n *node) bool {
		if n.from != nil {
			for i, f := range from {
				if f >= 0 {
					n.own[i] = n.from.own[f]
				}
			}
		}
		return true
	})
	s.draft.root.addUp()
	s.draft.repool()
}

// carryAccounts gives the draft the usage of users, groups and applications, so that their limits can be checked like
// those of nodes. Every home continues, as checkInUse has verified.
func (s *treeTransition) carryAccounts() {
	if s.old == nil {
		return
	}
	for _, was := range s.old.accounts.tracks { // sums, in whatever order
		key := was.trackKey
		key.home = s.next[was.home]
		is := &track{trackKey: key, claims: was.claims}
		for _, p := range was.held {
			if r := s.draft.resource(p.resource.Name); r != nil {
				is.held = append(is.held, placedAmount{r, p.amount})
			}
		}
		is.enter()
		is.count(is.held, is.claims, 1)
	}
}

// addUp recomputes the usage of the subtree from own usage.
func (n *node) addUp() {
	copy(n.subtree, n.own)
	for _, child := range n.children {
		child.addUp()
		for i, amount := range child.subtree {
			n.subtree[i] += amount
		}
	}
}

// places returns the index in the tree of each resource, or -1.
func (t *tree) places(resources []*resource) []int {
	list := make([]int, len(resources))
	for i, r := range resources {
		list[i] = -1
		if known := t.resource(r.Name); known != nil {
			list[i] = known.index
		}
	}
	return list
}

// stays is true if the node has the same parent and name as before.
func (n *node) stays() bool {
	return n.parent == nil || n.from != nil && n.parent.from != nil && n.from.parent == n.parent.from &&
		n.from.name() == n.name()
}

// isNew is true for a node of a draft that was not configured before.
func (n *node) isNew() bool { return n.from == nil || n.from.dynamic }

// inverseMoves are moves from the paths of the draft to those of the old tree, after new nodes are removed. All but a
// single one use temporary names that no node can have, because nodes may have exchanged paths.
func (s *treeTransition) inverseMoves() []quota.Move {
	var moved []*node
	s.draft.root.walk(func(n *node) bool {
		if !n.isNew() && !n.stays() {
			moved = append(moved, n)
		}
		return true
	})
	if len(moved) == 1 && !quota.IsWithin(moved[0].from.path, moved[0].path) {
		return []quota.Move{{From: moved[0].path, To: moved[0].from.path}}
	}
	var moves []quota.Move
	aside := map[*node]string{}
	for i, n := range slices.Backward(moved) { // descendants first
		aside[n] = "~" + strconv.Itoa(i)
		moves = append(moves, quota.Move{From: n.path, To: aside[n]})
	}
	slices.SortFunc(moved, func(a, b *node) int { return comparePaths(a.from.path, b.from.path) })
	for _, n := range moved { // ancestors first
		moves = append(moves, quota.Move{From: aside[n], To: n.from.path})
	}
	return moves
}
