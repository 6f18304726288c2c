package ledger_test

import (
	"cmp"
	"math/big"
	"slices"

	"github.com/quorate/quorate/quota"
)

// claimOf is one claim of a grant.
type claimOf struct {
	*grant
	i int
}

func (c claimOf) claim() quota.Claim { return c.request.Claims[c.i] }

// softTrial tries a request as sections 2 to 4 of the quota manager's semantics say, on copies that are thrown away if
// it is denied.
type softTrial struct {
	*oracle
	out     []claimOf // of victims, in the order in which they were chosen
	where   []string  // they stood in the way
	victims []*grant
}

func (o *oracle) policyOf(tree, path string) string { return policyOf(o.trees[tree], path) }

// policyOf looks upwards for a policy; a tree without one is open.
func policyOf(spec quota.TreeSpec, path string) string {
	for ; ; path = above(path) {
		if p := nodeOf(spec, path).Policy; p != "" || path == "" {
			return cmp.Or(p, "open")
		}
	}
}

func (o *oracle) borrows(tree, path string) bool { return o.policyOf(tree, path) == "borrowing" }

func (o *oracle) isLeaf(tree, path string) bool { return isLeaf(o.trees[tree], path) }

func isLeaf(spec quota.TreeSpec, path string) bool {
	return !slices.ContainsFunc(spec.Nodes, func(n quota.NodeSpec) bool { return n.Path != path && below(n.Path, path) })
}

// region is the path and all above it, as far as it borrows without a gap.
func (o *oracle) region(tree, path string) []string {
	var list []string
	for _, at := range upwards(path) {
		if !o.borrows(tree, at) {
			break
		}
		list = append(list, at)
	}
	return list
}

// sitting are the claims that are counted at a borrowing node, by seat.
func (o *oracle) sitting(tree, path string) []claimOf {
	var list []claimOf
	for _, g := range o.held() {
		for i, c := range g.request.Claims {
			if c.Tree == tree && g.placed[i] == path && g.seats[i] > 0 && !o.isOut(claimOf{g, i}) {
				list = append(list, claimOf{g, i})
			}
		}
	}
	slices.SortFunc(list, func(a, b claimOf) int { return cmp.Compare(a.seats[a.i], b.seats[b.i]) })
	return list
}

func (o *oracle) isOut(c claimOf) bool { return slices.Contains(o.gone, c) }

// put counts a claim at a node, in a new seat if it borrows.
func (o *oracle) put(c claimOf, path string) {
	c.placed[c.i], c.seats[c.i] = path, 0
	if o.borrows(c.claim().Tree, path) {
		o.seat++
		c.seats[c.i] = o.seat
	}
}

// takes: the claim fits in every resource of the tree, those that it does not name too.
func (o *oracle) takes(tree, path string, c quota.Claim) bool {
	for _, r := range o.trees[tree].Resources {
		want, _ := requested([]quota.Claim{c}, []string{path}, tree, path, r.Name)
		if want.Add(want, o.used(tree, path, r.Name)).Cmp(big.NewInt(int64(o.ceiling(tree, path, r.Name)))) > 0 {
			return false
		}
	}
	return true
}

func (o *oracle) hard(tree, path string) bool { return nodeOf(o.trees[tree], path).Hard }

// settle finds the place of the newcomer's claim; it is counted only when all other claims have moved.
func (t *softTrial) settle(c claimOf) bool {
	first := len(t.out)
	path := t.region(c.claim().Tree, c.placed[c.i])
	for {
		at, stop := t.climb(c.claim(), path)
		if at != "none" {
			if len(t.plainAbove(c.claim(), path)) > 0 {
				return false
			}
			t.put(c, at)
			t.gone = slices.DeleteFunc(t.gone, func(other claimOf) bool { return other == c })
			t.endVictims(first)
			return true
		}
		if !t.makeWay(c.claim(), path[:slices.Index(path, stop)+1]) {
			return false
		}
	}
}

// climb is phase 1; "none" if there is no place.
func (t *softTrial) climb(c quota.Claim, path []string) (at, stop string) {
	at = "none"
	var pushed []claimOf
	var from []string
	hardSeen := false
	for _, n := range path {
		stop = n
		hardSeen = hardSeen || t.hard(c.Tree, n)
		if t.takes(c.Tree, n, c) || t.makeRoom(c, n, path, at == "none", &pushed, &from) {
			if at == "none" {
				at = n
			}
			continue
		}
		if at == "none" {
			if t.hard(c.Tree, n) {
				return "none", stop
			}
			continue
		}
		t.backAll(pushed, from)
		at = "none"
		if hardSeen {
			return "none", stop
		}
	}
	return at, stop
}

