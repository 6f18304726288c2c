package ledger_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// The oracle of holds. It asks a twin of the ledger without holds what a command would do, walks all levels of all
// claims for a hold, and expects what the twin says if there is none.

// TestHoldsAgainstTheOracle compares every decision, and what is held at nodes on hold.
func TestHoldsAgainstTheOracle(t *testing.T) {
	t.Parallel()
	verify.Check(t, func(t *rapid.T) {
		l := ledger.New(quota.DefaultBounds())
		for _, name := range []string{"t", "u"} {
			l.Apply(quota.Stamp{}, quotatest.MixedTree(name).Draw(t, "first trees"))
		}
		now := quota.Instant(0)
		for range 60 {
			now += quota.Instant(quotatest.Die(t, 3, "tick"))
			c := quotatest.MixedCommands().Draw(t, "command")
			if quotatest.Die(t, 5, "hold") == 0 {
				c = quotatest.HoldCommands().Draw(t, "hold")
			}
			if a, ok := c.(quota.Allocate); ok && quotatest.Die(t, 2, "lease") == 0 {
				a.TTL = quota.Span(1 + quotatest.Die(t, 20, "ttl"))
				c = a
			}
			o := newHoldOracle(t, l)
			out := l.Apply(quota.Stamp{At: now}, c)
			if err := l.Check(); err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
			o.compare(t, quota.Stamp{At: now}, c, out)
		}
	})
}

// holdOracle is a ledger before a command: a twin without its holds, the holds, and what is held.
type holdOracle struct {
	twin  *ledger.Ledger
	holds []quota.NodeCordonInfo
	held  map[string][]quota.ClaimInfo
}

func newHoldOracle(t *rapid.T, l *ledger.Ledger) *holdOracle {
	image := l.Snapshot()
	for _, tree := range image.Trees() {
		for i := range tree.Nodes {
			tree.Nodes[i].Hold = nil
		}
	}
	twin, err := quotatest.Restore(image, quota.DefaultBounds())
	if err != nil {
		t.Fatal(err)
	}
	return &holdOracle{twin: twin, holds: l.Reader().Holds("", ""), held: claimsOf(l)}
}

// claimsOf are the claims of all held allocations by id.
func claimsOf(l *ledger.Ledger) map[string][]quota.ClaimInfo {
	held := map[string][]quota.ClaimInfo{}
	page, refused := l.Reader().Allocations(quota.AllocationFilter{}, 0, 1000)
	if refused != nil {
		panic(refused)
	}
	for _, a := range page.Allocations {
		held[a.ID] = a.Claims
	}
	return held
}

func (o *holdOracle) compare(t *rapid.T, now quota.Stamp, c quota.Command, out ledger.Outcome) {
	if out.Decision == nil && out.Refused == nil {
		return
	}
	anyOf := o.decideAny(c)
	want := o.twin.Apply(now, c)
	if diff := cmp.Diff(want.Refused, out.Refused); diff != "" {
		t.Fatalf("%+v is refused otherwise under holds:\n%s", c, diff)
	}
	if want.Decision == nil {
		return
	}
	if _, asks := c.(quota.Allocate); !asks && !want.Decision.Granted {
		if out.Decision.Granted {
			t.Fatalf("%+v was granted, but without holds it is denied", c)
		}
		return // what it would hold is not known, so neither is which holds are in its way
	}
	if anyOf != nil && !want.Repeated {
		if diff := cmp.Diff(anyOf.Violations, out.Decision.Violations, cmpopts.EquateEmpty()); diff != "" ||
			anyOf.Granted != out.Decision.Granted || anyOf.Alternative != out.Decision.Alternative {
			t.Fatalf("%+v should be decided as %+v, but is as %+v:\n%s", c, anyOf, out.Decision, diff)
		}
		return
	}
	inTheWay := o.inTheWay(c, want)
	if want.Repeated || len(inTheWay) == 0 {
		if diff := cmp.Diff(want.Decision, out.Decision); diff != "" {
			t.Fatalf("%+v meets no hold, but is decided otherwise:\n%s", c, diff)
		}
		return
	}
	if out.Decision.Granted {
		t.Fatalf("%+v was granted, but %v are on hold", c, inTheWay)
	}
	if _, ok := c.(quota.Allocate); ok {
		expected := slices.Concat(inTheWay, want.Decision.Violations)
		if diff := cmp.Diff(expected, out.Decision.Violations); diff != "" {
			t.Fatalf("%+v is denied for other reasons:\n%s", c, diff)
		}
	}
}

