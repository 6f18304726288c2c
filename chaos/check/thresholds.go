package check

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/chaos/history"
)

type thresholdKey struct {
	limitKey

	percent int64
}

// thresholdWatch is one watch of thresholds, with its messages, and the reads of usage that it covers, in log order.
type thresholdWatch struct {
	ops  []*history.Op
	last uint64
}

// checkThresholds compares what watches tell of thresholds with what was used: each crossing is told once, when the use
// has reached the threshold, and cleared once, when it has fallen by the margin.
func (s *timeline) checkThresholds() *Verdict {
	v := &Verdict{
		Promise: "thresholds", Title: "thresholds: each crossing is told once", Counts: map[string]int{},
	}
	for i := range s.ops {
		if set := &s.ops[i]; len(set.Percents) > 0 && set.Kind == history.Configure && set.Outcome == history.OK {
			for _, w := range s.thresholdWatches(set) {
				w.check(v, set)
			}
			break // they are set once
		}
	}
	return v
}

// thresholdWatches returns the watches that began after thresholds were set.
func (s *timeline) thresholdWatches(set *history.Op) []*thresholdWatch {
	type session struct {
		client int
		number int64
	}
	all := map[session]*thresholdWatch{}
	for i := range s.ops {
		o := &s.ops[i]
		key := session{o.Client, o.Session}
		switch {
		case o.Kind != history.Crossing:
		case o.Change == history.WatchBegins && o.Index >= set.Index:
			all[key] = &thresholdWatch{ops: []*history.Op{o}, last: o.Index}
		case all[key] != nil:
			all[key].ops, all[key].last = append(all[key].ops, o), o.Index
		}
	}
	var watches []*thresholdWatch
	for _, w := range all {
		w.addReads(s.ops, set.Limits[0].Tree)
		watches = append(watches, w)
	}
	return watches
}

// addReads adds the reads of usage between the begin of the watch and its last message. A read shows the state after
// all events of its index.
func (w *thresholdWatch) addReads(ops []history.Op, tree string) {
	first := w.ops[0].Index
	for i := range ops {
		o := &ops[i]
		isUsage := o.Kind == history.ReadUsage && o.Outcome == history.OK && o.Claims[0].Tree == tree
		if isUsage && o.Index >= first && o.Index < w.last {
			w.ops = append(w.ops, o)
		}
	}
	isRead := func(o *history.Op) int { return map[bool]int{true: 1}[o.Kind == history.ReadUsage] }
	slices.SortStableFunc(w.ops, func(a, b *history.Op) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(isRead(a), isRead(b)))
	})
}

// check follows the state of each threshold through a watch; a threshold that is not in it yet may be crossed or not.
func (w *thresholdWatch) check(v *Verdict, set *history.Op) {
	isCrossed := map[thresholdKey]bool{}
	for _, o := range w.ops {
		for _, u := range o.Usage {
			at := limitKey{u.Tree, u.Node, u.Resource}
			if o.Kind == history.ReadUsage {
				for _, percent := range set.Percents {
					checkReadThreshold(v, o, u, thresholdKey{at, percent}, set.Margin, isCrossed)
				}
				continue
			}
			v.Count("crossings", 1)
			key := thresholdKey{at, o.Percents[0]}
			crosses := o.Change == history.Crossed
			if previous, known := isCrossed[key]; known && previous == crosses {
				v.AddViolation("%d%% of %s:%s is %s at index %d, and was so before", key.percent, u.Tree, u.Node, o.Change,
					o.Index)
			}
			isReached, certain := thresholdState(u, key.percent, set.Margin)
			clears := !crosses && isAtMargin(u, key.percent, set.Margin)
			if !clears && (!certain || isReached != crosses) {
				v.AddViolation("%d%% of %s:%s is %s at index %d, with %d of %d", key.percent, u.Tree, u.Node, o.Change, o.Index,
					u.Used, u.Limit)
			}
			isCrossed[key] = crosses
		}
	}
}

// checkReadThreshold compares the usage that a read shows with what was told.
func checkReadThreshold(
	v *Verdict, o *history.Op, u history.Usage, key thresholdKey, margin int64, isCrossed map[thresholdKey]bool,
) {
	isReached, certain := thresholdState(u, key.percent, margin)
	if !certain {
		return
	}
	v.Count("usages", 1)
	if previous, known := isCrossed[key]; known && previous != isReached {
		v.AddViolation("%s:%s uses %d of %d at index %d, which was not told for %d%%", u.Tree, u.Node, u.Used, u.Limit,
			o.Index, key.percent)
	}
	isCrossed[key] = isReached
}

// isAtMargin is true if the use clears the threshold: it is the margin below.
func isAtMargin(u history.Usage, percent, margin int64) bool {
	return 100*u.Used == (percent-margin)*u.Limit
}

// thresholdState reports whether a threshold is crossed by a use. That is not certain within the margin, where it
// depends on what was crossed before.
func thresholdState(u history.Usage, percent, margin int64) (isCrossed, certain bool) {
	isCrossed = 100*u.Used >= percent*u.Limit
	return isCrossed, isCrossed || 100*u.Used < (percent-margin)*u.Limit
}
