package quotatest

import (
	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
)

// HoldCommands hold, drain and resume nodes of the trees of the other commands.
func HoldCommands() *rapid.Generator[quota.Command] {
	return rapid.Custom(holdCommand)
}

func holdCommand(t *rapid.T) quota.Command {
	tree, node := TreeNames[Die(t, 2, "tree")], path(t)
	if Die(t, 3, "resume") == 0 {
		return quota.UncordonNode{Tree: tree, Node: node}
	}
	c := quota.CordonNode{
		Meta: quota.ChangeMeta{Actor: "eva", Reason: pick(t, []string{"", "repairs"}, "reason")}, Tree: tree, Node: node,
		Deny: oneIn(t, 3, "deny"), Drain: oneIn(t, 2, "drain"),
	}
	if oneIn(t, 2, "ends") {
		c.For = quota.Span(1 + Die(t, 9, "span"))
	}
	if c.Drain {
		c.Grace = quota.Span(Die(t, 4, "grace"))
	}
	return c
}
