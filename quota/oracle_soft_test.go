package quota_test

import (
	"cmp"
	"math/big"
	"slices"
	"strings"

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

func (o *oracle) isLeaf(tree, path string) bool {
	return !slices.ContainsFunc(o.trees[tree].Nodes, func(n quota.NodeSpec) bool { return n.Path != path && below(n.Path, path) })
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

// settle finds the place of the newcomer's claim; its seat is taken only when everybody else has moved.
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

// backAll puts everybody back where he was first, in the order of pushing, at the end; who is there already stays.
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

// makeWay is one round of phase 2, down a path that ends at the node where phase 1 stopped.
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

// checkSoft refuses what borrowing cannot decide.
func (o *oracle) checkSoft(c quota.Allocate, homes []string) verdict {
	for i, claim := range c.Claims {
		if c.Mode == quota.Force || !o.borrows(claim.Tree, homes[i]) {
			continue
		}
		for j, other := range c.Claims[:i] {
			if other.Tree == claim.Tree && o.borrows(claim.Tree, homes[j]) {
				return refusal(quota.Invalid, "claims["+string(rune('0'+i))+"].node")
			}
		}
	}
	return verdict{}
}

// admit decides a request that has its homes, and moves whoever has to move if it is granted.
func (o *oracle) admit(g *grant) ([]quota.Violation, *softTrial) {
	if g.request.Mode == quota.Force {
		return o.uncountable(g), &softTrial{oracle: o}
	}
	saved := o.save()
	t := &softTrial{oracle: o}
	o.grants = append(o.grants, g)
	for i := range g.request.Claims {
		o.gone = append(o.gone, claimOf{g, i}) // until it is settled
	}
	var rest []quota.Claim
	var restAt []string
	lost := -1
	for i, c := range g.request.Claims {
		switch {
		case !o.borrows(c.Tree, g.homes[i]):
			rest, restAt = append(rest, c), append(restAt, g.homes[i])
		case lost < 0 && !t.settle(claimOf{g, i}):
			lost = i
		}
	}
	var tried []quota.Violation
	if lost >= 0 {
		tried = o.inTheWay(g.request.Claims[lost], g.homes[lost])
	} else {
		tried = o.violations(rest, restAt)
	}
	o.grants = o.grants[:len(o.grants)-1]
	if lost < 0 && len(tried) == 0 {
		return nil, t
	}
	o.restore(saved)
	all := o.violations(rest, restAt)
	if lost >= 0 {
		all = append(all, o.inTheWay(g.request.Claims[lost], g.homes[lost])...)
	}
	if len(all) == 0 {
		all = tried
	}
	return all, nil
}

// uncountable: a forced request meets no limit but the largest number.
func (o *oracle) uncountable(g *grant) []quota.Violation {
	var list []quota.Violation
	for i, c := range g.request.Claims {
		if slices.ContainsFunc(g.request.Claims[:i], func(b quota.Claim) bool { return b.Tree == c.Tree }) {
			continue
		}
		for _, r := range o.trees[c.Tree].Resources {
			want, named := requested(g.request.Claims, g.homes, c.Tree, "", r.Name)
			used := o.used(c.Tree, "", r.Name)
			if named && new(big.Int).Add(used, want).Cmp(big.NewInt(int64(quota.MaxAmount))) > 0 {
				list = append(list, quota.Violation{
					Tree: c.Tree, Resource: r.Name, Limit: quota.MaxAmount, Used: quota.Amount(used.Int64()), Requested: saturated(want),
				})
			}
		}
	}
	return list
}

// saved is where everybody sits.
type saved struct {
	placed [][]string
	seats  [][]uint64
	seat   uint64
}

func (o *oracle) save() saved {
	s := saved{seat: o.seat}
	for _, g := range o.grants {
		s.placed, s.seats = append(s.placed, slices.Clone(g.placed)), append(s.seats, slices.Clone(g.seats))
	}
	return s
}

func (o *oracle) restore(s saved) {
	for i, g := range o.grants {
		g.placed, g.seats = s.placed[i], s.seats[i]
	}
	o.seat, o.gone = s.seat, nil
}

// reseat settles the seats of a tree after a change.
func (o *oracle) reseat(tree string) {
	var sitters []claimOf
	for _, g := range o.held() {
		for i, c := range g.request.Claims {
			switch {
			case c.Tree != tree:
			case !o.borrows(tree, g.placed[i]):
				g.seats[i] = 0
			case g.seats[i] == 0:
				o.put(claimOf{g, i}, g.placed[i])
				fallthrough
			default:
				sitters = append(sitters, claimOf{g, i})
			}
		}
	}
	slices.SortFunc(sitters, func(a, b claimOf) int { return cmp.Compare(a.seats[a.i], b.seats[b.i]) })
	for _, s := range sitters {
		if home := s.homes[s.i]; home != s.placed[s.i] && !o.isLeaf(tree, home) {
			o.put(s, home)
		}
	}
}

// borrowersOutside are breaches of a tree that no longer lets its borrowers borrow.
func (o *oracle) borrowersOutside(spec quota.TreeSpec) []string {
	var list []string
	for _, g := range o.held() {
		for i, c := range g.request.Claims {
			if c.Tree != spec.Name {
				continue
			}
			for _, at := range upwards(g.homes[i]) {
				if g.placed[i] != g.homes[i] && policyOf(spec, at) != "borrowing" && !slices.Contains(list, quota.Place(spec.Name, g.placed[i])+" ") {
					list = append(list, quota.Place(spec.Name, g.placed[i])+" ")
				}
				if at == g.placed[i] {
					break
				}
			}
		}
	}
	return list
}

// ids of claims, for comparison.
func ids(list []claimOf) string {
	var names []string
	for _, c := range list {
		names = append(names, c.request.ID)
	}
	return strings.Join(names, " ")
}
