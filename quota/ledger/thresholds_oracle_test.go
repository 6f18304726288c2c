package ledger_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestThresholdsAgainstHistory compares the events about thresholds with what follows from the whole history of the use
// of each limit.
func TestThresholdsAgainstHistory(t *testing.T) {
	t.Parallel()
	verify.Check(t, thresholdsAgainstHistory)
}

func thresholdsAgainstHistory(t *rapid.T) {
	w := &warned{ledger: ledger.New(quota.DefaultBounds()), history: map[crossingKey][]sample{}}
	w.apply(t, w.tree(t))
	for range 40 {
		if quotatest.Die(t, 12, "reload") == 0 {
			w.ledger = reload(t, w.ledger)
		}
		c := w.command(t)
		w.ledger.Sandbox().DryRun(c)
		w.apply(t, c)
	}
}

// crossingKey is one threshold of one limit.
type crossingKey struct {
	node, resource string
	percent        int
}

// sample is the use of a limit after one command.
type sample struct {
	used, limit int
	// limited is false for no limit, configured for a threshold that does not count.
	limited, configured bool
	margin              int
}

// warned is a ledger with the history of its use, by threshold.
type warned struct {
	ledger  *ledger.Ledger
	now     quota.Instant
	last    uint64 // number of the newest event
	samples int
	history map[crossingKey][]sample
}

var warnedPaths = []string{"", "a", "a/x", "b"}

func (w *warned) tree(t *rapid.T) quota.ApplyTrees {
	spec := quota.TreeSpec{
		Name: "t", Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}, {Name: "ram", Unit: quota.Bytes}},
	}
	for i, path := range warnedPaths {
		if i > 1 && quotatest.Die(t, 6, "left out") == 0 && !w.holds(path) {
			continue
		}
		n := quota.NodeSpec{Path: path, Thresholds: quotatest.Thresholds(t)}
		for _, name := range []string{"cpu", "ram"} {
			if quotatest.Die(t, 3, "limited") > 0 {
				n.Limits = append(n.Limits, quota.ResourceLimit{Resource: name, Limit: w.limit(t)})
			}
		}
		spec.Nodes = append(spec.Nodes, n)
	}
	spec.Nodes[0].Policy = rapid.SampledFrom([]string{"open", "borrowing", "cohort"}).Draw(t, "policy")
	return quota.ApplyTrees{Trees: []quota.TreeSpec{spec}}
}

func (w *warned) holds(path string) bool {
	page, _ := w.ledger.Reader().Usage(quota.UsageQuery{Tree: "t", Node: path, Max: 1})
	return len(page.Nodes) > 0 && slices.ContainsFunc(page.Nodes[0].Resources,
		func(r quota.ResourceUsage) bool { return r.Subtree > 0 })
}

func (w *warned) limit(t *rapid.T) quota.Limit {
	if quotatest.Die(t, 8, "unlimited") == 0 {
		return quota.NoLimit()
	}
	if quotatest.Die(t, 8, "advisory") == 0 {
		return quota.AdvisoryLimit(quota.Amount(quotatest.Die(t, 21, "limit")))
	}
	limit := quota.AtMost(quota.Amount(quotatest.Die(t, 21, "limit")))
	if quotatest.Die(t, 6, "advisory") == 0 {
		limit.Kind = quota.Advisory
	}
	return limit
}

func (w *warned) command(t *rapid.T) quota.Command {
	id := fmt.Sprintf("i%d", quotatest.Die(t, 5, "id"))
	path := rapid.SampledFrom(warnedPaths).Draw(t, "path")
	amounts := quota.Vector{{Resource: "cpu", Amount: quota.Amount(quotatest.Die(t, 12, "cpu"))}}
	switch n := quotatest.Die(t, 20, "kind"); {
	case n < 2:
		return w.tree(t)
	case n < 5:
		return quota.SetLimits{Tree: "t", Node: path, Limits: []quota.ResourceLimit{{Resource: "cpu", Limit: w.limit(t)}}}
	case n < 8:
		return quota.Resize{ID: id, Claims: []quota.ClaimChange{{Tree: "t", Node: path, Amounts: amounts}}}
	case n < 12:
		return quota.Release{ID: id}
	case n < 13:
		return quota.Confirm{ID: id}
	case n < 14:
		return quota.Cancel{ID: id}
	}
	c := quota.Allocate{
		ID: id,
		Mode: rapid.SampledFrom([]quota.Mode{quota.Hold, quota.Hold, quota.Force, quota.Wait, quota.Reserve}).
			Draw(t, "mode"),
		Claims: []quota.Claim{{Tree: "t", Node: path, Amounts: amounts}},
	}
	c.Claims[0].Priority = int64(quotatest.Die(t, 3, "priority"))
	if c.Mode == quota.Reserve {
		c.ReserveFor = 1000
	}
	return c
}

