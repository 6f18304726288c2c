package ledger

import (
	"testing"

	"github.com/quorate/quorate/quota"
)

// TestRecount: when a node has moved, what is held there counts on its new way to the root, and no longer on the old
// one.
func TestRecount(t *testing.T) {
	l := New(quota.DefaultBounds())
	l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{{
		Name: "t", Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}},
		Nodes: []quota.NodeSpec{
			{Principals: []quota.PrincipalLimit{{Groups: []string{"red"}, Applications: quota.AtMost(9)}}},
			{Path: "a"},
			{Path: "a/x"},
			{Path: "b"},
		},
	}}})
	for id, node := range map[string]string{"1": "a", "2": "a/x", "3": "a/x", "4": "b"} {
		out := l.Apply(quota.Stamp{}, quota.Allocate{
			ID: id, Claims: []quota.Claim{{Tree: "t", Node: node, Amounts: quota.Vector{{Resource: "cpu", Amount: 5}}}},
			Principal: quota.Principal{User: "ann", Groups: []string{"red"}, Application: "app-" + id},
		})
		if out.Allocation == nil {
			t.Fatalf("%+v", out)
		}
	}
	tr := l.state.Forest.Trees["t"]
	tr.ByPath["a/x"].Parent = tr.ByPath["b"]
	tr.Recount()
	if used := tr.Accounts.Groups["red"].At[tr.ByPath["b"]].Used[0]; used != 15 {
		t.Errorf("red holds %d at b, want 15", used)
	}
	tr.ByPath["a/x"].Parent = tr.ByPath["a"]
	tr.Recount()
	for _, id := range []string{"1", "2", "3", "4"} {
		if out := l.Apply(quota.Stamp{}, quota.Release{ID: id}); out.Refused != nil {
			t.Fatal(out.Refused)
		}
	}
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
}
