package ledger_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// unseen is how much more another project holds in the second world, and how much more the levels above may hold.
const unseen = 1_000

// seenTree has node lab/a, at which the reader holds, below two levels that it does not see.
func seenTree(world int, see quota.TenantsSee) []quota.TreeSpec {
	more := quota.Amount(unseen * world)
	return []quota.TreeSpec{{
		Name: "t", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}},
		TreeSettings: quota.TreeSettings{TenantsSee: see},
		Nodes: []quota.NodeSpec{
			{Policy: "open", Limits: cores(50 + more), Bindings: []access.Binding{bind("holder", "other")}},
			{Path: "lab", Limits: cores(30 + more)},
			{Path: "lab/a", Limits: cores(25), Bindings: []access.Binding{bind("holder", "reader")}},
			{Path: "lab/b"},
		},
	}}
}

// TestTenantsSeeNoTotals: unless a tree shows totals, two ledgers that differ in limits and use of the levels above,
// but not in what is left there, answer a caller at a node below with the same bytes.
func TestTenantsSeeNoTotals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		see := rapid.SampledFrom([]quota.TenantsSee{quota.SeeNames, quota.SeeNothing}).Draw(t, "see")
		var worlds [2]*guarded
		for w := range worlds {
			worlds[w] = newGuarded(t, seenTree(w, see), "reader", "other")
			hold := claimAt("hidden", "lab/b", quota.Amount(10+unseen*w))
			if out := worlds[w].apply("other", hold); out.Refused != nil || !out.Decision.Granted {
				t.Fatal(out.Refused, out.Decision)
			}
		}
		for range rapid.IntRange(1, 8).Draw(t, "commands") {
			c := claimAt(rapid.SampledFrom([]string{"v0", "v1", "v2"}).Draw(t, "id"), "lab/a",
				quota.Amount(rapid.IntRange(1, 40).Draw(t, "amount")))
			if rapid.Bool().Draw(t, "wait") {
				c.Mode, c.WaitFor = quota.Wait, 60_000
			}
			var said [2]string
			for w := range worlds {
				out := worlds[w].apply("reader", c)
				answer, err := json.Marshal([]any{out.Decision, refusalText(out.Refused)})
				if err != nil {
					t.Fatal(err)
				}
				said[w] = string(answer)
				if out.Decision != nil {
					said[w] += out.Decision.Explain()
				}
			}
			if said[0] != said[1] {
				t.Fatalf("%+v is answered\n%s\nand\n%s", c, said[0], said[1])
			}
			compareAnswers(t, worlds)
		}
	})
}

func explained(t *testing.T, g *guarded, account, node string, n quota.Amount) quota.Decision {
	t.Helper()
	out := g.apply(account, claimAt("probe", node, n))
	if out.Decision == nil || out.Decision.Granted {
		t.Fatalf("%+v", out)
	}
	return *out.Decision
}

