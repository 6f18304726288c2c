package quotatest

import (
	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
)

// AllCommands are those of Commands, and now and then one of everything else that a log entry can ask for. What they do
// is not for the oracle, but it must be the same on every replica.
func AllCommands() *rapid.Generator[quota.Command] {
	return rapid.Custom(func(t *rapid.T) quota.Command {
		switch Die(t, 30, "more") {
		case 0, 1, 2:
			return dressed(t)
		case 3:
			return dressedTrees(t)
		case 4:
			return quota.MoveNode{Meta: meta(t), Tree: treeName(t), From: path(t), To: path(t)}
		case 5:
			return quota.RollBack{Meta: meta(t), Revision: rapid.Uint64Range(0, 8).Draw(t, "revision")}
		}
		return Commands().Draw(t, "command")
	})
}

func dressed(t *rapid.T) quota.Allocate {
	c := allocate(t)
	c.Mode = quota.Mode(Die(t, 5, "mode"))
	c.ReserveFor = quota.Span(rapid.Int64Range(-1, 9).Draw(t, "reserve"))
	c.Principal = quota.Principal{
		User: pick(t, []string{"", "u", "v"}, "user"), Groups: subset(t, []string{"g", "h"}, 2, false, "groups"),
		Application: pick(t, []string{"", "x", "y"}, "application"),
	}
	for i := range c.Claims {
		c.Claims[i].Standing = quota.Standing{
			Priority: rapid.Int64Range(-2, 2).Draw(t, "priority"), Type: int64(Die(t, 2, "kind")),
			Unpreemptable: oneIn(t, 5, "unpreemptable"),
		}
	}
	return c
}

func dressedTrees(t *rapid.T) quota.ApplyTrees {
	c := applyTrees(t)
	c.Prune = oneIn(t, 4, "prune")
	for i := range c.Trees {
		spec := &c.Trees[i]
		spec.Forest = pick(t, []string{"", "f", "g"}, "forest")
		spec.RequireReason = oneIn(t, 6, "reason")
		if oneIn(t, 4, "moves") {
			spec.Moves = []quota.Move{{From: path(t), To: path(t)}}
		}
		for j := range spec.Nodes {
			if oneIn(t, 3, "dress") {
				dressNode(t, &spec.Nodes[j], spec.Resources)
			}
		}
	}
	return c
}

func dressNode(t *rapid.T, n *quota.NodeSpec, registered []quota.Resource) {
	some := func(what string) []quota.ResourceLimit {
		var list []quota.ResourceLimit
		for _, r := range registered {
			if oneIn(t, 3, what) {
				list = append(list, quota.ResourceLimit{Resource: r.Name, Limit: limit(t, n.Path)})
			}
		}
		return list
	}
	n.Hard, n.Applications = oneIn(t, 5, "hard"), fewApplications(t, "applications")
	n.Defaults, n.Borrow, n.Lend = some("defaults"), some("borrow"), some("lend")
	if oneIn(t, 3, "principals") {
		n.Principals = []quota.PrincipalLimit{{
			Users:        subset(t, []string{"*", "u"}, 2, false, "users"),
			Groups:       subset(t, []string{"*", "g"}, 2, false, "groups"),
			Applications: fewApplications(t, "running"),
		}}
		for _, r := range subset(t, resources, 1, true, "limits") {
			n.Principals[0].Limits = append(n.Principals[0].Limits,
				quota.Component{Resource: r, Amount: quota.Amount(Die(t, 9, "most"))})
		}
	}
}

// fewApplications is no limit, or a low one.
func fewApplications(t *rapid.T, label string) quota.Limit {
	return pick(t, []quota.Limit{{}, {}, quota.AtMost(0), quota.AtMost(1), quota.AtMost(2)}, label)
}
