package oracle

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// Users, groups and applications: what each holds is added up again for every question.

// assignGroups finds the group that each claim counts for: that of the first claim in the tree, or of the same
// application, or the first that is limited on the way up.
func (o *oracle) assignGroups(a *allocation) {
	a.groups = make([]string, len(a.request.Claims))
	for i, c := range a.request.Claims {
		first := slices.IndexFunc(a.request.Claims, func(other quota.Claim) bool { return other.Tree == c.Tree })
		if a.groups[i] = a.groups[first]; first == i {
			a.groups[i] = o.groupOf(a, i)
		}
	}
}

func (o *oracle) groupOf(a *allocation, i int) string {
	tree, me := a.request.Claims[i].Tree, a.asked.Principal
	for _, other := range o.held() {
		for j, c := range other.request.Claims {
			if theirs := other.asked.Principal; c.Tree == tree && me.Application != "" && theirs.User == me.User &&
				theirs.Application == me.Application {
				return other.groups[j]
			}
		}
	}
	if len(me.Groups) == 0 {
		return ""
	}
	for _, path := range quotatest.Upwards(a.claimed[i]) {
		for _, l := range o.node(tree, path).Principals {
			for _, g := range l.Groups {
				if g == quota.Wildcard || slices.Contains(me.Groups, g) {
					return g
				}
			}
		}
	}
	return ""
}

// node is the configuration of a node; a dynamic one has none.
func (o *oracle) node(tree, path string) *quota.NodeSpec {
	if n := quotatest.FindNode(o.trees[tree], path); n != nil {
		return n
	}
	return &quota.NodeSpec{Path: path}
}

// checkUser refuses a request without a user where one is required because of a limit on the way of a claim.
func (o *oracle) checkUser(c quota.Allocate, claimed []string) verdict {
	for i, claim := range c.Claims {
		for _, path := range quotatest.Upwards(claimed[i]) {
			if o.trees[claim.Tree].RequirePrincipal && c.Principal.User == "" &&
				len(o.node(claim.Tree, path).Principals) > 0 {
				return refusal(quota.Invalid, "principal.user")
			}
		}
	}
	return verdict{}
}

// without is the oracle without an allocation that it tries.
func (o *oracle) without(a *allocation) *oracle {
	other := *o
	other.excluded = nil
	other.allocations = slices.DeleteFunc(slices.Clone(o.allocations), func(b *allocation) bool { return a == b })
	return &other
}

// principalViolations asks every level about the user, the group and the applications.
func (o *oracle) principalViolations(a *allocation) []quota.Violation {
	if a.forced || a.asked.Principal.User == "" {
		return nil
	}
	before := o.without(a)
	var list []quota.Violation
	asked := map[string]bool{}
	for i, c := range a.request.Claims {
		for _, path := range quotatest.Upwards(a.claimed[i]) {
			if key := quota.Place(c.Tree, path); !asked[key] {
				asked[key] = true
				list = append(list, before.principalsAt(a, i, path)...)
			}
		}
	}
	return list
}

// principalsAt asks one level for the principal of a claim.
func (o *oracle) principalsAt(a *allocation, i int, path string) []quota.Violation {
	tree, me := a.request.Claims[i].Tree, a.asked.Principal
	n := o.node(tree, path)
	list := o.holderViolations(a, tree, n, quota.Holder{Kind: quota.AUser, Name: me.User})
	if a.groups[i] != "" {
		list = append(list, o.holderViolations(a, tree, n, quota.Holder{Kind: quota.AGroup, Name: a.groups[i]})...)
	}
	running := o.running(tree, path)
	if n.Applications.Kind == quota.Limited && me.Application != "" &&
		!slices.Contains(running, quota.Label{Key: me.User, Value: me.Application}) &&
		quota.Amount(len(running)) >= n.Applications.Amount {
		list = append(list, quota.Violation{
			Tree: tree, Node: path, Kind: quota.OfApplications, Limit: n.Applications.Amount,
			Used: quota.Amount(len(running)), Requested: 1,
		})
	}
	return list
}

// running are the applications with a claim at a node or below, with their users.
func (o *oracle) running(tree, path string) []quota.Label {
	var list []quota.Label
	for _, a := range o.held() {
		for i, c := range a.request.Claims {
			l := quota.Label{Key: a.asked.Principal.User, Value: a.asked.Principal.Application}
			if c.Tree == tree && quotatest.Below(a.placed[i], path) && l.Value != "" && !slices.Contains(list, l) {
				list = append(list, l)
			}
		}
	}
	return list
}

func (o *oracle) holderViolations(a *allocation, tree string, n *quota.NodeSpec,
	who quota.Holder,
) []quota.Violation {
	l := quotatest.PrincipalLimit(n, who)
	if l == nil {
		return nil
	}
	used, running := o.holds(tree, n.Path, who)
	var list []quota.Violation
	for _, most := range l.Limits {
		want, _ := quotatest.Requested(a.request.Claims, a.claimed, tree, n.Path, most.Resource)
		if more := quota.Amount(want.Int64()); more > 0 && used[most.Resource]+more > most.Amount {
			list = append(list, quota.Violation{
				Tree: tree, Node: n.Path, Resource: most.Resource, Limit: most.Amount, Used: used[most.Resource],
				Requested: more, Holder: who,
			})
		}
	}
	count := quota.Amount(len(running))
	if app := a.asked.Principal.Application; l.Applications.Kind == quota.Limited && app != "" &&
		!slices.Contains(running, app) &&
		count >= l.Applications.Amount {
		list = append(list, quota.Violation{
			Tree: tree, Node: n.Path, Kind: quota.OfApplications, Limit: l.Applications.Amount, Used: count,
			Requested: 1, Holder: who,
		})
	}
	return list
}

// holds is what a principal holds at a node, and which applications run there, sorted; nil if nothing is held at all.
func (o *oracle) holds(tree, path string, who quota.Holder) (map[string]quota.Amount, []string) {
	var used map[string]quota.Amount
	running := []string{}
	for _, a := range o.held() {
		for i, c := range a.request.Claims {
			name := a.asked.Principal.User
			if who.Kind == quota.AGroup {
				name = a.groups[i]
			}
			if name != who.Name || c.Tree != tree || !quotatest.Below(a.placed[i], path) {
				continue
			}
			if used == nil {
				used = map[string]quota.Amount{}
			}
			for _, amount := range c.Amounts {
				used[amount.Resource] += amount.Amount
			}
			if app := a.asked.Principal.Application; app != "" && !slices.Contains(running, app) {
				running = append(running, app)
			}
		}
	}
	slices.Sort(running)
	return used, running
}
