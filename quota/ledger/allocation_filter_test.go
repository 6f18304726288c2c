package ledger_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// TestAllocationsBySeveralConditions compares each filter with the conditions applied to all held allocations.
func TestAllocationsBySeveralConditions(t *testing.T) {
	t.Parallel()
	l := ledger.New(quota.DefaultBounds())
	l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{
		{
			Name: "t", Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}},
			Nodes: []quota.NodeSpec{{}, {Path: "a"}, {Path: "a/x"}, {Path: "b"}},
		},
	}})
	i := 0
	for _, node := range []string{"", "a", "a/x", "b"} {
		for _, user := range []string{"", "eva", "kim"} {
			for _, mode := range []quota.Mode{quota.Hold, quota.Reserve} {
				request := quota.Allocate{
					ID: []string{"job-", "run-"}[i%2] + node + user + string('0'+rune(mode)), Mode: mode,
					Claims: []quota.Claim{{Tree: "t", Node: node, Amounts: quota.Vector{{Resource: "cpu", Amount: 1}}}},
				}
				if user != "" {
					request.Principal = quota.Principal{User: user, Application: []string{"", "etl"}[i/2%2]}
				}
				if mode == quota.Reserve {
					request.ReserveFor = 1000
				}
				from := ledger.Origin{Caller: &access.Caller{User: user}}
				if out := l.ApplyFrom(quota.Stamp{}, from, request); out.Allocation == nil {
					t.Fatalf("%+v", out)
				}
				i++
			}
		}
	}
	all, _ := l.Reader().Allocations(quota.AllocationFilter{}, 0, 1000)
	rapid.Check(t, func(t *rapid.T) {
		f := quota.AllocationFilter{
			User:        rapid.SampledFrom([]string{"", "eva", "kim", "joe"}).Draw(t, "user"),
			Application: rapid.SampledFrom([]string{"", "etl", "other"}).Draw(t, "application"),
			Owner:       rapid.SampledFrom([]string{"", "eva", "joe"}).Draw(t, "owner"),
			IDPrefix:    rapid.SampledFrom([]string{"", "job-", "run-a", "x"}).Draw(t, "prefix"),
			Tree:        "t", Node: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "node"),
		}
		if rapid.Bool().Draw(t, "one state") {
			f.State = new(rapid.SampledFrom([]quota.State{quota.Held, quota.Reserved}).Draw(t, "state"))
		}
		want := slices.DeleteFunc(slices.Clone(all.Allocations), func(a quota.AllocationInfo) bool {
			return f.User != "" && a.Principal.User != f.User ||
				f.Application != "" && a.Principal.Application != f.Application ||
				f.Owner != "" && a.Owner != f.Owner || !strings.HasPrefix(a.ID, f.IDPrefix) ||
				!quota.IsWithin(a.Claims[0].Node, f.Node) || f.State != nil && a.State != *f.State
		})
		got, refused := l.Reader().Allocations(f, 0, 1000)
		if refused != nil {
			t.Fatal(refused)
		}
		if diff := cmp.Diff(len(want), len(got.Allocations)); diff != "" {
			t.Fatalf("%+v:\n%s", f, diff)
		}
		for i := range want {
			if want[i].ID != got.Allocations[i].ID {
				t.Fatalf("%+v: %s, not %s", f, got.Allocations[i].ID, want[i].ID)
			}
		}
	})
}