// decideAny decides each list of claims alone, without the holds, and adds these; nil for other commands.
func (o *holdOracle) decideAny(c quota.Command) *quota.Decision {
	a, ok := c.(quota.Allocate)
	if !ok || len(a.AnyOf) == 0 {
		return nil
	}
	var all quota.Decision
	gentle := false
	for i, claims := range a.AnyOf {
		one := a
		one.Claims, one.AnyOf = claims, nil
		d := o.twin.Sandbox().DryRun(one).Decision
		if d == nil {
			return &all // refused
		}
		held := o.inTheWay(one, ledger.Outcome{})
		if isGentle := len(d.Preempted) == 0; d.Granted && len(held) == 0 && !gentle && (isGentle || !all.Granted) {
			all.Granted, all.Alternative, gentle = true, i+1, isGentle
		}
		for _, v := range slices.Concat(held, d.Violations) {
			v.Alternative = i + 1
			all.Violations = append(all.Violations, v)
		}
	}
	if all.Granted {
		all.Violations = nil
	}
	return &all
}

// inTheWay are the holds that are in the way of a command, each once, claim by claim from the node up.
func (o *holdOracle) inTheWay(c quota.Command, twin ledger.Outcome) []quota.Violation {
	if a, ok := c.(quota.Allocate); ok {
		var list []quota.Violation
		for _, claim := range a.Claims {
			for _, level := range quotatest.Upwards(claim.Node) {
				list = o.addHold(list, claim.Tree, level)
			}
		}
		return list
	}
	if twin.Allocation == nil {
		return nil
	}
	after := claimsOf(o.twin)
	var changed []quota.ClaimInfo
	for _, id := range append([]string{twin.Allocation.ID()}, partIDs(twin)...) {
		changed = append(changed, after[id]...)
	}
	before := o.held[twin.Allocation.ID()]
	var list []quota.Violation
	for _, h := range o.holds {
		if rises(before, changed, h.Tree, h.Node) {
			list = o.addHold(list, h.Tree, h.Node)
		}
	}
	return list
}

func partIDs(out ledger.Outcome) []string {
	var ids []string
	for _, p := range out.Parts {
		ids = append(ids, p.ID())
	}
	return ids
}

// addHold adds the hold of one node, if it has one that is not in the list.
func (o *holdOracle) addHold(list []quota.Violation, tree, node string) []quota.Violation {
	for _, h := range o.holds {
		v := quota.Violation{Kind: quota.OfHold, Tree: tree, Node: node, Reason: h.Reason}
		if h.Tree == tree && h.Node == node && !slices.Contains(list, v) {
			return append(list, v)
		}
	}
	return list
}

// rises is true if some claims ask for more within a node than others, or are there and the others are not.
func rises(before, after []quota.ClaimInfo, tree, node string) bool {
	was, wasThere := amountsWithin(before, tree, node)
	is, isThere := amountsWithin(after, tree, node)
	for resource, amount := range is {
		if amount > was[resource] {
			return true
		}
	}
	return isThere && !wasThere
}

func amountsWithin(claims []quota.ClaimInfo, tree, node string) (map[string]quota.Amount, bool) {
	sums, isThere := map[string]quota.Amount{}, false
	for _, c := range claims {
		if c.Tree != tree || !quota.IsWithin(c.Node, node) {
			continue
		}
		isThere = true
		for _, a := range c.Amounts {
			sums[a.Resource] += a.Amount
		}
	}
	return sums, isThere
}
