package oracle

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestHoldersAgainstOracle does the same with users, groups and applications, in trees with cohorts.
func TestHoldersAgainstOracle(t *testing.T) {
	t.Parallel()
	verify.Check(t, agreeOnHolders)
}

// FuzzHolders does the same with commands that a fuzzer finds.
func FuzzHolders(f *testing.F) { quotatest.Fuzz(f, agreeOnHolders) }

func agreeOnHolders(t *rapid.T) {
	p := newPair(quota.DefaultBounds())
	p.foresees = true
	step := 0
	for _, name := range []string{"t", "u"} {
		p.apply(t, quotatest.HoldersTree(name).Draw(t, "first trees"))
	}
	p.run(t, 60, func() quota.Command {
		step++
		switch name := quotatest.TreeNames[quotatest.Die(t, 2, "tree")]; quotatest.Die(t, 20, "kind") {
		case 0, 1:
			return quotatest.HoldersTree(name).Draw(t, "tree")
		case 2:
			return quotatest.HoldersLimit(p.oracle.trees[name]).Draw(t, "limit")
		case 3, 4, 5, 6:
			if held := p.oracle.held(); len(held) > 0 {
				return quota.Release{ID: held[quotatest.Die(t, len(held), "held")].request.ID}
			}
		}
		return quotatest.HoldersRequests(fmt.Sprintf("i%d", step)).Draw(t, "request")
	})
	for name := range p.oracle.trees {
		p.probeAllHeadroom(t, name)
	}
}

// probeAllHeadroom checks every reported headroom of a tree.
func (p *pair) probeAllHeadroom(t *rapid.T, tree string) {
	page, refused := p.ledger.Reader().Usage(quota.UsageQuery{Tree: tree, Subtree: true, Max: 100})
	if refused != nil {
		t.Fatal(refused)
	}
	for _, n := range page.Nodes {
		for _, r := range n.Resources {
			p.probe(t, tree, n, r)
		}
	}
}

// admitted are the ids of denied requests that would be granted now in a tree that a command changes.
func (p *pair) admitted(c quota.Command) []string {
	if !p.foresees {
		return nil
	}
	tree := ""
	switch c := c.(type) {
	case quota.ApplyTrees:
		tree = c.Trees[0].Name
	case quota.SetLimits:
		tree = c.Tree
	}
	var ids []string
	for _, e := range slices.Backward(p.oracle.recentEvents()) {
		names := e.Request != nil && p.oracle.find(e.ID) == nil && slices.ContainsFunc(e.Request.Claims,
			func(c quota.Claim) bool { return c.Tree == tree })
		if !names || slices.Contains(ids, e.ID) {
			continue
		}
		if d := p.ledger.Sandbox().DryRun(*e.Request).Decision; d != nil && d.Granted {
			ids = append(ids, e.ID)
		}
	}
	return ids
}
