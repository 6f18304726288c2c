package ledger_test

import (
	"fmt"
	"testing"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

func plainWideTree(nodes int) quota.ApplyTrees {
	tree := quota.TreeSpec{Name: "w", Nodes: []quota.NodeSpec{{}}}
	var none []quota.ResourceLimit
	for _, r := range []string{"a", "b", "c", "d"} {
		tree.Resources = append(tree.Resources, quota.Resource{Name: r, Unit: quota.Count})
		none = append(none, quota.ResourceLimit{Resource: r, Limit: quota.AtMost(0)})
	}
	for i := range nodes {
		tree.Nodes = append(tree.Nodes, quota.NodeSpec{Path: fmt.Sprint("n", i), Limits: none})
	}
	return quota.ApplyTrees{Trees: []quota.TreeSpec{tree}}
}

func wideRequest(nodes int) quota.Allocate {
	request := quota.Allocate{ID: "wide"}
	for i := range nodes {
		request.Claims = append(request.Claims, quota.Claim{Tree: "w", Node: fmt.Sprint("n", i), Amounts: quota.Vector{
			{Resource: "a", Amount: 1},
			{Resource: "b", Amount: 1},
			{Resource: "c", Amount: 1},
			{Resource: "d", Amount: 1},
		}})
	}
	return request
}

// TestLargeDenials: the answer has every violation and every raise, the event a bounded number.
func TestLargeDenials(t *testing.T) {
	const nodes, violations = 32, 128
	l := ledger.New(quota.DefaultBounds())
	l.Apply(quota.Stamp{}, plainWideTree(nodes))
	request := wideRequest(nodes)
	if d := l.Apply(quota.Stamp{}, request).Decision; len(d.Violations) != violations {
		t.Errorf("the answer has %d violations, want %d", len(d.Violations), violations)
	}
	events := l.Reader().Events(quota.EventFilter{}, 10).Events
	if len(events) != 1 || len(events[0].Decision.Violations) != 100 {
		t.Errorf("the events are %+v, want one with 100 violations", events)
	}
	if r := l.Sandbox().Explain(request).Decision.Remedy; len(r.Raises) != violations || len(r.Releases) != 0 {
		t.Errorf("%d raises and %d releases are advised, want %d and none", len(r.Raises), len(r.Releases), violations)
	}
	past, _, at, refused := l.Sandbox().ExplainID("wide")
	if refused != nil || at == nil || len(past.Violations) != 100 || len(past.Remedy.Raises) != violations {
		t.Errorf("the past denial is told with %d violations at %v, %v", len(past.Violations), at, refused)
	}
}

// TestReleasesAreLookedForAmongTheNewest: an explanation costs no more in a ledger that holds more.
func TestReleasesAreLookedForAmongTheNewest(t *testing.T) {
	const looked, needed = 10_000, 5
	for _, c := range []struct {
		younger, want int
	}{{0, needed}, {looked - needed, needed}, {looked - needed + 1, 0}, {looked, 0}} {
		l := ledger.New(quota.DefaultBounds())
		l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{{
			Name: "t", Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}},
			Nodes: []quota.NodeSpec{
				{},
				{Path: "a", Limits: []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(needed)}}},
				{Path: "b"},
			},
		}}})
		ask := func(id, node string, amount quota.Amount) quota.Allocate {
			return quota.Allocate{
				ID: id, Claims: []quota.Claim{
					{Tree: "t", Node: node, Amounts: quota.Vector{{Resource: "cpu", Amount: amount}}},
				},
			}
		}
		for i := range needed {
			l.Apply(quota.Stamp{}, ask(fmt.Sprint("a", i), "a", 1))
		}
		for i := range c.younger {
			l.Apply(quota.Stamp{}, ask(fmt.Sprint("b", i), "b", 1))
		}
		if r := l.Sandbox().Explain(ask("x", "a", needed)).Decision.Remedy; len(r.Releases) != c.want {
			t.Errorf("with %d younger allocations %v are advised to be released, want %d", c.younger,
				r.Releases, c.want)
		}
	}
}

// BenchmarkExplain looks for both remedies where most of what is held would help.
func BenchmarkExplain(b *testing.B) {
	l := ledger.New(quota.DefaultBounds())
	l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{{
		Name: "t", Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}},
		Nodes: []quota.NodeSpec{
			{Limits: []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(100_000)}}}, {Path: "a"},
		},
	}}})
	ask := func(id string, amount quota.Amount) quota.Allocate {
		return quota.Allocate{
			ID: id, Claims: []quota.Claim{
				{Tree: "t", Node: "a", Amounts: quota.Vector{{Resource: "cpu", Amount: amount}}},
			},
		}
	}
	for i := range 100_000 {
		l.Apply(quota.Stamp{}, ask(fmt.Sprint("a", i), 1))
	}
	for b.Loop() {
		if r := l.Sandbox().Explain(ask("x", 60)).Decision.Remedy; len(r.Releases) != 60 {
			b.Fatalf("%d releases are advised", len(r.Releases))
		}
	}
}
