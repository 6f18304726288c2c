package oracle

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// admit decides whether there is room for a request, and moves the claims that must move if it is granted.
func (o *oracle) admit(a *allocation) ([]quota.Violation, *placementTrial) {
	before := o.savePlaces()
	o.deciding = a
	t := &placementTrial{oracle: o}
	o.allocations = append(o.allocations, a)
	for i := range a.request.Claims {
		o.excluded = append(o.excluded, claimRef{a, i}) // until it has a placement
	}
	var plain, forced placedClaims
	unplaced := -1
	for i, c := range a.request.Claims {
		switch {
		case isForced(a.asked):
			forced.add(c, a.claimed[i])
		case !o.borrows(c.Tree, a.claimed[i]):
			plain.add(c, a.claimed[i])
		case unplaced < 0 && !t.findPlacement(claimRef{a, i}):
			unplaced = i
		}
	}
	inTheWay := func() []quota.Violation {
		if unplaced < 0 {
			return nil
		}
		return o.inTheWay(a.request.Claims[unplaced], a.claimed[unplaced])
	}
	rest := func(victims []*allocation) []quota.Violation {
		return slices.Concat(o.uncountable(forced.claims, forced.placed), o.cohortViolations(a), o.principalViolations(a),
			o.itemViolations(a.asked, victims))
	}
	tried := inTheWay()
	if unplaced < 0 {
		tried = append(o.violations(plain.claims, plain.placed), rest(t.victims)...)
	}
	o.allocations = o.allocations[:len(o.allocations)-1]
	if unplaced < 0 && len(tried) == 0 {
		return nil, t
	}
	// The reasons are those of the ledger as it is; if it has none, those of the trial.
	o.restorePlaces(before)
	all := append(o.violations(plain.claims, plain.placed), inTheWay()...)
	all = append(all, o.inTheWayBehind(a, unplaced)...)
	if all = append(all, rest(nil)...); len(all) == 0 {
		all = tried
	}
	return all, nil
}

// inTheWayBehind is what is in the way of the borrowing claims behind the first that has no placement, each alone.
func (o *oracle) inTheWayBehind(a *allocation, unplaced int) []quota.Violation {
	var list []quota.Violation
	for i, c := range a.request.Claims {
		if unplaced < 0 || i <= unplaced || isForced(a.asked) || !o.borrows(c.Tree, a.claimed[i]) {
			continue
		}
		t, before := &placementTrial{oracle: o}, o.savePlaces()
		o.allocations = append(o.allocations, a)
		for j := range a.request.Claims {
			o.excluded = append(o.excluded, claimRef{a, j})
		}
		placed := t.findPlacement(claimRef{a, i})
		o.allocations = o.allocations[:len(o.allocations)-1]
		o.restorePlaces(before)
		if !placed {
			list = append(list, o.inTheWay(c, a.claimed[i])...)
		}
	}
	return list
}

// placedClaims are claims with the node where each is counted.
type placedClaims struct {
	claims []quota.Claim
	placed []string
}

func (p *placedClaims) add(c quota.Claim, path string) {
	p.claims, p.placed = append(p.claims, c), append(p.placed, path)
}

// places is where every claim is counted.
type places struct {
	placed      [][]string
	arrivals    [][]uint64
	lastArrival uint64
}

func (o *oracle) savePlaces() places {
	s := places{lastArrival: o.lastArrival}
	for _, a := range o.allocations {
		s.placed, s.arrivals = append(s.placed, slices.Clone(a.placed)), append(s.arrivals, slices.Clone(a.arrivals))
	}
	return s
}

// restorePlaces puts every claim back. It copies, because the same places may be restored again after further trials,
// which move claims in place.
func (o *oracle) restorePlaces(s places) {
	for i, a := range o.allocations {
		a.placed, a.arrivals = slices.Clone(s.placed[i]), slices.Clone(s.arrivals[i])
	}
	o.lastArrival, o.excluded = s.lastArrival, nil
}

// countAt counts a claim at a node, as the last in the order of arrival if the node borrows.
func (o *oracle) countAt(c claimRef, path string) {
	c.placed[c.i], c.arrivals[c.i] = path, 0
	if o.borrows(c.claim().Tree, path) {
		o.lastArrival++
		c.arrivals[c.i] = o.lastArrival
	}
}

