package quotatest

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
)

// MixedTree are commands that declare one tree in which claims borrow softly, and users and groups are limited here and
// there.
func MixedTree(name string) *rapid.Generator[quota.ApplyTrees] {
	return rapid.Custom(func(t *rapid.T) quota.ApplyTrees {
		c := BorrowingTree(name).Draw(t, "tree")
		spec := &c.Trees[0]
		for i := range spec.Nodes {
			if oneIn(t, 3, "principals") {
				spec.Nodes[i].Principals = principals(t, spec.Resources)
			}
			if oneIn(t, 3, "thresholds") {
				spec.Nodes[i].Thresholds = Thresholds(t)
			}
		}
		return c
	})
}

func principals(t *rapid.T, registered []quota.Resource) []quota.PrincipalLimit {
	named := quota.PrincipalLimit{
		Users: []string{"u"}, Groups: []string{"g"},
		Applications: quota.AtMost(quota.Amount(Die(t, 4, "applications"))),
	}
	for _, r := range registered {
		if Die(t, 2, "limited") == 0 {
			named.Limits = append(named.Limits,
				quota.Component{Resource: r.Name, Amount: quota.Amount(1 + Die(t, 8, "most"))})
		}
	}
	wildcards := named
	wildcards.Users, wildcards.Groups = []string{quota.Wildcard}, []string{quota.Wildcard}
	return []quota.PrincipalLimit{named, wildcards}[:1+Die(t, 2, "wildcards")]
}

// MixedCommands bring together what the others keep apart: claims of any standing of users, groups and applications
// that borrow and preempt each other, held, forced or reserved; moves, rollbacks and holds under them.
func MixedCommands() *rapid.Generator[quota.Command] {
	return rapid.Custom(func(t *rapid.T) quota.Command {
		id := fmt.Sprintf("b%d", Die(t, borrowers, "id"))
		if Die(t, 30, "webhook") == 0 {
			return WebhookCommands().Draw(t, "webhook")
		}
		switch n := Die(t, 84, "kind"); {
		case n >= 78:
			return holdCommand(t)
		case n >= 70:
			return calendarCommand(t)
		case n >= 60:
			return holdingChange(t, id)
		case n < 5:
			return quota.Confirm{ID: id}
		case n < 10:
			return quota.Cancel{ID: id}
		case n < 13:
			return quota.Expire{Most: 1 + Die(t, 2, "most")}
		case n < 16:
			return quota.MoveNode{Tree: TreeNames[Die(t, 2, "tree")], From: path(t), To: path(t)}
		case n < 20:
			return quota.RollBack{Revision: rapid.Uint64Range(0, 12).Draw(t, "back to")}
		case n < 21:
			return MixedTree(TreeNames[Die(t, 2, "tree")]).Draw(t, "other tree")
		}
		c := BorrowingCommands().Draw(t, "command")
		if a, ok := c.(quota.Allocate); ok {
			return owned(t, a)
		}
		return c
	})
}

// owned gives most requests a principal, and reserves some.
func owned(t *rapid.T, c quota.Allocate) quota.Allocate {
	if Die(t, 4, "owned") > 0 {
		c.Principal = quota.Principal{
			User: pick(t, []string{"u", "v"}, "user"), Groups: subset(t, []string{"g", "h"}, 2, false, "groups"),
			Application: pick(t, []string{"", "x", "y", "z"}, "application"),
		}
	}
	if oneIn(t, 5, "declared") {
		c.For = quota.Span(1 + Die(t, 12, "for"))
	}
	if c.Mode == quota.Hold && Die(t, 3, "reserved") == 0 {
		c.Mode, c.ReserveFor = quota.Reserve, quota.Span(1+Die(t, 9, "span"))
	}
	return c
}
