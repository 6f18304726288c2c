package check

import (
	"cmp"
	"math"
	"slices"

	"github.com/quorate/quorate/chaos/history"
)

// scheduledWindow is a scheduled limit with what answers show of it.
type scheduledWindow struct {
	history.ScheduledLimit

	client int
	// askedAt is when the first call was sent, knownAt when the first answer said that it is scheduled.
	askedAt, knownAt int64
	// knownIndex is the lowest index at which it is shown, idleIndex the highest at which it is not in force yet,
	// inForceFrom and inForceTo the lowest and highest at which it is in force, and goneIndex the lowest at which it has
	// ended; 0 if no answer shows that.
	knownIndex, idleIndex, inForceFrom, inForceTo, goneIndex uint64
	// begunAt and goneAt are when the first answer showed it in force, and ended.
	begunAt, goneAt int64
}

// windowsOf returns the scheduled limits that were or may have been made, by their begin. At one node they do not
// overlap.
func windowsOf(ops []history.Op, views []scheduleView) []*scheduledWindow {
	byID := map[string]*scheduledWindow{}
	var all []*scheduledWindow
	for i := range ops {
		o := &ops[i]
		if o.Kind != history.Schedule || o.Outcome != history.OK && o.Outcome != history.Unknown {
			continue
		}
		w := byID[o.ID]
		if w == nil {
			w = &scheduledWindow{
				ScheduledLimit: o.Scheduled[0], client: o.Client, askedAt: never, knownAt: never, begunAt: never,
				goneAt: never,
			}
			byID[o.ID], all = w, append(all, w)
		}
		if w.askedAt = min(w.askedAt, o.Call); o.Outcome == history.OK {
			w.knownAt = min(w.knownAt, o.Return)
		}
	}
	for _, w := range all {
		for _, view := range views {
			w.addView(view)
		}
	}
	slices.SortStableFunc(all, func(a, b *scheduledWindow) int { return cmp.Compare(a.From, b.From) })
	return all
}

// addView must be called in the order of the index.
func (w *scheduledWindow) addView(view scheduleView) {
	shown, isScheduled := view.shows(w.ID)
	switch {
	case isScheduled:
		w.knownIndex, w.knownAt = minNonZero(w.knownIndex, view.index), min(w.knownAt, view.returned)
		if !shown.InForce {
			w.idleIndex = view.index
			break
		}
		w.inForceFrom, w.begunAt = minNonZero(w.inForceFrom, view.index), min(w.begunAt, view.returned)
		w.inForceTo = view.index
	case w.isKnownTo(view):
		w.goneIndex, w.goneAt = minNonZero(w.goneIndex, view.index), min(w.goneAt, view.returned)
	}
}

func (w *scheduledWindow) isKnownTo(view scheduleView) bool {
	return w.knownIndex > 0 && view.index > w.knownIndex || view.isExact && view.called > w.knownAt
}

// changes returns the changes of the limit in force: that to the scheduled amount, and that back to the configured one.
// A window that no leader saw is left out, so the first is certain only if an answer shows it.
func (w *scheduledWindow) changes(s *timeline, configured int64) []limitChange {
	begin := w.newChange(s, w.From, w.Amount)
	begin.minIndex = max(begin.minIndex, w.idleIndex+1)
	begin.certain, begin.back = w.inForceFrom > 0, w.begunAt
	end := w.newChange(s, w.Until, configured)
	end.minIndex = max(end.minIndex, begin.minIndex, w.inForceTo+1)
	end.certain, end.back = w.goneIndex > 0, w.goneAt
	if end.certain {
		end.maxIndex, begin.maxIndex = w.goneIndex, w.goneIndex
	}
	if begin.certain {
		begin.maxIndex = w.inForceFrom
	}
	return []limitChange{begin, end}
}

// newChange returns a change that nothing shows, at a civil time.
func (w *scheduledWindow) newChange(s *timeline, at, amount int64) limitChange {
	l := w.Limit
	l.Amount = amount
	called := max(w.askedAt, s.lastReturnBefore(at-civilSlack))
	return limitChange{
		limitValue: limitValue{
			minIndex: s.indexFloors.highestBefore(called) + 1, maxIndex: math.MaxUint64, amount: amount,
		},
		client: w.client, limits: []history.Limit{l}, called: called, back: never,
	}
}

// lastReturnBefore returns when the last answer returned before a true time, 0 if none did: the time of a history is
// related to the true time only by answers that have both.
func (s *timeline) lastReturnBefore(wall int64) int64 {
	last := int64(0)
	for _, view := range s.scheduleViews {
		if view.wall <= wall {
			last = max(last, view.returned)
		}
	}
	return last
}

// scheduledChanges returns the changes of limits by all scheduled limits. Trees with scheduled limits are configured
// once, before.
func (s *timeline) scheduledChanges() []limitChange {
	var all []limitChange
	for _, w := range s.windows {
		configured := int64(history.Unlimited)
		for _, c := range s.changes {
			for _, l := range c.limits {
				if l.Tree == w.Tree && l.Node == w.Node && l.Resource == w.Resource {
					configured = l.Amount
				}
			}
		}
		all = append(all, w.changes(s, configured)...)
	}
	return all
}
