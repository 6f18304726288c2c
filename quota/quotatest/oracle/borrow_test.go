package oracle

import (
	"math/big"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// placementTrial finds placements for the claims of a request that may borrow, as sections 2 to 4 of the quota
// manager's semantics say: it pushes other claims upwards, and evicts some, on the oracle itself. A denial restores
// the places.
type placementTrial struct {
	*oracle
	evicted     []claimRef // in the order in which they were chosen
	evictedFrom []string   // the nodes where they were counted
	victims     []*allocation
}

// findPlacement finds the node of a requesting claim; it is counted only when all other claims have moved.
func (t *placementTrial) findPlacement(c claimRef) bool {
	first := len(t.evicted)
	path := t.borrowRegion(c.claim().Tree, c.placed[c.i])
	for {
		at, found, stop := t.searchUpwards(c.claim(), path)
		if found {
			if len(t.violationsAbove(c.claim(), path)) > 0 {
				return false
			}
			t.countAt(c, at)
			t.excluded = slices.DeleteFunc(t.excluded, func(other claimRef) bool { return other == c })
			t.endVictims(first)
			return true
		}
		if !t.preemptLower(c.claim(), path[:slices.Index(path, stop)+1]) {
			return false
		}
	}
}

// searchUpwards is phase 1; stop is the node where it ended.
func (t *placementTrial) searchUpwards(c quota.Claim, path []string) (at string, found bool, stop string) {
	var p pushes
	hardSeen := false
	for _, n := range path {
		stop = n
		hardSeen = hardSeen || t.hard(c.Tree, n)
		if t.hasRoomFor(c.Tree, n, c) || t.pushBorrowers(c, n, path, !found, &p) {
			if !found {
				at, found = n, true
			}
			continue
		}
		if !found {
			if t.hard(c.Tree, n) {
				return "", false, stop
			}
			continue
		}
		t.undoPushes(p)
		found = false
		if hardSeen {
			return "", false, stop
		}
	}
	return at, found, stop
}

// pushes are claims that a search has moved, with the nodes where they were counted first.
type pushes struct {
	claims []claimRef
	from   []string
}

// undoPushes returns all claims to their first nodes, in the order of pushing, as the last arrivals there; those that
// are there already stay.
func (t *placementTrial) undoPushes(p pushes) {
	for i, c := range p.claims {
		if c.placed[c.i] != p.from[i] {
			t.countAt(c, p.from[i])
		}
	}
}

// pushBorrowers makes room at a node: borrowers there move one node up, or at the top of the path are evicted.
func (t *placementTrial) pushBorrowers(c quota.Claim, n string, path []string, onlyLower bool, p *pushes) bool {
	top := n == path[len(path)-1]
	preemption := t.rulesAt(t.trees[c.Tree], n).Preemption
	if t.hard(c.Tree, n) && !top || top && preemption != "borrowers" && preemption != "all" {
		return false
	}
	var chosen []claimRef
	fits := false
	excluded := slices.Clone(t.excluded)
	for _, v := range t.borrowersAt(c.Tree, n) {
		if onlyLower && v.claim().Priority >= c.Priority || top &&
			(v.claim().Unpreemptable || v.claim().Type != c.Type) {
			continue
		}
		chosen = append(chosen, v)
		t.excluded = append(t.excluded, v)
		if fits = t.hasRoomFor(c.Tree, n, c); fits {
			break
		}
	}
	t.excluded = excluded
	if !fits {
		return false
	}
	for _, v := range chosen {
		if !slices.Contains(p.claims, v) {
			p.claims, p.from = append(p.claims, v), append(p.from, n)
		}
		if top {
			t.evict(v)
		} else {
			t.countAt(v, quotatest.Above(n))
		}
	}
	return true
}

func (t *placementTrial) evict(v claimRef) {
	t.evicted, t.evictedFrom = append(t.evicted, v), append(t.evictedFrom, v.placed[v.i])
	t.excluded = append(t.excluded, v)
}

// preemptLower is one round of phase 2, down a path that ends at the node where phase 1 stopped.
func (t *placementTrial) preemptLower(c quota.Claim, path []string) bool {
	preemption := t.rulesAt(t.trees[c.Tree], path[0]).Preemption
	if c.Priority <= 0 || preemption != "lower-priority" && preemption != "all" {
		return false
	}
	for _, n := range slices.Backward(path) {
		for _, v := range t.borrowersAt(c.Tree, n) {
			if v.claim().Priority < c.Priority && !v.claim().Unpreemptable && v.claim().Type == c.Type {
				t.evict(v)
				if t.hasRoomFor(c.Tree, path[len(path)-1], c) {
					return true
				}
			}
		}
	}
	return false
}

// endVictims gives up all that the victims of one claim hold elsewhere.
func (t *placementTrial) endVictims(first int) {
	chosen := slices.Clone(t.evicted)
	for _, v := range t.evicted[first:] {
		if slices.Contains(t.victims, v.allocation) {
			continue
		}
		t.victims = append(t.victims, v.allocation)
		var others []claimRef
		for i := range v.request.Claims {
			if other := (claimRef{v.allocation, i}); !slices.Contains(chosen, other) {
				others = append(others, other)
			}
		}
		t.excluded = append(t.excluded, others...)
		for _, other := range others {
			t.reclaim(other.claim().Tree, other.placed[other.i])
		}
	}
}

// hasRoomFor is true if a claim fits in every resource of the tree, also those that it does not name.
func (o *oracle) hasRoomFor(tree, path string, c quota.Claim) bool {
	for _, r := range o.trees[tree].Resources {
		want, _ := quotatest.Requested([]quota.Claim{c}, []string{path}, tree, path, r.Name)
		if want.Add(want, o.used(tree, path, r.Name)).Cmp(big.NewInt(int64(o.ceiling(tree, path, r.Name)))) > 0 {
			return false
		}
	}
	return true
}

// violationsAbove are the violations above where the claim may borrow.
func (o *oracle) violationsAbove(c quota.Claim, path []string) []quota.Violation {
	top := path[len(path)-1]
	if top == "" {
		return nil
	}
	return o.violations([]quota.Claim{c}, []string{quotatest.Above(top)})
}

// inTheWay lists where a claim that finds no placement does not fit.
func (o *oracle) inTheWay(c quota.Claim, claimed string) []quota.Violation {
	path := o.borrowRegion(c.Tree, claimed)
	var list []quota.Violation
	hard := false
	for i, n := range path {
		hard = hard || o.hard(c.Tree, n)
		for _, r := range o.trees[c.Tree].Resources {
			want, _ := quotatest.Requested([]quota.Claim{c}, []string{n}, c.Tree, n, r.Name)
			used, limit := o.used(c.Tree, n, r.Name).Int64(), int64(o.ceiling(c.Tree, n, r.Name))
			if used+want.Int64() > limit && (hard || i == len(path)-1 || want.Int64() <= limit) {
				list = append(list, quota.Violation{
					Tree: c.Tree, Node: n, Resource: r.Name, Limit: quota.Amount(limit), Used: quota.Amount(used),
					Requested: quota.Amount(want.Int64()),
				})
			}
		}
	}
	return append(list, o.violationsAbove(c, path)...)
}