// backAll returns all claims to their first nodes, in the order of pushing, at the end; those there already stay.
func (t *softTrial) backAll(pushed []claimOf, from []string) {
	for i, c := range pushed {
		if c.placed[c.i] != from[i] {
			t.put(c, from[i])
		}
	}
}

func (t *softTrial) makeRoom(c quota.Claim, n string, path []string, onlyLower bool, pushed *[]claimOf, from *[]string) bool {
	top := n == path[len(path)-1]
	if t.hard(c.Tree, n) && !top {
		return false
	}
	var chosen []claimOf
	fits := false
	gone := slices.Clone(t.gone)
	for _, v := range t.sitting(c.Tree, n) {
		if onlyLower && v.claim().Priority >= c.Priority || top && (v.claim().Unpreemptable || v.claim().Type != c.Type) {
			continue
		}
		chosen = append(chosen, v)
		t.gone = append(t.gone, v)
		if fits = t.takes(c.Tree, n, c); fits {
			break
		}
	}
	t.gone = gone
	if !fits {
		return false
	}
	for _, v := range chosen {
		if !slices.Contains(*pushed, v) {
			*pushed, *from = append(*pushed, v), append(*from, n)
		}
		if top {
			t.evict(v)
		} else {
			t.put(v, above(n))
		}
	}
	return true
}

func (t *softTrial) evict(v claimOf) {
	t.out, t.where, t.gone = append(t.out, v), append(t.where, v.placed[v.i]), append(t.gone, v)
}

// preemptLower is one round of phase 2, down a path that ends at the node where phase 1 stopped.
func (t *softTrial) makeWay(c quota.Claim, path []string) bool {
	if c.Priority <= 0 {
		return false
	}
	for _, n := range slices.Backward(path) {
		for _, v := range t.sitting(c.Tree, n) {
			if v.claim().Priority < c.Priority && !v.claim().Unpreemptable && v.claim().Type == c.Type {
				t.evict(v)
				if t.takes(c.Tree, path[len(path)-1], c) {
					return true
				}
			}
		}
	}
	return false
}

// endVictims gives up all that the victims of one claim hold elsewhere.
func (t *softTrial) endVictims(first int) {
	chosen := slices.Clone(t.out)
	for _, v := range t.out[first:] {
		if slices.Contains(t.victims, v.grant) {
			continue
		}
		t.victims = append(t.victims, v.grant)
		var others []claimOf
		for i := range v.request.Claims {
			if other := (claimOf{v.grant, i}); !slices.Contains(chosen, other) {
				others = append(others, other)
			}
		}
		t.gone = append(t.gone, others...)
		for _, other := range others {
			t.slide(other.claim().Tree, other.placed[other.i])
		}
	}
}

// slide lets claims come down by one node, at the path and at every node above.
func (o *oracle) slide(tree, path string) {
	for _, n := range upwards(path) {
		if n == "" || !o.borrows(tree, n) || !o.borrows(tree, above(n)) {
			continue
		}
		for _, v := range o.sitting(tree, above(n)) {
			home := v.homes[v.i]
			if o.isLeaf(tree, home) && below(home, n) && o.takes(tree, n, v.claim()) {
				o.put(v, n)
			}
		}
	}
}

// plainAbove are the violations above where the claim may borrow.
func (o *oracle) plainAbove(c quota.Claim, path []string) []quota.Violation {
	top := path[len(path)-1]
	if top == "" {
		return nil
	}
	return o.violations([]quota.Claim{c}, []string{above(top)})
}

// inTheWay says where a claim that finds no place does not fit.
func (o *oracle) inTheWay(c quota.Claim, home string) []quota.Violation {
	path := o.region(c.Tree, home)
	var list []quota.Violation
	hard := false
	for i, n := range path {
		hard = hard || o.hard(c.Tree, n)
		for _, r := range o.trees[c.Tree].Resources {
			want, _ := requested([]quota.Claim{c}, []string{n}, c.Tree, n, r.Name)
			used, limit := o.used(c.Tree, n, r.Name).Int64(), int64(o.ceiling(c.Tree, n, r.Name))
			if used+want.Int64() > limit && (hard || i == len(path)-1 || want.Int64() <= limit) {
				list = append(list, quota.Violation{
					Tree: c.Tree, Node: n, Resource: r.Name, Limit: quota.Amount(limit), Used: quota.Amount(used), Requested: quota.Amount(want.Int64()),
				})
			}
		}
	}
	return append(list, o.plainAbove(c, path)...)
}
