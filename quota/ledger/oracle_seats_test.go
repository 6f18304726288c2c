package ledger_test

import (
	"cmp"
	"math/big"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

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

// admit decides a request that has its homes, and moves the claims that must move if it is granted.
func (o *oracle) admit(g *grant) ([]quota.Violation, *softTrial) {
	if g.request.Mode == quota.Force {
		return append(o.uncountable(g), o.lacking(g.asked, nil)...), &softTrial{oracle: o}
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
		tried = append(o.violations(rest, restAt), o.lacking(g.asked, t.victims)...)
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
	all = append(all, o.lacking(g.asked, nil)...)
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

// saved is where every claim is counted.
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
func (o *oracle) reseat(tree string, before quota.TreeSpec) {
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
		if home := s.homes[s.i]; home != s.placed[s.i] && isLeaf(before, home) && !o.isLeaf(tree, home) {
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
