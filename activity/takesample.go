package activity

import (
	"context"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// countsPerRead is how many nodes or waiting requests are looked at while the ledger waits.
const countsPerRead = 2_000

// takeSample reads a sample: page by page the queue, then tree by tree its nodes and resource by resource its items.
func (r *Recorder) takeSample(ctx context.Context) (s sample, err error) {
	var trees []quota.TreeSummary
	if err := r.readLocal(ctx, func(v ledger.View) { s.counts, trees = v.Counts(), v.Trees() }); err != nil {
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
	return s, nil
}

// readLocal lends what this server has now.
func (r *Recorder) readLocal(ctx context.Context, fn func(ledger.View)) error {
	_, err := r.node.Read(ctx, cluster.ReadOptions{Stale: true}, fn)
	return err
}

func (r *Recorder) sampleQueue(ctx context.Context, s *sample) error {
	for next, first := (*quota.QueueTurn)(nil), true; first || next != nil; first = false {
		err := r.readLocal(ctx, func(v ledger.View) {
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

// sampleTree leaves a tree out that has gone since it was listed.
func (r *Recorder) sampleTree(ctx context.Context, name string, s *sample) error {
	t, there := treeSample{name: name}, true
	for next, more := "", false; there; {
		err := r.readLocal(ctx, func(v ledger.View) { there = t.addPage(v, &next, &more) })
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

// addPage looks at one page, and with the last one at resources; false if the tree has gone.
func (t *treeSample) addPage(v ledger.View, next *string, more *bool) bool {
	page, gone := v.HeldClaims(t.name, *more, *next, countsPerRead)
	t.nodes, *next, *more = append(t.nodes, page.Nodes...), page.Next, page.More
	if gone == nil && !page.More {
		t.resources, gone = v.ItemClaims(t.name)
	}
	return gone == nil
}

// sampleItems leaves out what there is no room for on the page of metrics.
func (r *Recorder) sampleItems(ctx context.Context, t quota.TreeSummary, s *sample) error {
	for _, resource := range t.Resources {
		if resource.Unit != quota.Items || len(s.items) == r.bounds.Resources {
			continue
		}
		err := r.readLocal(ctx, func(v ledger.View) {
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
