package quotatest

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
)

// HolderNames are all users and groups of the holders, sorted.
var HolderNames = []string{"*", "ann", "blue", "bob", "cyd", "green", "red", "white"}

// HoldersTree declares an open tree with cohorts here and there, few limits and many principals.
func HoldersTree(name string) *rapid.Generator[quota.ApplyTrees] {
	return rapid.Custom(func(t *rapid.T) quota.ApplyTrees {
		spec := quota.TreeSpec{Name: name}
		spec.RequirePrincipal = Die(t, 2, "require a user") == 0
		for _, r := range []string{"cpu", "mem", "zip"} {
			if r == "mem" || Die(t, 4, "registered") > 0 {
				spec.Resources = append(spec.Resources, quota.Resource{Name: r, Unit: quota.Count})
			}
		}
		for _, path := range []string{"", "a", "a/x", "a/x/p", "a/y", "b", "b/z"} {
			if path == "" || FindNode(spec, Above(path)) != nil && Die(t, 5, "there") > 0 {
				spec.Nodes = append(spec.Nodes, holdersNode(t, spec, path))
			}
		}
		return quota.ApplyTrees{Trees: []quota.TreeSpec{spec}}
	})
}

func holdersNode(t *rapid.T, spec quota.TreeSpec, path string) quota.NodeSpec {
	n := quota.NodeSpec{Path: path, Policy: pick(t, []string{"", "", "", "open", "cohort"}, "policy")}
	inCohort := PolicyOf(quota.TreeSpec{Nodes: append(slices.Clone(spec.Nodes), n)}, path) == "cohort"
	for _, r := range spec.Resources {
		if Die(t, 2, "limited") == 0 {
			n.Limits = append(n.Limits, quota.ResourceLimit{Resource: r.Name, Limit: holdersLimit(t)})
		}
		if inCohort && Die(t, 3, "borrows") == 0 {
			n.Borrow = append(n.Borrow, quota.ResourceLimit{Resource: r.Name, Limit: holdersLimit(t)})
		}
		if inCohort && Die(t, 3, "lends") == 0 {
			n.Lend = append(n.Lend, quota.ResourceLimit{Resource: r.Name, Limit: holdersLimit(t)})
		}
	}
	n.Applications = pick(t, []quota.Limit{{}, {}, {}, quota.AtMost(0), quota.AtMost(2), quota.AtMost(4)}, "applications")
	n.Principals = holdersPrincipals(t, spec)
	return n
}

// HoldersLimit changes one limit of a tree.
func HoldersLimit(spec quota.TreeSpec) *rapid.Generator[quota.Command] {
	return rapid.Custom(func(t *rapid.T) quota.Command {
		set := quota.ResourceLimit{Resource: pick(t, spec.Resources, "resource").Name, Limit: holdersLimit(t)}
		return quota.SetLimits{
			Tree: spec.Name, Node: pick(t, spec.Nodes, "node").Path, Limits: []quota.ResourceLimit{set},
		}
	})
}

func holdersLimit(t *rapid.T) quota.Limit {
	if Die(t, 8, "unlimited") == 0 {
		return quota.NoLimit()
	}
	return quota.AtMost(quota.Amount(Die(t, 25, "limit")))
}

// holdersPrincipals name each user and group at most once, and a wildcard last.
func holdersPrincipals(t *rapid.T, spec quota.TreeSpec) []quota.PrincipalLimit {
	users := subset(t, []string{"ann", "bob", quota.Wildcard}, 2, false, "users")
	groups := subset(t, pick(t, [][]string{{"red", "blue"}, {"blue", "red", quota.Wildcard}, {"green"}}, "groups"), 2,
		false, "group")
	if slices.Equal(groups, []string{quota.Wildcard}) {
		groups = nil
	}
	var list []quota.PrincipalLimit
	for i := range max(len(users), len(groups)) {
		l := quota.PrincipalLimit{
			Users:  users[min(i, len(users)):min(i+1, len(users))],
			Groups: groups[min(i, len(groups)):min(i+1, len(groups))],
		}
		for _, r := range spec.Resources {
			if Die(t, 2, "limited") == 0 {
				l.Limits = append(l.Limits, quota.Component{Resource: r.Name, Amount: quota.Amount(Die(t, 12, "most"))})
			}
		}
		l.Applications = pick(t, []quota.Limit{{}, quota.AtMost(0), quota.AtMost(1), quota.AtMost(2), quota.AtMost(3)},
			"applications")
		if l.Applications.Kind == quota.Unset && len(l.Limits) == 0 {
			l.Applications = quota.AtMost(1)
		}
		list = append(list, l)
	}
	return list
}

// HoldersRequests are requests of users and groups with an id.
func HoldersRequests(id string) *rapid.Generator[quota.Allocate] {
	return rapid.Custom(func(t *rapid.T) quota.Allocate {
		c := quota.Allocate{ID: id}
		if Die(t, 8, "without a principal") > 0 {
			c.Principal = quota.Principal{
				User:        pick(t, []string{"ann", "bob", "cyd"}, "user"),
				Application: pick(t, []string{"", "app", "job", "run"}, "application"),
				Groups:      subset(t, []string{"blue", "green", "red", "white"}, 2, false, "groups"),
			}
		}
		for range pick(t, []int{1, 1, 1, 2, 3}, "claims") {
			claim := quota.Claim{
				Tree: pick(t, []string{"t", "t", "u"}, "tree"),
				Node: pick(t, []string{"", "a", "a/x", "a/x/p", "a/y", "b", "b/z"}, "node"),
			}
			for _, r := range []string{"cpu", "mem", "zip"} {
				if r == "mem" || Die(t, 3, "claims of") == 0 {
					claim.Amounts = append(claim.Amounts, quota.Component{Resource: r, Amount: quota.Amount(Die(t, 6, "amount"))})
				}
			}
			c.Claims = append(c.Claims, claim)
		}
		if Die(t, 12, "force") == 0 {
			c.Mode = quota.Force
		}
		return c
	})
}
