package quotatest

import (
	"strings"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
)

// ReshapingCommands are mostly changes of configuration, of every kind, with claims in between: held, forced, reserved
// or leased. The policies are those without borrowing, and requests block each other by limits only.
func ReshapingCommands() *rapid.Generator[quota.Command] {
	return rapid.Custom(func(t *rapid.T) quota.Command {
		switch n := Die(t, 54, "type"); {
		case n < 22:
			return leased(t, allocate(t))
		case n < 27:
			return quota.Release{ID: id(t), Fence: fence(t)}
		case n < 29:
			return quota.Confirm{ID: id(t), Fence: fence(t)}
		case n < 30:
			return quota.Cancel{ID: id(t), Fence: fence(t)}
		case n < 31:
			return quota.Renew{ID: id(t), TTL: quota.Span(Die(t, 9, "ttl"))}
		case n < 33:
			return quota.Expire{Most: 1 + Die(t, 3, "most")}
		}
		return reshapingChange(t)
	})
}

func reshapingChange(t *rapid.T) quota.Command {
	switch n := Die(t, 21, "change"); {
	case n < 6:
		return reshapingTrees(t)
	case n < 10:
		c := setLimits(t)
		c.Meta = reasoned(t)
		return c
	case n < 14:
		return quota.MoveNode{Meta: reasoned(t), Tree: treeName(t), From: path(t), To: path(t)}
	case n < 20:
		return quota.RollBack{Meta: reasoned(t), Revision: rapid.Uint64Range(0, 12).Draw(t, "back to")}
	}
	return quota.DeleteTree{Meta: reasoned(t), Tree: treeName(t)}
}

// ReshapingTree are commands that declare one tree, though its policy may still refuse them.
func ReshapingTree(name string) *rapid.Generator[quota.ApplyTrees] {
	return rapid.Custom(func(t *rapid.T) quota.ApplyTrees {
		return quota.ApplyTrees{Trees: []quota.TreeSpec{reshape(t, treeSpec(t, name))}}
	})
}

func leased(t *rapid.T, c quota.Allocate) quota.Allocate {
	if oneIn(t, 4, "leased") {
		c.TTL = quota.Span(1 + Die(t, 9, "ttl"))
	}
	return c
}

func reasoned(t *rapid.T) quota.ChangeMeta {
	m := meta(t)
	if m.Reason == "" && !oneIn(t, 3, "no reason") {
		m.Reason = "because"
	}
	return m
}

func reshapingTrees(t *rapid.T) quota.ApplyTrees {
	c := applyTrees(t)
	c.Meta, c.Prune = reasoned(t), oneIn(t, 12, "prune")
	for i, spec := range c.Trees {
		if len(spec.Nodes) == 0 {
			continue
		}
		c.Trees[i] = reshape(t, spec)
		if oneIn(t, 20, "spoil the shape") {
			spoilShape(t, &c.Trees[i])
		}
	}
	return c
}

func reshape(t *rapid.T, spec quota.TreeSpec) quota.TreeSpec {
	if oneIn(t, 3, "in a forest") {
		spec.Forest = pick(t, []string{"east", "west"}, "forest")
	}
	spec.RequireReason = oneIn(t, 15, "require reason")
	spec.RequirePrincipal = oneIn(t, 8, "require principal")
	if oneIn(t, 8, "tenants see") {
		spec.TenantsSee = pick(t, []quota.TenantsSee{quota.SeeNames, quota.SeeNothing}, "see")
	}
	spec.Approvals = pick(t, []int{0, 0, 0, 1, 2}, "approvals")
	if oneIn(t, 8, "leases") {
		spec.Leases = quota.LeaseSettings{
			Default: pick(t, []quota.Span{0, 3, 8}, "default"),
			Max:     pick(t, []quota.Span{0, 9}, "max"),
		}
	}
	if oneIn(t, 3, "moves") {
		for range pick(t, []int{1, 1, 2, 3}, "how many moves") {
			spec.Moves = append(spec.Moves, quota.Move{From: path(t), To: path(t)})
		}
	}
	for i := range spec.Nodes {
		reshapeNode(t, &spec.Nodes[i], spec.Resources)
	}
	spec.Nodes[0].Policy = pick(
		t, []string{"", "open", "strict", "strict", "capped", "project", "nested"}, "root policy")
	return spec
}

func reshapeNode(t *rapid.T, n *quota.NodeSpec, registered []quota.Resource) {
	n.Hard = false
	if n.Policy != "lenient" {
		n.Policy = ""
	}
	if oneIn(t, 10, "another policy") {
		n.Policy = pick(t, []string{"open", "strict", "capped", "project", "nested"}, "policy")
	}
	for i, r := range registered {
		if (i == 0 || registered[i-1].Name < r.Name) && oneIn(t, 12, "default") {
			n.Defaults = append(
				n.Defaults, quota.ResourceLimit{
					Resource: r.Name,
					Limit:    limit(t, strings.TrimPrefix(n.Path+"/x", "/")),
				})
		}
	}
	if oneIn(t, 12, "auto-approve") {
		n.AutoApprove = quota.AutoApprove{
			AtMost: pick(t, []int{1, 20, 100}, "at most"), Every: quota.MinAutoApproveEvery,
			WithinHeadroom: oneIn(t, 2, "within"),
		}
	}
}

func spoilShape(t *rapid.T, spec *quota.TreeSpec) {
	last := &spec.Nodes[len(spec.Nodes)-1]
	switch Die(t, 3, "how") {
	case 0:
		spec.Moves = []quota.Move{
			pick(t, []quota.Move{
				{To: "a"},
				{From: "a"},
				{From: "a", To: "a/q"},
				{From: "a//b", To: "c"},
				{From: "a", To: "/"},
			}, "bad move"),
		}
	case 1:
		spec.Forest = "/"
	case 2:
		last.Defaults = []quota.ResourceLimit{badLimit(t)}
	}
}
