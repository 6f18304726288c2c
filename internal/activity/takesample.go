package activity

import (
	"context"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// countsPerRead is how many nodes or waiting requests are read while the ledger is locked.
const countsPerRead = 2_000

// takeSample reads a sample: the queue page by page, then for each tree its nodes page by page, and the items of each
// resource, and the usage of the shown nodes.
func (r *Recorder) takeSample(ctx context.Context) (s sample, err error) {
	var trees []quota.TreeSummary
	if err := r.readLocal(ctx, func(v ledger.Reader) { s.counts, trees = v.Counts(), v.Trees() }); err != nil {
		return s, err
	}
	if err := r.sampleQueue(ctx, &s); err != nil {
		return s, err
	}
	for _, t := range trees {
		if err := r.sampleTree(ctx, t.Name, &s); err != nil {
			return s, err
		}
		if err := r.sampleItems(ctx, t, &s); err != nil {
			return s, err
		}
	}
	return s, r.sampleShown(ctx, &s)
}

func (r *Recorder) readLocal(ctx context.Context, fn func(ledger.Reader)) error {
	_, err := r.node.Read(ctx, cluster.ReadOptions{Stale: true}, fn)
	return err
}

func (r *Recorder) sampleQueue(ctx context.Context, s *sample) error {
	for next, first := (*quota.QueueTurn)(nil), true; first || next != nil; first = false {
		err := r.readLocal(ctx, func(v ledger.Reader) {
			var list []quota.WaitingClaim
			list, next = v.WaitingClaims(next, countsPerRead)
			s.waiting = append(s.waiting, list...)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sampleTree skips a tree that was deleted since it was listed.
func (r *Recorder) sampleTree(ctx context.Context, name string, s *sample) error {
	t, there := treeSample{name: name}, true
	for next, more := "", false; there; {
		err := r.readLocal(ctx, func(v ledger.Reader) { there = t.addPage(v, &next, &more) })
		if err != nil {
			return err
		}
		if there && !more {
			s.trees = append(s.trees, t)
			return nil
		}
	}
	return nil
}

// addPage reads one page of nodes, and with the last page the resources; false if the tree was deleted.
func (t *treeSample) addPage(v ledger.Reader, next *string, more *bool) bool {
	page, gone := v.HeldClaims(t.name, *more, *next, countsPerRead)
	t.nodes, *next, *more = append(t.nodes, page.Nodes...), page.Next, page.More
	if gone == nil && !page.More {
		t.resources, gone = v.ItemClaims(t.name)
	}
	return gone == nil
}

func (r *Recorder) sampleItems(ctx context.Context, t quota.TreeSummary, s *sample) error {
	for _, resource := range t.Resources {
		if resource.Unit != quota.Items || len(s.items) == r.bounds.Resources {
			continue
		}
		err := r.readLocal(ctx, func(v ledger.Reader) {
			counts, gone := v.ItemCounts(t.Name, resource.Name)
			if gone != nil {
				return
			}
			for _, c := range counts {
				c.States = mostFrequent(c.States, r.bounds.States)
				s.items = append(s.items, c)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}
