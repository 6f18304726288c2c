package activity

import (
	"fmt"
	"slices"
	"testing"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
)

// BenchmarkFact measures the recording of a grant or a release four levels deep, in pages of 2 and of 512 events.
func BenchmarkFact(b *testing.B) {
	s := newScene(b, Bounds{})
	s.do(b, quota.ApplyTrees{Trees: []quota.TreeSpec{{
		Name: "deep", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}},
		Nodes: []quota.NodeSpec{{}, {Path: "a"}, {Path: "a/b"}, {Path: "a/b/c"}, {Path: "a/b/c/d"}},
	}}})
	request := want("one", "a/b/c/d")
	request.Claims[0].Tree = "deep"
	s.do(b, request, quota.Release{ID: "one"})
	news := s.news[len(s.news)-2:]
	for _, size := range []int{2, 512} {
		page := slices.Repeat(news, size/2)
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Recorder.mu.Lock()
				s.recordEvents(page, 1)
				s.Recorder.mu.Unlock()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/event")
		})
	}
}

// BenchmarkSample reads a large ledger: 20,000 nodes that hold something, and 50,000 requests that wait. The ledger
// waits for a page at most, and not for the whole.
func BenchmarkSample(b *testing.B) {
	s := newScene(b, Bounds{})
	spec := quota.TreeSpec{Name: "large", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}}}
	spec.Nodes = []quota.NodeSpec{
		{Limits: []quota.ResourceLimit{{Resource: "cores", Limit: quota.Limit{Kind: quota.Limited, Amount: 19_999}}}},
	}
	for i := range 100 {
		spec.Nodes = append(spec.Nodes, quota.NodeSpec{Path: fmt.Sprintf("team-%03d", i)})
	}
	for i := range 19_899 {
		spec.Nodes = append(spec.Nodes, quota.NodeSpec{Path: fmt.Sprintf("team-%03d/user-%05d", i%100, i)})
	}
	s.do(b, quota.ApplyTrees{Trees: []quota.TreeSpec{spec}})
	at := func(id string, node int) quota.Allocate {
		r := want(id, spec.Nodes[node].Path)
		r.Claims[0].Tree = "large"
		return r
	}
	for i := range 19_999 {
		s.do(b, at(fmt.Sprint("held-", i), 1+i%19_998))
	}
	for i := range 50_000 {
		r := at(fmt.Sprint("waiting-", i), 1+i%19_998)
		r.Mode = quota.Wait
		s.do(b, r)
	}
	view := s.ledger.Reader()
	b.Run("page of the queue", func(b *testing.B) {
		for b.Loop() {
			view.WaitingClaims(nil, countsPerRead)
		}
	})
	b.Run("page of nodes", func(b *testing.B) {
		for b.Loop() {
			if _, refused := view.HeldClaims("large", true, "team-050", countsPerRead); refused != nil {
				b.Fatal(refused)
			}
		}
	})
	b.Run("whole", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := s.refreshSample(b.Context(), 0); err != nil {
				b.Fatal(err)
			}
		}
	})
}

var _ Node = (*cluster.Node)(nil)
