package configure

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// pathTree is a position in a tree of paths, with which moves of nodes are computed. A path exists if there is a node
// at it or below. A move costs the depth of its paths.
type pathTree struct {
	name  string
	above *pathTree
	below map[string]*pathTree
	// spec is nil if there are nodes below only; its path is the original one. from is the node of the ledger.
	spec *quota.NodeSpec
	from *state.Node
}

// newPathTree takes nil for an empty tree.
func newPathTree(t *state.Tree) *pathTree {
	root := &pathTree{}
	if t != nil {
		t.Root.Walk(func(n *state.Node) bool {
			if !n.Dynamic {
				s := root.ensurePath(n.Path)
				s.spec, s.from = n.Spec, n
			}
			return true
		})
	}
	return root
}

func (s *pathTree) findPath(path string) *pathTree {
	for path != "" && s != nil {
		var name string
		name, path, _ = strings.Cut(path, "/")
		s = s.below[name]
	}
	return s
}

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
	draft, old *state.Tree
	// next maps each node of the old tree to the node of the draft that continues it.
	next map[*state.Node]*state.Node
	// rehomings are claims that come home, and belongs what nodes of the old tree would hold if those had been there.
	rehomings  []state.Rehoming
	heldAtHome map[*state.Node][]quota.Amount
	// changes are the differences; see Differ.
	changes []quota.Change
	// redefined is true if a node that stays gets other rules.
	redefined bool
}

// isChanged is true if the tree differs, or follows other rules.
func (s *treeTransition) isChanged() bool { return len(s.changes) > 0 || s.redefined }

func (s *treeTransition) treeName() string {
	if s.draft != nil {
		return s.draft.Name
	}
	return s.old.Name
}

// predecessor returns the node of a tree that the node at a path of a draft continues, nil if none.
type predecessor func(path string) *state.Node

func treeByPath(t *state.Tree, path string) *state.Node { return t.ByPath[path] }

// newTransition makes a draft continue a tree. The first predecessor function counts, then the next for the remaining
// nodes.
func newTransition(draft, old *state.Tree, origins ...predecessor) *treeTransition {
	s := &treeTransition{draft: draft, old: old, next: map[*state.Node]*state.Node{}}
	if draft == nil || old == nil {
		return s
	}
	s.next = make(map[*state.Node]*state.Node, len(draft.ByPath))
	for _, from := range origins {
		draft.Root.Walk(func(n *state.Node) bool {
			if n.From == nil {
				s.followMoves(n, from(n.Path))
			}
			return true
		})
	}
	s.keepDynamic()
	s.carrySchedules()
	s.carryUsage()
	draft.Root.Walk(func(n *state.Node) bool {
		s.redefined = n.From != nil && n.From.Policy != n.Policy
		return !s.redefined
	})
	return s
}

// followMoves makes n of the draft continue previous, unless another node does already.
func (s *treeTransition) followMoves(n, previous *state.Node) {
	if previous != nil && s.next[previous] == nil {
		n.From, s.next[previous] = previous, n
	}
}

// keepDynamic keeps dynamic nodes under the continuation of their parents. Nodes that are now configured replace
// dynamic ones.
func (s *treeTransition) keepDynamic() {
	s.old.Root.Walk(func(previous *state.Node) bool {
		if !previous.Dynamic || s.next[previous] != nil || s.next[previous.Parent] == nil {
			return true
		}
		parent := s.next[previous.Parent]
		path := quota.ChildPath(parent.Path, previous.Name())
		n := s.draft.ByPath[path]
		if n == nil {
			n = admit.NewBlankNode(s.draft, &quota.NodeSpec{Path: path})
			n.Dynamic = true
			n.AttachTo(parent)
			admit.DeriveSettings(n)
		}
		if n.From == nil {
			s.followMoves(n, previous)
		}
		return true
	})
}

// carryUsage gives the draft's nodes the usage of their predecessors, and sums it.
func (s *treeTransition) carryUsage() {
	from := placesByPath(s.old, s.draft.Resources)
	s.draft.Root.Walk(func(n *state.Node) bool {
		if n.From != nil {
			for i, f := range from {
				if f >= 0 {
					n.Own[i] = n.From.Own[f]
				}
			}
		}
		return true
	})
	addUp(s.draft.Root)
	admit.RepoolTree(s.draft)
}

// carryAccounts gives the draft the usage of users, groups and applications, so that their limits can be checked like
// those of nodes. Every home continues, as checkInUse has verified.
func (s *treeTransition) carryAccounts() {
	if s.old == nil {
		return
	}
	for _, previous := range s.old.Accounts.Tracks { // sums, in whatever order
		key := previous.TrackKey
		key.Home = s.next[previous.Home]
		updated := &state.Track{TrackKey: key, Claims: previous.Claims}
		for _, p := range previous.Held {
			if r := s.draft.Resource(p.Resource.Name); r != nil {
				updated.Held = append(updated.Held, state.PlacedAmount{Resource: r, Amount: p.Amount})
			}
		}
		updated.Enter()
		updated.Count(updated.Held, updated.Claims, 1)
	}
}

// addUp recomputes the usage of the subtree from own usage.
func addUp(n *state.Node) {
	copy(n.Subtree, n.Own)
	for _, child := range n.Children {
		addUp(child)
		for i, amount := range child.Subtree {
			n.Subtree[i] += amount
		}
	}
}

// placesByPath has the index in the tree of each resource, or -1.
func placesByPath(t *state.Tree, resources []*state.Resource) []int {
	list := make([]int, len(resources))
	for i, r := range resources {
		list[i] = -1
		if known := t.Resource(r.Name); known != nil {
			list[i] = known.Index
		}
	}
	return list
}

// staysInPlace is true if the node has the same parent and name as before.
func staysInPlace(n *state.Node) bool {
	return n.Parent == nil || n.From != nil && n.Parent.From != nil && n.From.Parent == n.Parent.From &&
		n.From.Name() == n.Name()
}

func isNewNode(n *state.Node) bool { return n.From == nil || n.From.Dynamic }

// inverseMoves are moves from the paths of the draft to those of the old tree, after new nodes are removed. All but a
// single one use temporary names that no node can have, because nodes may have exchanged paths.
func (s *treeTransition) inverseMoves() []quota.Move {
	var moved []*state.Node
	s.draft.Root.Walk(func(n *state.Node) bool {
		if !isNewNode(n) && !staysInPlace(n) {
			moved = append(moved, n)
		}
		return true
	})
	if len(moved) == 1 && !quota.IsWithin(moved[0].From.Path, moved[0].Path) {
		return []quota.Move{{From: moved[0].Path, To: moved[0].From.Path}}
	}
	var moves []quota.Move
	aside := map[*state.Node]string{}
	for i, n := range slices.Backward(moved) { // descendants first
		aside[n] = "~" + strconv.Itoa(i)
		moves = append(moves, quota.Move{From: n.Path, To: aside[n]})
	}
	slices.SortFunc(moved, func(a, b *state.Node) int { return state.ComparePaths(a.From.Path, b.From.Path) })
	for _, n := range moved { // ancestors first
		moves = append(moves, quota.Move{From: aside[n], To: n.From.Path})
	}
	return moves
}
