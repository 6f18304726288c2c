package ledger_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/policy"
	"github.com/quorate/quorate/quota/quotatest"
)

// twinOf has names as long as those of the policies, because sizes are part of the state.
func twinOf(builtIn string) string {
	if builtIn == "" || policy.Presets()[builtIn] == nil {
		return builtIn
	}
	return strings.ToUpper(builtIn[:1]) + builtIn[1:]
}

// twins define every built-in policy again, each on a base drawn at random, with all values written out.
func twins(t *rapid.T) quota.ApplyTrees {
	var c quota.ApplyTrees
	names := strings.Split(policy.Presets().Names(), ", ")
	for _, name := range names {
		spec := quota.PolicySpec{Name: twinOf(name), Base: rapid.SampledFrom(names).Draw(t, "base of "+name)}
		for _, s := range policy.Switches() {
			*s.Field(&spec) = s.Value(policy.Presets()[name])
		}
		c.Policies = append(c.Policies, spec)
	}
	return c
}

// underTwins is a command with the definitions in place of the built-in policies.
func underTwins(c quota.Command) quota.Command {
	apply, ok := c.(quota.ApplyTrees)
	if !ok {
		return c
	}
	trees := make([]quota.TreeSpec, len(apply.Trees))
	for i, spec := range apply.Trees {
		nodes := make([]quota.NodeSpec, len(spec.Nodes))
		for j, n := range spec.Nodes {
			nodes[j] = n
			if nodes[j].Policy = twinOf(n.Policy); j == 0 && n.Policy == "" {
				nodes[j].Policy = twinOf(quota.DefaultPolicy)
			}
		}
		if trees[i] = spec; len(spec.Nodes) > 0 {
			trees[i].Nodes = nodes
		}
	}
	apply.Trees = trees
	return apply
}

// TestADefinitionDecidesLikeItsTwin gives random commands to two ledgers: in one trees name built-in policies, in the
// other definitions with the same values. All outcomes and the whole states are the same but for the names.
func TestADefinitionDecidesLikeItsTwin(t *testing.T) {
	t.Parallel()
	verify.Check(t, func(t *rapid.T) {
		builtIn, defined := ledger.New(quota.DefaultBounds()), ledger.New(quota.DefaultBounds())
		both := []*ledger.Ledger{builtIn, defined}
		definitions := twins(t)
		for _, l := range both {
			if out := l.Apply(quota.Stamp{}, definitions); out.Refused != nil {
				t.Fatal(out.Refused)
			}
		}
		commands := rapid.OneOf(quotatest.AllCommands(), quotatest.BorrowingCommands(), quotatest.ReshapingCommands())
		for i := range 40 {
			c := commands.Draw(t, "command")
			if i < 3 {
				c = firstTree(t, quotatest.TreeNames[i])
			}
			if apply, ok := c.(quota.ApplyTrees); ok && (apply.Prune || startsEmpty(apply)) {
				continue // the definitions stay, and a root always names its policy
			}
			if back, ok := c.(quota.RollBack); ok && back.Revision == 0 {
				continue
			}
			now := quota.Stamp{At: quota.Instant(i), Wall: int64(i)}
			want, got := twinOutcome(builtIn.Apply(now, named(c))), twinOutcome(defined.Apply(now, underTwins(c)))
			if want != got {
				t.Fatalf("%T %+v:\n%s", c, c, cmp.Diff(want, got))
			}
		}
		if diff := cmp.Diff(stateText(builtIn), stateText(defined)); diff != "" {
			t.Fatalf("the states differ (-built in +defined):\n%s", diff)
		}
	})
}

// named is a command in which every root names its policy.
func named(c quota.Command) quota.Command {
	apply, ok := underTwins(c).(quota.ApplyTrees)
	if !ok {
		return c
	}
	for _, spec := range apply.Trees {
		for j := range spec.Nodes {
			if lower := strings.ToLower(spec.Nodes[j].Policy); policy.Presets()[lower] != nil {
				spec.Nodes[j].Policy = lower
			}
		}
	}
	return apply
}

func startsEmpty(c quota.ApplyTrees) bool { return len(c.Trees) == 0 }

func firstTree(t *rapid.T, name string) quota.Command {
	return rapid.OneOf(
		quotatest.BorrowingTree(name), quotatest.ReshapingTree(name), quotatest.Tree(name),
	).Draw(t, "first trees")
}

func twinOutcome(out ledger.Outcome) string {
	refused := ""
	if out.Refused != nil {
		refused = out.Refused.Kind.String() + " " + out.Refused.Field
	}
	var parts []any
	if out.Allocation != nil {
		parts = append(parts, out.Allocation.Info())
	}
	if out.Configuration != nil {
		parts = append(parts, *out.Configuration)
	}
	if out.Decision != nil {
		parts = append(parts, *out.Decision)
	}
	return strings.ToLower(cmp.Diff(nil, append(parts, refused, out.Restored, out.Items, out.Expired, out.Repeated)))
}

func stateText(l *ledger.Ledger) string { return strings.ToLower(quotatest.ImageText(l.Snapshot())) }
