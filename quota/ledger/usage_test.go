package ledger_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// TestUsageAfterAnyPath: a page that continues after a path has exactly the nodes behind it in the whole list, also if
// the path does not exist.
func TestUsageAfterAnyPath(t *testing.T) {
	l := ledger.New(quota.DefaultBounds())
	spec := quota.TreeSpec{
		Name: "t", Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}},
		Nodes: []quota.NodeSpec{{}},
	}
	paths := []string{"a", "a/b", "a/b/c", "a/b-c", "a-b", "a-b/c", "b", "b/a", "b/a/z", "b.x", "c"}
	for _, path := range paths {
		spec.Nodes = append(spec.Nodes, quota.NodeSpec{Path: path})
	}
	if out := l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{spec}}); out.Refused != nil {
		t.Fatal(out.Refused)
	}
	for _, top := range []string{"", "a", "a/b", "b", "c"} {
		whole, _ := l.Reader().Usage(quota.UsageQuery{Tree: "t", Node: top, Subtree: true, Max: 100})
		for i, n := range whole.Nodes {
			page, _ := l.Reader().Usage(quota.UsageQuery{
				Tree: "t", Node: top, Subtree: true, After: &quota.UsagePosition{Path: n.Path}, Max: 100,
			})
			if diff := cmp.Diff(pathsOf(whole.Nodes[i+1:]), pathsOf(page.Nodes)); diff != "" {
				t.Errorf("below %q after %q (-want +got):\n%s", top, n.Path, diff)
			}
		}
	}
	for after, first := range map[string]string{
		"a/a": "a/b", "a/b/d": "a/b-c", "a/zz/z": "a-b", "B": "a", "b/a/zz": "b.x",
	} {
		page, _ := l.Reader().Usage(quota.UsageQuery{
			Tree: "t", Subtree: true, After: &quota.UsagePosition{Path: after}, Max: 1,
		})
		if len(page.Nodes) != 1 || page.Nodes[0].Path != first {
			t.Errorf("after %q comes %v, want %q", after, pathsOf(page.Nodes), first)
		}
	}
}

func pathsOf(nodes []quota.NodeUsage) []string {
	list := []string{}
	for _, n := range nodes {
		list = append(list, n.Path)
	}
	return list
}

// BenchmarkUsagePage reads one page of 100 nodes at the beginning and near the end of a tree of 20,000.
func BenchmarkUsagePage(b *testing.B) {
	l := ledger.New(quota.DefaultBounds())
	l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{wideTree(20_000)}})
	for _, after := range []string{"department-0", "department-99/team-1"} {
		b.Run(fmt.Sprint("after=", after), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				page, _ := l.Reader().Usage(quota.UsageQuery{
					Tree: "wide", Subtree: true, After: &quota.UsagePosition{Path: after}, Max: 100,
				})
				if len(page.Nodes) < 50 {
					b.Fatalf("%d nodes", len(page.Nodes))
				}
			}
		})
	}
}
