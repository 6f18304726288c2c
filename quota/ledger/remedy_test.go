package ledger_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestRemedies: on small random ledgers, what is advised admits the request, nothing of it can be left out, no raise
// can be smaller, and where nothing is advised there is nothing. Explaining changes nothing.
func TestRemedies(t *testing.T) {
	t.Run("plain", func(t *testing.T) { testRemedies(t, false) })
	t.Run("borrowing", func(t *testing.T) { testRemedies(t, true) })
}

// TestRemediesUnderEveryPolicy: under each policy, with limits below what is held, and required reasons, every raise
// can be carried out as it is advised, in the order of the list; what is advised admits the request; and where the
// release of all that is held would admit it, some release is advised.
func TestRemediesUnderEveryPolicy(t *testing.T) {
	for _, policy := range []string{"open", "strict", "nested", "capped", "project", "borrowing", "cohort"} {
		t.Run(policy, func(t *testing.T) {
			verify.Check(t, func(t *rapid.T) {
				l := ledger.New(quota.DefaultBounds())
				for l.Reader().Counts().Trees < 2 {
					l.Apply(quota.Stamp{}, policyTrees(t, policy))
				}
				for i := range verify.Scale(8, 12) {
					if quotatest.Die(t, 3, "change") == 0 { // it may be refused
						set := []quota.ResourceLimit{{Resource: "cpu", Limit: amount(t, 24)}}
						l.Apply(quota.Stamp{}, quota.SetLimits{
							Meta: quota.ChangeMeta{Actor: "ann", Reason: "a test"}, Tree: "t",
							Node: []string{"", "a", "b", "a/x", "a/y"}[quotatest.Die(t, 5, "node")], Limits: set,
						})
					}
					request := demanding(t, fmt.Sprint("i", i))
					if out := l.Sandbox().Explain(request); out.Decision != nil && !out.Decision.Granted {
						r := &remedied{ledger: l, request: request, denied: *out.Decision, borrows: true}
						r.checkRaisesAsAdvised(t, out.Decision.Remedy.Raises)
						r.checkReleases(t, out.Decision.Remedy.Releases)
					}
					l.Apply(quota.Stamp{}, request)
				}
			})
		})
	}
}

func policyTrees(t *rapid.T, policy string) quota.ApplyTrees {
	c := fullTrees(t, false)
	for i := range c.Trees {
		c.Trees[i].RequireReason = quotatest.Die(t, 2, "reason") == 0
		for j := range c.Trees[i].Nodes {
			n := &c.Trees[i].Nodes[j]
			n.Policy = map[string]string{"": policy}[n.Path]
			if policy == "cohort" {
				n.Borrow = []quota.ResourceLimit{{Resource: "cpu", Limit: amount(t, 9)}}
				n.Lend = []quota.ResourceLimit{{Resource: "cpu", Limit: amount(t, 9)}}
			}
		}
	}
	return c
}

// checkRaisesAsAdvised carries the raises out one by one, in their order, with a reason only where they want one;
// raises of limits that are not those of nodes are made in the configuration.
func (r *remedied) checkRaisesAsAdvised(t *rapid.T, raises []quota.Raise) {
	l := reload(t, r.ledger)
	later := &remedied{ledger: l, request: r.request, borrows: true}
	for _, raise := range raises {
		meta := quota.ChangeMeta{}
		if raise.NeedsReason {
			meta.Reason = "room for a denied request"
		}
		command, plain := raiseTo(raise, raise.To).(quota.SetLimits)
		command.Meta = meta
		if plain = plain && raise.Kind == quota.OfResource && raise.Holder.Kind == quota.TheNode &&
			!raise.Unconfigured; !plain {
			for _, c := range later.raisedTrees(t, []quota.Raise{raise}) {
				change := c.(quota.ApplyTrees) // it is one
				change.Meta = meta
				if out := l.Apply(quota.Stamp{}, change); out.Refused != nil {
					t.Fatalf("%+v: %v", raise, out.Refused)
				}
			}
			continue
		}
		if out := l.Apply(quota.Stamp{}, command); out.Refused != nil {
			t.Fatalf("the raise %+v of %+v cannot be carried out: %v", raise, raises, out.Refused)
		}
	}
	if out := l.Sandbox().DryRun(r.request); len(raises) > 0 && (out.Refused != nil || !out.Decision.Granted) {
		t.Fatalf("the raises %+v do not admit %+v: %s", raises, r.request, r.denied.Explain())
	}
}

