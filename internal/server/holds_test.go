package server

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// heldFeed is a node with grants at some positions of its log, of which it has forgotten the first.
type heldFeed struct {
	events    []cluster.WatchEvent
	applied   uint64
	forgotten cluster.Position
}

func newHeldFeed(t *testing.T, at ...cluster.Position) *heldFeed {
	t.Helper()
	l := ledger.New(quota.DefaultBounds())
	l.Apply(quota.Stamp{At: 1}, quota.ApplyTrees{Trees: []quota.TreeSpec{{
		Name: "t", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}}, Nodes: []quota.NodeSpec{{}},
	}}})
	out := l.Apply(quota.Stamp{At: 1}, quota.Allocate{ID: "a", Claims: []quota.Claim{{
		Tree: "t", Amounts: quota.Vector{{Resource: "cores", Amount: 1}},
	}}})
	if out.Allocation == nil {
		t.Fatalf("%+v", out)
	}
	f := &heldFeed{}
	for _, p := range at {
		fact := ledger.Fact{Kind: ledger.FactGranted, Allocation: out.Allocation}
		f.events, f.applied = append(f.events, cluster.WatchEvent{Position: p, Fact: fact}), p.Index
	}
	return f
}

func (f *heldFeed) Read(context.Context, cluster.ReadOptions, func(ledger.Reader)) (cluster.ReadInfo, error) {
	return cluster.ReadInfo{Index: f.applied}, nil
}

func (f *heldFeed) ReadFeed(after cluster.Position, most int) (cluster.FeedPage, error) {
	if after.Compare(f.forgotten) < 0 {
		return cluster.FeedPage{}, &cluster.Error{Reason: cluster.Forgotten}
	}
	page := cluster.FeedPage{Next: after, Changed: make(chan struct{})}
	for _, e := range f.events {
		if e.Compare(after) > 0 && len(page.Events) < most {
			page.Events, page.Next = append(page.Events, e), e.Position
		}
	}
	return page, nil
}

// TestHoldsFollowTheLog: they continue behind the last record of the file, say what they have missed, begin anew in
// another cluster, and wait while the file is slow.
func TestHoldsFollowTheLog(t *testing.T) {
	all := []cluster.Position{{Index: 5, Number: 1}, {Index: 5, Number: 2}, {Index: 6, Number: 1}}
	for name, c := range map[string]struct {
		from, forgotten cluster.Position
		want            []uint64 // the indexes of the records; 0 for a loss
	}{
		"a new file":                  {want: []uint64{5, 5, 6}},
		"in an entry":                 {from: all[0], want: []uint64{5, 6}},
		"at the end":                  {from: all[2]},
		"behind a snapshot":           {from: all[0], forgotten: all[1], want: []uint64{0}},
		"a new file after a snapshot": {forgotten: all[1]},
		"another cluster":             {from: cluster.Position{Index: 900, Number: 1}, want: []uint64{5, 5, 6}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []uint64
				var busy atomic.Bool
				busy.Store(true)
				feed := newHeldFeed(t, all...)
				feed.forgotten = c.forgotten
				h := &holdRecorder{
					node: feed, log: hclog.NewNullLogger(), isBusy: busy.Load, position: c.from,
					note: func(r audit.Record) { got = append(got, r.Index) },
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					h.run(ctx)
				}()
				time.Sleep(time.Second)
				synctest.Wait()
				if len(got) > 0 {
					t.Errorf("%v were recorded while the file was slow", got)
				}
				busy.Store(false)
				time.Sleep(time.Minute)
				synctest.Wait()
				cancel()
				<-ended
				if !slices.Equal(got, c.want) {
					t.Errorf("the records are of %v, want %v", got, c.want)
				}
			})
		})
	}
}
