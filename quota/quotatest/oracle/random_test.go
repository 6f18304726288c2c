package oracle

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestAgainstOracle gives random commands to the ledger and to the oracle, which must agree on every outcome and on
// everything that can be read afterwards.
func TestAgainstOracle(t *testing.T) {
	t.Parallel()
	verify.Check(t, agree)
}

// FuzzLedger does the same with commands that a fuzzer finds; its seeds make it a test too.
func FuzzLedger(f *testing.F) { quotatest.Fuzz(f, agree) }

func agree(t *rapid.T) {
	p := newPair(quotatest.Bounds().Draw(t, "bounds"))
	p.declareTrees(t, quotatest.Tree)
	p.run(t, 60, func() quota.Command { return quotatest.Commands().Draw(t, "command") })
}

// TestBorrowingAgainstOracle does the same with claims that borrow, push each other up and out, and are reclaimed.
func TestBorrowingAgainstOracle(t *testing.T) {
	t.Parallel()
	verify.Check(t, agreeOnBorrowing)
}

func agreeOnBorrowing(t *rapid.T) {
	bounds := quota.DefaultBounds()
	bounds.TombstoneSpan = 2
	p := newPair(bounds)
	for _, name := range []string{"t", "u"} {
		p.apply(t, quotatest.BorrowingTree(name).Draw(t, "first trees"))
	}
	p.run(t, 100, func() quota.Command {
		switch quotatest.Die(t, 50, "change") {
		case 0, 1:
			return p.resizedTree(t, quotatest.TreeNames[quotatest.Die(t, 2, "tree")])
		case 2:
			return p.moveBelow(t, quotatest.TreeNames[quotatest.Die(t, 2, "tree")])
		case 3:
			return quotatest.BorrowingChanges().Draw(t, "change")
		case 4, 5, 6, 7, 8, 9, 10, 11:
			if held := p.oracle.held(); len(held) > 0 { // which frees room for those that borrow
				return quota.Release{ID: held[quotatest.Die(t, len(held), "held")].request.ID}
			}
		}
		c := quotatest.BorrowingCommands().Draw(t, "command")
		if a, ok := c.(quota.Allocate); ok && quotatest.Die(t, 4, "at leaves") > 0 {
			return p.atLeaves(t, a)
		}
		return c
	})
}

// atLeaves is a request with all claims at leaves, where borrowing admits them.
func (p *pair) atLeaves(t *rapid.T, c quota.Allocate) quota.Allocate {
	for _, list := range c.Lists() {
		for i := range list {
			claim := &list[i]
			leaves := slices.DeleteFunc(p.oracle.nodesOf(claim.Tree),
				func(path string) bool { return !p.oracle.isLeaf(claim.Tree, path) })
			claim.Node = leaves[quotatest.Die(t, len(leaves), "leaf")]
		}
	}
	return c
}

// resizedTree is a tree with one more node, so that claims which borrow there may have to be rehomed, or with one less.
func (p *pair) resizedTree(t *rapid.T, name string) quota.ApplyTrees {
	spec := p.oracle.trees[name]
	spec.Nodes = slices.Clone(spec.Nodes)
	at := quotatest.Die(t, len(spec.Nodes), "node")
	if at > 0 && p.oracle.isLeaf(name, spec.Nodes[at].Path) && quotatest.Die(t, 3, "less") == 0 {
		spec.Nodes = slices.Delete(spec.Nodes, at, at+1)
	} else {
		n := quota.NodeSpec{Path: strings.TrimPrefix(spec.Nodes[at].Path+"/new", "/")}
		for _, r := range spec.Resources {
			n.Limits = append(n.Limits, quota.ResourceLimit{
				Resource: r.Name,
				Limit:    quota.AtMost(quota.Amount(quotatest.Die(t, 4, "limit"))),
			})
		}
		spec.Nodes = append(spec.Nodes, n)
	}
	return quota.ApplyTrees{Trees: []quota.TreeSpec{spec}}
}

// TestItemsAgainstOracle does the same with leases and items: who holds which item in which state, and what is due
// when.
func TestItemsAgainstOracle(t *testing.T) {
	t.Parallel()
	verify.Check(t, agreeOnItems)
}

// FuzzItems does the same with commands that a fuzzer finds.
func FuzzItems(f *testing.F) { quotatest.Fuzz(f, agreeOnItems) }

func agreeOnItems(t *rapid.T) {
	bounds := quota.DefaultBounds()
	bounds.TombstoneSpan = 10
	p := newPair(bounds)
	for _, name := range []string{"t", "u"} {
		p.apply(t, quotatest.ItemTree(name).Draw(t, "first trees"))
	}
	p.run(t, 80, func() quota.Command { return quotatest.ItemCommands().Draw(t, "command") })
}

// TestConfigurationAgainstOracle does the same with changes of configuration of every kind, and claims in between.
func TestConfigurationAgainstOracle(t *testing.T) {
	t.Parallel()
	verify.Check(t, agreeOnConfiguration)
}

// FuzzConfiguration does the same with commands that a fuzzer finds.
func FuzzConfiguration(f *testing.F) { quotatest.Fuzz(f, agreeOnConfiguration) }

func agreeOnConfiguration(t *rapid.T) {
	p := newPair(quotatest.Bounds().Draw(t, "bounds"))
	p.declareTrees(t, quotatest.ReshapingTree)
	p.run(t, 60, func() quota.Command {
		name := quotatest.TreeNames[quotatest.Die(t, 3, "tree")]
		if quotatest.Die(t, 12, "move") == 0 && len(p.oracle.trees[name].Nodes) > 0 {
			return p.moveBelow(t, name)
		}
		return quotatest.ReshapingCommands().Draw(t, "command")
	})
}

// moveBelow moves a node of a tree below another one, so that what is held there counts against other limits.
func (p *pair) moveBelow(t *rapid.T, name string) quota.MoveNode {
	nodes := p.oracle.trees[name].Nodes
	from := nodes[quotatest.Die(t, len(nodes), "from")].Path
	parent := nodes[quotatest.Die(t, len(nodes), "parent")].Path
	return quota.MoveNode{
		Meta: quota.ChangeMeta{Actor: "eva", Reason: "because"}, Tree: name, From: from,
		To: strings.TrimPrefix(parent+"/"+lastName(from), "/"),
	}
}

// declareTrees tries to declare each tree, up to three times because its policy may refuse it.
func (p *pair) declareTrees(t *rapid.T, tree func(name string) *rapid.Generator[quota.ApplyTrees]) {
	for _, name := range slices.Repeat(quotatest.TreeNames, 3) {
		if p.oracle.trees[name].Name == "" {
			p.apply(t, tree(name).Draw(t, "first trees"))
		}
	}
}