// TestWhatTenantsSee: what a caller below two levels learns of them, with each setting of the tree.
func TestWhatTenantsSee(t *testing.T) {
	for see, want := range map[quota.TenantsSee]struct {
		says   string
		levels []string
		limits int // of levels above
	}{
		quota.SeeTotals: {
			"denied: t:lab holds 10 of 30 cores, 24 requested, 4 missing", []string{"", "lab", "lab/a"}, 2,
		},
		quota.SeeNames: {
			"denied: too little is left at t:lab: 24 cores requested, 4 missing", []string{"", "lab", "lab/a"}, 0,
		},
		quota.SeeNothing: {
			"denied: too little is left at a level above, in tree t: 24 cores requested, 4 missing", []string{"lab/a"}, 0,
		},
	} {
		t.Run(see.String(), func(t *testing.T) {
			g := newGuarded(t, seenTree(0, see), "reader", "other")
			if out := g.apply("other", claimAt("hidden", "lab/b", 10)); out.Refused != nil {
				t.Fatal(out.Refused)
			}
			if got := explained(t, g, "reader", "lab/a", 24).Explain(); got != want.says {
				t.Errorf("a denial says %q", got)
			}
			if got := explained(t, g, "other", "lab/a", 24).Explain(); !strings.Contains(got, "10 of 30 cores") {
				t.Errorf("a denial says %q to a caller of the root", got)
			}
			r, refused := g.ledger.Reader().ReaderOf(callerOf("reader"))
			if refused != nil {
				t.Fatal(refused)
			}
			page, refused := r.Usage(quota.UsageQuery{Tree: "t", Subtree: true, Max: 100})
			if refused != nil {
				t.Fatal(refused)
			}
			var levels []string
			for _, n := range page.Nodes {
				levels = append(levels, n.Path)
				if above := n.Path != "lab/a"; above && (len(n.Resources) > 0) != (see == quota.SeeTotals) {
					t.Errorf("usage of %q is %+v", n.Path, n)
				}
			}
			if !slices.Equal(levels, want.levels) {
				t.Errorf("usage has the nodes %q", levels)
			}
			full, refused := r.Usage(quota.UsageQuery{Tree: "t", Subtree: true, AtLeastPercent: 1, FullestFirst: true, Max: 9})
			if refused != nil || (len(full.Nodes) > 0) != (see == quota.SeeTotals) {
				t.Errorf("the fullest nodes are %+v, %v", full.Nodes, refused)
			}
			_, refused = r.Usage(quota.UsageQuery{Tree: "t", Node: "lab", Max: 100})
			if (refused != nil) != (see == quota.SeeNothing) {
				t.Errorf("usage of the level above alone: %v", refused)
			}
			checkSpec(t, r, want.limits)
		})
	}
}

func checkSpec(t *testing.T, r ledger.Reader, want int) {
	t.Helper()
	spec, refused := r.Tree("t")
	if refused != nil {
		t.Fatal(refused)
	}
	limits := 0
	for _, n := range spec.Nodes {
		if n.Path != "lab/a" {
			limits += len(n.Limits)
		}
	}
	if limits != want {
		t.Errorf("the configuration has %d limits of levels above: %+v", limits, spec.Nodes)
	}
}

func TestUnknownTenantsSee(t *testing.T) {
	g := newGuarded(t, seenTree(0, quota.SeeTotals), "reader", "other")
	out := g.apply("root", quota.ApplyTrees{Trees: seenTree(0, 3)})
	if out.Refused == nil || out.Refused.Field != "trees[0].tenants_see" {
		t.Errorf("got %v", out.Refused)
	}
}

// TestTenantsSeeDefaults: a default of a level above stands for the limit of a node, and whose it is stays hidden with
// that level.
func TestTenantsSeeDefaults(t *testing.T) {
	for see, want := range map[quota.TenantsSee]string{
		quota.SeeTotals: "lab", quota.SeeNames: "lab", quota.SeeNothing: "hidden",
	} {
		trees := seenTree(0, see)
		trees[0].Nodes[1].Defaults = cores(7)
		trees[0].Nodes[2].Limits = nil
		g := newGuarded(t, trees, "reader", "other")
		for caller, want := range map[string]string{"reader": want, "other": "lab"} {
			r, refused := g.ledger.Reader().ReaderOf(callerOf(caller))
			if refused != nil {
				t.Fatal(refused)
			}
			page, refused := r.Usage(quota.UsageQuery{Tree: "t", Node: "lab/a", Max: 1})
			if refused != nil {
				t.Fatal(refused)
			}
			u := page.Nodes[0].Resources[0]
			got := u.DefaultAt
			if u.DefaultHidden {
				got += "hidden"
			}
			if !u.HasDefault || u.Effective.Amount != 7 || got != want {
				t.Errorf("tenants see %v: %s reads %+v", see, caller, u)
			}
		}
	}
}
