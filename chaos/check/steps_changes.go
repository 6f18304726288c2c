package check

import (
	"math"

	"github.com/quorate/quorate/chaos/history"
)

// trackedNumber is 0 if no call asked for a change or a choice.
func (b *modelBuilder) trackedNumber(l *allocationHistory) int {
	if len(l.changeCalls) == 0 && l.splitBy == nil && !l.hasChoices() {
		return 0
	}
	return b.model.track(l)
}

// addChanges adds the changes of what an allocation holds, made or denied.
func (b *modelBuilder) addChanges(l *allocationHistory) {
	for i, v := range l.versions[1:] {
		s := &modelStep{
			kind: opChange, id: l.id, claims: v.after(), minKey: logKey(v.minIndex, false), maxKey: math.MaxUint64,
			tracked: b.trackedNumber(l), version: i + 1, optional: !v.certain,
		}
		if v.maxIndex < math.MaxUint64 {
			s.maxKey = logKey(v.maxIndex, false)
		}
		if s.optional {
			b.doubts++
		}
		for _, part := range v.parts {
			s.parts = append(s.parts, b.trackedNumber(b.allocations[part.ID]))
		}
		b.addStep(s, v.client, v.askedAt, v.seenAt)
	}
	for _, o := range l.changeCalls {
		if o.Outcome == history.Refused && o.Reason == history.Denied {
			b.addDeniedChange(o, b.trackedNumber(l))
		}
	}
}

func (b *modelBuilder) addDeniedChange(o *history.Op, tracked int) {
	s := &modelStep{
		kind: opDenyChange, id: o.ID, claims: wantedAfter(o), reasons: o.Violations, tracked: tracked,
		minKey: logKey(b.indexFloors.highestBefore(o.Call), false), maxKey: math.MaxUint64,
	}
	if o.Index > 0 {
		s.minKey, s.maxKey = logKey(o.Index, false), logKey(o.Index, false)
	}
	b.addStep(s, o.Client, o.Call, o.Return)
}

func wantedAfter(o *history.Op) []history.Claim { return claimsWith(o.Claims, o.Parts) }

// addPart adds the end of an allocation that a split made. The split itself is a step of the allocation that it was
// made from.
func (b *modelBuilder) addPart(l *allocationHistory) {
	b.addChanges(l)
	b.addEnd(l, 0)
}
