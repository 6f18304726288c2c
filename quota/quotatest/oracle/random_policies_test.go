package oracle

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestPoliciesAgainstOracle does the same with trees under policies that the configuration defines at random, and
// redefines and removes while claims are held.
func TestPoliciesAgainstOracle(t *testing.T) {
	t.Parallel()
	verify.Check(t, agreeOnPolicies)
}

// FuzzPolicies does the same with commands that a fuzzer finds.
func FuzzPolicies(f *testing.F) { quotatest.Fuzz(f, agreeOnPolicies) }

func agreeOnPolicies(t *rapid.T) {
	bounds := quotatest.Bounds().Draw(t, "bounds")
	bounds.HistoryNodes = 1000
	p := newPair(bounds)
	for range 3 {
		p.apply(t, quota.ApplyTrees{Policies: quotatest.Policies().Draw(t, "first policies")})
	}
	p.declareTrees(t, func(name string) *rapid.Generator[quota.ApplyTrees] {
		return rapid.Custom(func(t *rapid.T) quota.ApplyTrees { return p.treeWithPolicies(t, name) })
	})
	p.run(t, 80, func() quota.Command {
		name := quotatest.TreeNames[quotatest.Die(t, 2, "tree")]
		switch quotatest.Die(t, 16, "kind") {
		case 0, 1, 2:
			return quotatest.PolicyChanges().Draw(t, "policies")
		case 3:
			c := quotatest.PolicyChanges().Draw(t, "policies")
			c.Trees = p.treeWithPolicies(t, name).Trees
			return c
		case 4:
			return p.treeWithPolicies(t, name)
		case 5:
			return p.hardenedNode(t, name)
		case 6:
			return quotatest.ReshapingCommands().Draw(t, "command")
		case 7:
			return quotatest.BorrowingChanges().Draw(t, "change")
		case 8, 9:
			if held := p.oracle.held(); len(held) > 0 {
				return quota.Release{ID: held[quotatest.Die(t, len(held), "held")].request.ID}
			}
		}
		return quotatest.BorrowingCommands().Draw(t, "command")
	})
}

// treeWithPolicies is a tree as the other tests declare it, under other policies.
func (p *pair) treeWithPolicies(t *rapid.T, name string) quota.ApplyTrees {
	tree := quotatest.ReshapingTree
	if quotatest.Die(t, 2, "small limits") == 0 {
		tree = quotatest.BorrowingTree
	}
	c := tree(name).Draw(t, "tree")
	c.Meta = quota.ChangeMeta{Actor: "eva", Reason: "because"}
	c.Trees[0] = quotatest.WithPolicies(t, c.Trees[0])
	return c
}

// hardenedNode is the tree as it is with one node made hard or soft, which its policy may not allow.
func (p *pair) hardenedNode(t *rapid.T, name string) quota.ApplyTrees {
	c := quota.ApplyTrees{Meta: quota.ChangeMeta{Actor: "eva", Reason: "because"}}
	spec, known := p.oracle.trees[name]
	if !known {
		return p.treeWithPolicies(t, name)
	}
	spec.Nodes = slices.Clone(spec.Nodes)
	at := quotatest.Die(t, len(spec.Nodes), "node")
	spec.Nodes[at].Hard = !spec.Nodes[at].Hard
	c.Trees = []quota.TreeSpec{spec}
	return c
}
