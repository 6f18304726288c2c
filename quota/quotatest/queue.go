package quotatest

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
)

// queuePaths are the nodes of all trees of QueueTree, so that what waits stays valid.
var queuePaths = []string{"", "a", "b", "a/x"}

// QueueNode is a node of all trees of QueueTree.
func QueueNode(t *rapid.T) string { return pick(t, queuePaths, "node") }

func queueID(t *rapid.T) string { return fmt.Sprint("j", Die(t, 14, "id")) }

// QueueTree declares a tree of the same nodes with other limits and ways of queueing.
func QueueTree(name string) *rapid.Generator[quota.ApplyTrees] {
	return rapid.Custom(func(t *rapid.T) quota.ApplyTrees {
		spec := quota.TreeSpec{
			Name: name, Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}, {Name: "mem", Unit: quota.Count}},
		}
		spec.Overtake = quota.Span(1 + Die(t, 12, "overtake"))
		for _, path := range queuePaths {
			n := quota.NodeSpec{Path: path, Queueing: quota.Queueing(Die(t, 3, "queueing"))}
			for _, r := range spec.Resources {
				if Die(t, 3, "limited") > 0 {
					n.Limits = append(n.Limits, quota.ResourceLimit{
						Resource: r.Name, Limit: quota.AtMost(quota.Amount(Die(t, 7, "limit"))),
					})
				}
			}
			spec.Nodes = append(spec.Nodes, n)
		}
		return quota.ApplyTrees{Trees: []quota.TreeSpec{spec}}
	})
}

// QueueCommands are requests in trees of QueueTree, most of which wait, what frees room for them, and changes of the
// trees.
func QueueCommands() *rapid.Generator[quota.Command] {
	return rapid.Custom(func(t *rapid.T) quota.Command {
		switch n := Die(t, 40, "kind"); {
		case n < 18:
			return queueRequest(t)
		case n < 24:
			return quota.Release{ID: queueID(t)}
		case n < 26:
			return quota.Cancel{ID: queueID(t)}
		case n < 30:
			return quota.Expire{Most: 1 + Die(t, 3, "most")}
		case n < 34:
			return quota.SetLimits{
				Tree: TreeNames[Die(t, 2, "tree")], Node: QueueNode(t), Limits: []quota.ResourceLimit{{
					Resource: pick(t, []string{"cpu", "mem"}, "resource"),
					Limit:    quota.AtMost(quota.Amount(Die(t, 9, "limit"))),
				}},
			}
		case n < 36:
			return QueueTree(TreeNames[Die(t, 2, "tree")]).Draw(t, "tree")
		}
		return quota.Renew{ID: queueID(t)}
	})
}

func queueRequest(t *rapid.T) quota.Allocate {
	c := withAlternatives(t, queueClaims(t), queueClaims)
	c.ID, c.Mode, c.Priority = queueID(t), quota.Wait, int64(Die(t, 5, "rank")/3)
	switch Die(t, 8, "mode") {
	case 0, 1:
		c.Mode = quota.Hold
		return c
	case 2:
		if len(c.AnyOf) == 0 && !slices.ContainsFunc(c.Claims, func(c quota.Claim) bool { return len(c.Ranges) > 0 }) {
			c.Mode = quota.Force
		}
		return c
	}
	c.WaitFor, c.Keep = quota.Span(Die(t, 30, "wait")), quota.MinKeep+quota.Span(Die(t, 3, "keep"))
	return c
}

// queueClaims is a request of which only the claims are known.
func queueClaims(t *rapid.T) (c quota.Allocate) {
	for range 1 + Die(t, 3, "more")/2*Die(t, 3, "claims") {
		claim := quota.Claim{Tree: TreeNames[Die(t, 2, "tree")], Node: QueueNode(t)}
		for _, resource := range []string{"cpu", "mem"} {
			if n := Die(t, 5, "amount"); n > 0 || resource == "cpu" {
				claim.Amounts = append(claim.Amounts, quota.Component{Resource: resource, Amount: quota.Amount(n)})
			}
		}
		if !slices.ContainsFunc(c.Claims, func(o quota.Claim) bool { return o.Tree == claim.Tree && o.Node == claim.Node }) {
			c.Claims = append(c.Claims, claim)
		}
	}
	return withRanges(t, c)
}

// QueueResizes change claims of an allocation that holds some, and sometimes wait for that.
func QueueResizes(id string, held []quota.Claim) *rapid.Generator[quota.Command] {
	return rapid.Custom(func(t *rapid.T) quota.Command {
		c := quota.Resize{ID: id, WaitFor: quota.Span(Die(t, 4, "waits") * Die(t, 10, "wait"))}
		for range 1 + Die(t, 2, "changes") {
			change := quota.ClaimChange{Tree: TreeNames[Die(t, 2, "tree")], Node: QueueNode(t)}
			if Die(t, 3, "held") > 0 {
				claim := pick(t, held, "claim")
				change.Tree, change.Node = claim.Tree, claim.Node
			}
			for _, resource := range []string{"cpu", "mem"} {
				if n := Die(t, 6, "amount"); n > 0 || resource == "cpu" {
					change.Amounts = append(change.Amounts, quota.Component{Resource: resource, Amount: quota.Amount(n)})
				}
			}
			if !slices.ContainsFunc(c.Claims, func(o quota.ClaimChange) bool {
				return o.Tree == change.Tree && o.Node == change.Node
			}) {
				c.Claims = append(c.Claims, change)
			}
		}
		return c
	})
}
