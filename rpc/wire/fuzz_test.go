package wire

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// FuzzConvert converts requests from arbitrary bytes. It must not panic, and converted commands must be canonical:
// every list sorted, the root first. Their content is validated by the ledger.
func FuzzConvert(f *testing.F) {
	for _, seed := range []proto.Message{
		&quoratev1.AllocateRequest{Id: "a", Claims: exampleClaims(), Labels: map[string]string{"b": "1", "a": "2"}},
		&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{exampleTree()}, RequestId: "r"},
		&quoratev1.SetLimitsRequest{Tree: "cern", Node: "physics", Limits: coreLimits(3), RequestId: "r"},
	} {
		encoded, err := proto.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(encoded)
	}
	setting := exampleTree()
	everySetting(setting)
	setting.Moves = []*quoratev1.NodeMove{{Node: "old", NewNode: "physics"}}
	encoded, err := proto.Marshal(&quoratev1.ApplyTreesRequest{
		Trees: []*quoratev1.Tree{setting}, Prune: true, Access: exampleSection(),
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(encoded)
	base, _, err := ToApplyTrees(&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{exampleTree()}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var allocate quoratev1.AllocateRequest
		if proto.Unmarshal(data, &allocate) == nil {
			command := ToAllocate(&allocate, quota.DefaultNamespace)
			checkAllocate(t, command)
			checkLedger(t, base, command)
		}
		var apply quoratev1.ApplyTreesRequest
		if proto.Unmarshal(data, &apply) == nil {
			if command, _, err := ToApplyTrees(&apply); err == nil {
				checkTrees(t, command)
				checkLedger(t, base, command)
			}
		}
		var set quoratev1.SetLimitsRequest
		if proto.Unmarshal(data, &set) == nil {
			if limits, err := ToLimits(set.GetLimits(), "limits", true); err == nil {
				checkLimits(t, limits)
				checkLedger(t, base, quota.SetLimits{Tree: set.GetTree(), Node: set.GetNode(), Limits: limits})
			}
		}
	})
}

func checkLedger(t *testing.T, base, command quota.Command) {
	t.Helper()
	ledger := ledger.New(quota.DefaultBounds())
	ledger.Apply(quota.Stamp{}, base)
	ledger.Apply(quota.Stamp{}, command)
	if err := ledger.Check(); err != nil {
		t.Errorf("after %+v: %v", command, err)
	}
}

func checkAllocate(t *testing.T, command quota.Allocate) {
	t.Helper()
	checkLabels(t, command.Labels)
	ascending(t, command.Principal.Groups, func(name string) string { return name })
	for _, c := range command.Claims {
		ascending(t, c.Amounts, func(c quota.Component) string { return c.Resource })
	}
}

func checkTrees(t *testing.T, command quota.ApplyTrees) {
	t.Helper()
	for _, tree := range command.Trees {
		if len(tree.Nodes) == 0 || tree.Nodes[0].Path != "" {
			t.Errorf("the root of %+v is not first", tree)
		}
		if !slices.IsSortedFunc(tree.Nodes, func(a, b quota.NodeSpec) int { return comparePaths(a.Path, b.Path) }) {
			t.Errorf("the nodes of %+v are not in order", tree)
		}
		if !slices.IsSortedFunc(tree.Resources,
			func(a, b quota.Resource) int { return strings.Compare(a.Name, b.Name) }) {
			t.Errorf("the resources of %+v are not in order", tree)
		}
		for _, n := range tree.Nodes {
			checkLabels(t, n.Labels)
			for _, limits := range [][]quota.ResourceLimit{n.Limits, n.Defaults, n.Borrow, n.Lend} {
				checkLimits(t, limits)
			}
			same := func(a, b access.Binding) bool { return a.Compare(b) == 0 }
			if !slices.EqualFunc(n.Bindings, access.CanonicalBindings(n.Bindings), same) {
				t.Errorf("the bindings of %+v are not canonical", n)
			}
			for _, p := range n.Principals {
				ascending(t, p.Limits, func(c quota.Component) string { return c.Resource })
			}
		}
	}
}

func checkLabels(t *testing.T, labels []quota.Label) {
	t.Helper()
	ascending(t, labels, func(l quota.Label) string { return l.Key })
}

func checkLimits(t *testing.T, limits []quota.ResourceLimit) {
	t.Helper()
	ascending(t, limits, func(l quota.ResourceLimit) string { return l.Resource })
}

// ascending checks that keys are sorted and unique.
func ascending[T any](t *testing.T, list []T, key func(T) string) {
	t.Helper()
	for i := range list {
		if i > 0 && key(list[i-1]) >= key(list[i]) {
			t.Errorf("%+v is not in order", list)
		}
	}
}