// apply carries out a command and compares the events that it adds.
func (w *warned) apply(t *rapid.T, c quota.Command) {
	w.now += 700_000 // ids may be used again
	w.ledger.Apply(quota.Stamp{At: w.now}, c)
	if err := w.ledger.Check(); err != nil {
		t.Fatalf("%+v: %v", c, err)
	}
	var got []string
	for _, e := range w.ledger.Reader().Events(quota.EventFilter{After: w.last}, 1000).Events {
		w.last = e.Number
		if k := e.Crossing; k != nil {
			got = append(got, crossingText(e.Kind == quota.EventCrossed, crossingKey{k.Node, k.Resource, k.Percent}))
		}
	}
	facts := 0
	for _, f := range w.ledger.TakeFacts() {
		if f.Crossing != nil {
			facts++
		}
	}
	want := w.observe()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || facts != len(got) {
		t.Fatalf("%+v made the events\n%v and %d facts, want\n%v", c, got, facts, want)
	}
}

func crossingText(upwards bool, k crossingKey) string { return fmt.Sprintf("%v %+v", upwards, k) }

// observe appends the present use to the history, and judges each threshold by all of its history.
func (w *warned) observe() []string {
	w.samples++
	page, _ := w.ledger.Reader().Usage(quota.UsageQuery{Tree: "t", Subtree: true, Max: 1000})
	spec, _ := w.ledger.Reader().Tree("t")
	for _, n := range page.Nodes {
		own := thresholdsOf(spec, n.Path)
		for _, r := range n.Resources {
			for _, percent := range own.Percents {
				k := crossingKey{n.Path, r.Resource.Name, percent}
				for len(w.history[k]) < w.samples-1 {
					w.history[k] = append(w.history[k], sample{})
				}
				w.history[k] = append(w.history[k], sample{
					used: int(r.Subtree), limit: int(r.Effective.Amount), limited: r.Effective.HasAmount(),
					configured: true, margin: cmp.Or(own.Margin, min(5, own.Percents[0]-1)),
				})
			}
		}
	}
	var events []string
	for k, samples := range w.history {
		if len(samples) < w.samples {
			samples = append(samples, sample{})
			w.history[k] = samples
		}
		if before, after := isCrossed(k, samples[:w.samples-1]), isCrossed(k, samples); before != after && w.exists(k.node) {
			events = append(events, crossingText(after, k))
		}
	}
	return events
}

// exists is false for a node that was removed, of which nothing is told.
func (w *warned) exists(path string) bool {
	_, refused := w.ledger.Reader().Usage(quota.UsageQuery{Tree: "t", Node: path, Max: 1})
	return refused == nil
}

// isCrossed follows a threshold from the beginning.
func isCrossed(k crossingKey, samples []sample) bool {
	crossed := false
	for _, s := range samples {
		reaches := s.used*100 >= k.percent*s.limit
		if crossed {
			reaches = reaches || s.used*100 > (k.percent-s.margin)*s.limit
		}
		crossed = s.configured && s.limited && s.used > 0 && reaches
	}
	return crossed
}

// thresholdsOf are the thresholds of a node: its own, or those of the nearest node above that says something.
func thresholdsOf(spec quota.TreeSpec, path string) quota.Thresholds {
	for {
		i := slices.IndexFunc(spec.Nodes, func(n quota.NodeSpec) bool { return n.Path == path })
		if w := spec.Nodes[i].Thresholds; w.None || len(w.Percents) > 0 || path == "" {
			return w
		}
		path = quota.ParentPath(path)
	}
}
