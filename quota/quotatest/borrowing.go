package quotatest

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
)

// borrowers is the pool of ids of BorrowingCommands: more than IDs, so that many are held at once.
const borrowers = 40

// BorrowingTree are commands that declare one tree in which claims borrow softly; now and then the root or a branch
// does not.
func BorrowingTree(name string) *rapid.Generator[quota.ApplyTrees] {
	return rapid.Custom(func(t *rapid.T) quota.ApplyTrees {
		spec := quota.TreeSpec{Name: name}
		for _, r := range resources[:1+Die(t, 2, "resources")] {
			spec.Resources = append(spec.Resources, quota.Resource{Name: r, Unit: quota.Count})
		}
		for _, p := range nodePaths(t) {
			n := quota.NodeSpec{Path: p, Hard: oneIn(t, 5, "hard")}
			depth := len(strings.FieldsFunc(p, func(c rune) bool { return c == '/' }))
			for _, r := range spec.Resources {
				most := []quota.Amount{8, 3, 2, 1}[depth]
				limit := quota.AtMost(most + quota.Amount(Die(t, 5, "limit")))
				if oneIn(t, 12, "advisory") {
					limit.Kind = quota.Advisory
				}
				n.Limits = append(n.Limits, quota.ResourceLimit{Resource: r.Name, Limit: limit})
			}
			spec.Nodes = append(spec.Nodes, n)
		}
		spec.Nodes[0].Policy = "borrowing"
		if oneIn(t, 6, "not everywhere") {
			spec.Nodes[0].Policy = "open"
			for i := range spec.Nodes[1:] {
				spec.Nodes[i+1].Policy = pick(t, []string{"borrowing", "borrowing", "borrowing", "", "open"}, "policy")
			}
		}
		soften(spec.Nodes)
		return quota.ApplyTrees{Trees: []quota.TreeSpec{spec}}
	})
}

// BorrowingCommands are mostly small claims of any standing at leaves, and releases.
func BorrowingCommands() *rapid.Generator[quota.Command] {
	return rapid.Custom(func(t *rapid.T) quota.Command {
		id := fmt.Sprintf("b%d", Die(t, borrowers, "id"))
		switch n := Die(t, 40, "type"); {
		case n < 10:
			return quota.Release{ID: id}
		case n < 11:
			return BorrowingTree(pick(t, TreeNames[:2], "tree")).Draw(t, "other tree")
		case n < 12:
			return setLimits(t)
		}
		c := borrowOne(t)
		c.ID = id
		return withAlternatives(t, c, borrowOne)
	})
}

func borrowOne(t *rapid.T) quota.Allocate {
	var c quota.Allocate
	if oneIn(t, 20, "forced") {
		c.Mode = quota.Force
	}
	for _, tree := range pick(t, [][]string{{"t"}, {"t"}, {"u"}, {"t", "u"}, {"u", "t"}}, "trees") {
		claim := quota.Claim{
			Tree: tree, Node: pick(t, []string{"b", "a/y", "a/x/p", "a+", "a/x", "a"}, "leaf"),
			Standing: standing(t),
		}
		for _, r := range resources[:1+Die(t, 2, "resources")] {
			claim.Amounts = append(claim.Amounts,
				quota.Component{Resource: r, Amount: quota.Amount(Die(t, 4, "amount"))})
		}
		c.Claims = append(c.Claims, claim)
	}
	return withRanges(t, c)
}

// BorrowingChanges move nodes and roll back, so that claims have to follow their nodes.
// Two revisions must have declared the trees t and u.
func BorrowingChanges() *rapid.Generator[quota.Command] {
	return rapid.Custom(func(t *rapid.T) quota.Command {
		tree := TreeNames[Die(t, 2, "tree")]
		if Die(t, 3, "kind") == 0 {
			return quota.MoveNode{Tree: tree, From: path(t), To: path(t)}
		}
		return quota.RollBack{Revision: rapid.Uint64Range(2, 20).Draw(t, "back to")}
	})
}