// testRemedies is less strict where something is borrowed: there a little more can be a little worse, and the advised
// releases are not the only ones.
func testRemedies(t *testing.T, borrow bool) {
	t.Helper()
	verify.Check(t, func(t *rapid.T) {
		l := ledger.New(quota.DefaultBounds())
		stamp := quota.Stamp{}
		for l.Reader().Counts().Trees < 2 {
			l.Apply(stamp, fullTrees(t, borrow))
		}
		for i := range 12 {
			request := demanding(t, fmt.Sprint("i", i))
			if quotatest.Die(t, 6, "policy") == 0 {
				l.Apply(stamp, quota.SetLimits{
					Tree: "t", Node: "a",
					Limits: []quota.ResourceLimit{{Resource: "cpu", Limit: amount(t, 9)}},
				})
			}
			before := quotatest.ImageText(l.Snapshot())
			out := l.Sandbox().Explain(request)
			if diff := cmp.Diff(before, quotatest.ImageText(l.Snapshot())); diff != "" || l.Check() != nil {
				t.Fatalf("an explanation changed the ledger: %v\n%s", l.Check(), diff)
			}
			dry := l.Sandbox().DryRun(request)
			if dry.Decision != nil && !dry.Decision.Granted {
				r := &remedied{ledger: l, request: request, denied: *dry.Decision, borrows: borrow}
				r.checkRaises(t, out.Decision.Remedy.Raises)
				r.checkReleases(t, out.Decision.Remedy.Releases)
				out.Decision.Remedy, out.Decision.Holders = nil, nil
			}
			quotatest.RequireSame(t, "the explained decision", fmt.Sprintf("%+v", dry.Decision),
				fmt.Sprintf("%+v", out.Decision))
			l.Apply(stamp, request)
		}
	})
}

func fullTrees(t *rapid.T, borrow bool) quota.ApplyTrees {
	var c quota.ApplyTrees
	for _, name := range []string{"t", "u"} {
		tree := quota.TreeSpec{
			Name: name, Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}, {Name: "mem", Unit: quota.Count}},
		}
		for _, n := range []struct {
			path string
			most int
		}{{"", 24}, {"a", 14}, {"b", 9}, {"a/x", 8}, {"a/y", 5}} {
			spec := quota.NodeSpec{
				Path:   n.path,
				Limits: []quota.ResourceLimit{{Resource: "cpu", Limit: amount(t, n.most)}},
			}
			if quotatest.Die(t, 2, "both") == 0 {
				spec.Limits = append(spec.Limits, quota.ResourceLimit{Resource: "mem", Limit: amount(t, n.most)})
			}
			if n.path == "" || n.path == "a" {
				spec.Policy = []string{"", "open", "strict"}[quotatest.Die(t, 3, "policy")]
			}
			if borrow && name == "t" {
				spec.Hard = quotatest.Die(t, 6, "hard") == 0
				spec.Policy = map[string]string{"": "borrowing"}[n.path]
			}
			tree.Nodes = append(tree.Nodes, spec)
		}
		c.Trees = append(c.Trees, tree)
	}
	return c
}

func amount(t *rapid.T, most int) quota.Limit {
	return quota.AtMost(quota.Amount(quotatest.Die(t, most+1, "limit")))
}

func demanding(t *rapid.T, id string) quota.Allocate {
	request := quota.Allocate{ID: id}
	for range 1 + quotatest.Die(t, 3, "claims") {
		claim := quota.Claim{
			Tree: []string{"t", "t", "u"}[quotatest.Die(t, 3, "tree")],
			Node: []string{"", "a", "b", "a/x", "a/y"}[quotatest.Die(t, 5, "node")],
		}
		for _, r := range []string{"cpu", "mem"} {
			if n := quotatest.Die(t, 6, "amount"); n > 0 || r == "cpu" {
				claim.Amounts = append(claim.Amounts, quota.Component{Resource: r, Amount: quota.Amount(n)})
			}
		}
		claim.Priority = int64(quotatest.Die(t, 3, "priority"))
		if !slices.ContainsFunc(request.Claims,
			func(c quota.Claim) bool { return c.Tree == claim.Tree && c.Node == claim.Node }) {
			request.Claims = append(request.Claims, claim)
		}
	}
	if quotatest.Die(t, 40, "huge") == 0 {
		request.Claims[0].Amounts[0].Amount = quota.MaxAmount
	}
	return request
}

