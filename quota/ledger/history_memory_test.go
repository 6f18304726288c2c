package ledger_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// TestHistoryTakesWhatItShows: a revision keeps its first changes, so it takes as much memory in a large tree as in one
// that has just so many nodes.
func TestHistoryTakesWhatItShows(t *testing.T) {
	small, large := revisionSize(t, quota.MaxRevisionChanges), revisionSize(t, 20*quota.MaxRevisionChanges)
	t.Logf("a revision of %d changes takes %d bytes, one of %d takes %d", quota.MaxRevisionChanges, small,
		20*quota.MaxRevisionChanges, large)
	if large > 2*small {
		t.Errorf("a revision of %d changes takes %d bytes, one of %d takes %d, and both show as many",
			quota.MaxRevisionChanges, small, 20*quota.MaxRevisionChanges, large)
	}
}

// revisionSize is the memory of one revision that changes all nodes of a tree and cannot be undone any more.
func revisionSize(t *testing.T, nodes int) int64 {
	t.Helper()
	const revisions = 12
	bounds := quota.DefaultBounds()
	bounds.HistoryNodes = 1
	ledger := ledger.New(bounds)
	change := func(limit int64) {
		tree := quota.TreeSpec{
			Name: "t", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}},
			Nodes: []quota.NodeSpec{{Policy: "open"}},
		}
		for i := range nodes {
			tree.Nodes = append(tree.Nodes, quota.NodeSpec{
				Path:   fmt.Sprintf("n%06d", i),
				Limits: []quota.ResourceLimit{{Resource: "cores", Limit: quota.AtMost(quota.Amount(limit))}},
			})
		}
		if out := ledger.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{tree}}); out.Refused != nil ||
			len(out.Configuration.Changes) < nodes {
			t.Fatalf("%+v", out.Refused)
		}
	}
	change(1)
	change(2)
	before := heapSize()
	for i := range int64(revisions) {
		change(i + 3)
	}
	took := heapSize() - before
	runtime.KeepAlive(ledger)
	return took / revisions
}

func heapSize() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
