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
			{Principals: []quota.PrincipalLimit{{Groups: []string{"red"}, Applications: 9}}},
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
	tr := l.forest.trees["t"]
	tr.byPath["a/x"].parent = tr.byPath["b"]
	if err := (verifier{l}).checkAccounts(); err == nil {
		t.Fatal("the accounts cannot know yet that the node has moved")
	}
	tr.recount()
	if err := (verifier{l}).checkAccounts(); err != nil {
		t.Fatal(err)
	}
	if used := tr.accounts.groups["red"].at[tr.byPath["b"]].used[0]; used != 15 {
		t.Errorf("red holds %d at b, want 15", used)
	}
	tr.byPath["a/x"].parent = tr.byPath["a"]
	tr.recount()
	for _, id := range []string{"1", "2", "3", "4"} {
		if out := l.Apply(quota.Stamp{}, quota.Release{ID: id}); out.Refused != nil {
			t.Fatal(out.Refused)
		}
	}
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
}