type remedied struct {
	ledger  *ledger.Ledger
	request quota.Allocate
	denied  quota.Decision
	borrows bool
}

// admitsAfter fails the test if one of the commands is refused.
func (r *remedied) admitsAfter(t *rapid.T, commands []quota.Command) bool {
	l := reload(t, r.ledger)
	for _, c := range commands {
		if out := l.Apply(quota.Stamp{}, c); out.Refused != nil {
			return false
		}
	}
	out := l.Sandbox().DryRun(r.request)
	return out.Refused == nil && out.Decision.Granted
}

func (r *remedied) checkRaises(t *rapid.T, raises []quota.Raise) {
	var commands []quota.Command
	for _, raise := range raises {
		if raise.From >= raise.To {
			t.Fatalf("%+v raises nothing", raise)
		}
		commands = append(commands, raiseTo(raise, raise.To))
	}
	if len(raises) == 0 && slices.ContainsFunc(r.denied.Violations,
		func(v quota.Violation) bool { return v.Requested > quota.MaxAmount/2 }) {
		return // no limit can be so high, or no parent's limit as high as its children's together
	}
	if !r.admitsAfter(t, commands) {
		t.Fatalf("the raises %+v do not admit %+v: %s", raises, r.request, r.denied.Explain())
	}
	for i, raise := range raises {
		if r.admitsAfter(t, slices.Delete(slices.Clone(commands), i, i+1)) {
			t.Fatalf("%+v is not needed among %+v", raise, raises)
		}
		lower := slices.Clone(commands)
		lower[i] = raiseTo(raise, raise.To-1)
		if !r.borrows && r.admitsAfter(t, lower) {
			t.Fatalf("%+v is more than needed among %+v", raise, raises)
		}
	}
}

func raiseTo(r quota.Raise, to quota.Amount) quota.Command {
	return quota.SetLimits{
		Tree: r.Tree, Node: r.Node,
		Limits: []quota.ResourceLimit{{Resource: r.Resource, Limit: quota.AtMost(to)}},
	}
}

func (r *remedied) checkReleases(t *rapid.T, ids []string) {
	page, refused := r.ledger.Reader().Allocations(quota.AllocationFilter{}, 0, 100)
	if refused != nil {
		t.Fatal(refused)
	}
	var held []string
	alone := false
	for _, a := range page.Allocations {
		held = append(held, a.ID)
		alone = alone || r.admitsAfter(t, releases([]string{a.ID}))
	}
	switch {
	case len(ids) == 0 && r.admitsAfter(t, releases(held)):
		t.Fatalf("nothing is advised to release, but without %v the request is admitted", held)
	case len(ids) == 0:
		return
	case !r.borrows && alone && len(ids) > 1:
		t.Fatalf("%v are advised to be released, but a single one would do", ids)
	case !r.admitsAfter(t, releases(ids)):
		t.Fatalf("without %v the request is still denied: %s", ids, r.denied.Explain())
	}
	order := func(a, b string) int { return slices.Index(held, a) - slices.Index(held, b) }
	if !slices.IsSortedFunc(ids, order) {
		t.Fatalf("%v are not in the order of their grants, %v", ids, held)
	}
	for i := range ids {
		if fewer := slices.Delete(slices.Clone(ids), i, i+1); r.admitsAfter(t, releases(fewer)) {
			t.Fatalf("%s need not be released among %v", ids[i], ids)
		}
	}
}

func releases(ids []string) []quota.Command {
	var commands []quota.Command
	for _, id := range ids {
		commands = append(commands, quota.Release{ID: id})
	}
	return commands
}