func (o *oracle) isExcluded(c claimRef) bool { return slices.Contains(o.excluded, c) }

func (o *oracle) borrows(tree, path string) bool {
	return o.rulesAt(o.trees[tree], path).Borrowing == "soft"
}

func (o *oracle) hard(tree, path string) bool {
	n := quotatest.FindNode(o.trees[tree], path)
	return n != nil && n.Hard
}

// isLeaf is true if no node is below a path, not even a dynamic one.
func (o *oracle) isLeaf(tree, path string) bool {
	isBelow := func(other string) bool { return other != path && quotatest.Below(other, path) }
	if slices.ContainsFunc(o.trees[tree].Nodes, func(n quota.NodeSpec) bool { return isBelow(n.Path) }) {
		return false
	}
	for _, a := range o.held() {
		for i, c := range a.request.Claims {
			if c.Tree == tree && isBelow(a.claimed[i]) {
				return false
			}
		}
	}
	return true
}

// borrowRegion is the path and all above it, as far as it borrows without a gap.
func (o *oracle) borrowRegion(tree, path string) []string {
	var list []string
	for _, at := range quotatest.Upwards(path) {
		if !o.borrows(tree, at) {
			break
		}
		list = append(list, at)
	}
	return list
}

// borrowersAt are the claims that are counted at a borrowing node, by arrival.
func (o *oracle) borrowersAt(tree, path string) []claimRef {
	var list []claimRef
	for _, a := range o.held() {
		for i, c := range a.request.Claims {
			if c.Tree == tree && a.placed[i] == path && a.arrivals[i] > 0 && !o.isExcluded(claimRef{a, i}) {
				list = append(list, claimRef{a, i})
			}
		}
	}
	slices.SortFunc(list, byArrival)
	return list
}

func byArrival(a, b claimRef) int { return cmp.Compare(a.arrivals[a.i], b.arrivals[b.i]) }

// reclaim lets claims come down by one node, at the path and at every node above.
func (o *oracle) reclaim(tree, path string) {
	for _, n := range quotatest.Upwards(path) {
		up := quotatest.Above(n)
		if n == "" || !o.borrows(tree, n) || !o.borrows(tree, up) {
			continue
		}
		for _, v := range o.borrowersAt(tree, up) {
			claimed := v.claimed[v.i]
			if o.isLeaf(tree, claimed) && quotatest.Below(claimed, n) && o.hasRoomFor(tree, n, v.claim()) {
				o.countAt(v, n)
			}
		}
	}
}

// leaves are the claims of a tree that belong to a leaf.
func (o *oracle) leaves() map[claimRef]bool {
	at := map[claimRef]bool{}
	for _, a := range o.held() {
		for i, c := range a.request.Claims {
			at[claimRef{a, i}] = o.isLeaf(c.Tree, a.claimed[i])
		}
	}
	return at
}

// rehomeClaims updates a tree after a change: claims at nodes that borrow now get a number of arrival, others lose it,
// and claims that can no longer be counted where they borrow are counted where they belong. wasLeaf has the claims that
// belonged to a leaf before.
func (o *oracle) rehomeClaims(tree string, wasLeaf map[claimRef]bool) {
	var borrowers []claimRef
	for _, a := range o.held() {
		for i, c := range a.request.Claims {
			switch {
			case c.Tree != tree:
			case !o.borrows(tree, a.placed[i]):
				a.arrivals[i] = 0
			case a.arrivals[i] == 0:
				o.countAt(claimRef{a, i}, a.placed[i])
				fallthrough
			default:
				borrowers = append(borrowers, claimRef{a, i})
			}
		}
	}
	slices.SortFunc(borrowers, byArrival)
	for _, c := range borrowers {
		claimed, placed := c.claimed[c.i], c.placed[c.i]
		if claimed != placed && (wasLeaf[c] && !o.isLeaf(tree, claimed) ||
			!slices.Contains(o.borrowRegion(tree, claimed), placed)) {
			o.countAt(c, claimed)
		}
	}
}
