package ledger

import (
	"slices"
	"strconv"

	"github.com/quorate/quorate/quota"
)

// succession is a draft with what it takes over from the tree that it is to replace: which node continues which, and the
// usage that this means. Either tree may be nil: then one comes, or the other goes.
type succession struct {
	draft, old *tree
	// next has for each node of the old tree the one of the draft that continues it.
	next map[*node]*node
	// homings are claims that come home, and belongs what nodes of the old tree would hold if those had been there.
	homings []homing
	belongs map[*node][]quota.Amount
	// changes are the differences; see differ.
	changes []quota.Change
}

// origin says which node of a tree the one at a path of a draft continues, nil if none.
type origin func(path string) *node

// byItsPath is the origin of a draft whose nodes stay where they are.
func (t *tree) byItsPath(path string) *node { return t.byPath[path] }

// succeed makes a draft continue a tree. The first origin counts, then the next for what is left.
func succeed(draft, old *tree, origins ...origin) *succession {
	s := &succession{draft: draft, old: old, next: map[*node]*node{}}
	if draft == nil || old == nil {
		return s
	}
	s.next = make(map[*node]*node, len(draft.byPath))
	for _, from := range origins {
		draft.root.walk(func(n *node) bool {
			if n.from == nil {
				s.follow(n, from(n.path))
			}
			return true
		})
	}
	s.keepMade()
	s.carryUsage()
	return s
}

// follow makes n of the draft continue was, unless another does already.
func (s *succession) follow(n, was *node) {
	if was != nil && s.next[was] == nil {
		n.from, s.next[was] = was, n
	}
}

// keepMade takes over the nodes that were made on demand, under whatever their parents have become. What is configured
// there now adopts them.
func (s *succession) keepMade() {
	s.old.root.walk(func(was *node) bool {
		if !was.made || s.next[was] != nil || s.next[was.parent] == nil {
			return true
		}
		parent := s.next[was.parent]
		path := quota.ChildPath(parent.path, was.name())
		n := s.draft.byPath[path]
		if n == nil {
			n = s.draft.blank(&quota.NodeSpec{Path: path})
			n.made = true
			n.hang(parent)
			n.settle()
		}
		if n.from == nil {
			s.follow(n, was)
		}
		return true
	})
}

// hang puts a node into its tree.
func (n *node) hang(parent *node) {
	n.parent = parent
	i, _ := slices.BinarySearchFunc(parent.children, n, byPath)
	parent.children = slices.Insert(parent.children, i, n)
	n.tree.byPath[n.path] = n
}

// carryUsage gives the draft's nodes the usage that they take over, and adds it up.
func (s *succession) carryUsage() {
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

// carryAccounts gives the draft what users, groups and applications hold, so that their limits can be asked like those of
// nodes. Every home goes on: checkInUse has said so.
func (s *succession) carryAccounts() {
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

// places answers for each of some resources its index in the tree, or -1.
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

// stays is true if the node stands under the same parent and with the same name as before.
func (n *node) stays() bool {
	return n.parent == nil || n.from != nil && n.parent.from != nil && n.from.parent == n.parent.from && n.from.name() == n.name()
}

// isNew is true for a node of a draft that was not configured before.
func (n *node) isNew() bool { return n.from == nil || n.from.made }

// wayBack are moves that lead from the paths of the draft to those of the old tree, once what is new is taken away. All
// but a single one go through names that no node can have, because nodes may have changed places.
func (s *succession) wayBack() []quota.Move {
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
	for i, n := range slices.Backward(moved) { // what is below first
		aside[n] = "~" + strconv.Itoa(i)
		moves = append(moves, quota.Move{From: n.path, To: aside[n]})
	}
	slices.SortFunc(moved, func(a, b *node) int { return comparePaths(a.from.path, b.from.path) })
	for _, n := range moved { // what is above first
		moves = append(moves, quota.Move{From: aside[n], To: n.from.path})
	}
	return moves
}
