package check

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/quorate/quorate/chaos/history"
)

// unseenEnds is why a group is not searched: allocations expire there, and no answer may tell when.
const unseenEnds = "allocations end by themselves"

type modelBuilder struct {
	*timeline

	model  *modelContext
	trees  map[string]bool
	steps  []porcupine.Operation
	doubts int
}

// modelSteps also returns why the group cannot be searched, or an empty text.
func (s *timeline) modelSteps(
	model *modelContext, trees map[string]bool,
) (steps []porcupine.Operation, why string) {
	b := &modelBuilder{timeline: s, model: model, trees: trees}
	for _, id := range slices.Sorted(maps.Keys(s.allocations)) {
		l := s.allocations[id]
		if !slices.ContainsFunc(l.firstRequest().Claims, func(c history.Claim) bool { return trees[c.Tree] }) {
			continue
		}
		if l.endsByItself() || l.mayWait() || l.restored {
			return nil, unseenEnds
		}
		if b.addAllocation(l); b.doubts > maxDoubts {
			return nil, fmt.Sprintf("of more than %d allocations no answer tells whether they were granted", maxDoubts)
		}
	}
	b.addReads()
	b.addLimitChanges()
	return b.steps, ""
}

func (b *modelBuilder) addStep(s *modelStep, client int, call, back int64) {
	b.steps = append(b.steps, porcupine.Operation{ClientId: client, Input: s, Call: call, Return: back})
}

func (b *modelBuilder) newDoubtBit() uint64 {
	b.doubts++
	return 1 << ((b.doubts - 1) % maxDoubts)
}

func (b *modelBuilder) addAllocation(l *allocationHistory) {
	for _, o := range l.requests {
		if o.Outcome == history.Refused && o.Reason == history.Denied {
			b.addDenial(o)
		}
	}
	grant := &modelStep{
		kind: opGrant, id: l.id, claims: l.firstRequest().Claims, fence: l.fence,
		minKey: logKey(l.minGrantIndex, false), maxKey: math.MaxUint64, tracked: b.trackedNumber(l),
	}
	if l.hasChoices() {
		grant.isChoice, grant.version = true, l.choiceGranted()
	}
	if l.splitBy != nil {
		b.addPart(l)
		return
	}
	b.addChanges(l)
	if l.wasGranted() {
		grant.maxKey = logKey(l.maxGrantIndex, false)
		b.addStep(grant, l.firstRequest().Client, l.askedAt, l.grantedAt)
		b.addEnd(l, 0)
		return
	}
	isUncertain := slices.ContainsFunc(l.requests, func(o *history.Op) bool { return o.Outcome == history.Unknown })
	switch ended := l.endAskedAt < never; {
	case l.goneAt < never: // no answer shows it held, but one says that it has ended
		b.addStep(grant, l.firstRequest().Client, l.askedAt, l.goneAt)
		b.addEnd(l, 0)
	case !isUncertain:
	case len(b.finals.States) > 0 && !ended: // if it had been granted, the final states would have it
	default:
		grant.doubtBit, grant.optional = b.newDoubtBit(), true
		b.addStep(grant, l.firstRequest().Client, l.askedAt, never)
		b.addEnd(l, grant.doubtBit)
	}
}

// addDenial adds a denial. Older servers do not tell its index.
func (b *modelBuilder) addDenial(o *history.Op) {
	s := &modelStep{
		kind: opDeny, id: o.ID, claims: o.Claims, anyOf: o.AnyOf, reasons: o.Violations,
		minKey: logKey(b.indexFloors.highestBefore(o.Call), false), maxKey: math.MaxUint64,
	}
	if o.Index > 0 && o.Mode != history.Wait {
		s.minKey, s.maxKey = logKey(o.Index, false), logKey(o.Index, false)
	}
	b.addStep(s, o.Client, o.Call, o.Return)
}

// addEnd adds the end of an allocation that a client tried to end.
func (b *modelBuilder) addEnd(l *allocationHistory, bit uint64) {
	if l.endAskedAt == never && l.goneAt == never {
		return
	}
	s := &modelStep{
		kind: opEnd, id: l.id, claims: l.firstRequest().Claims, minKey: logKey(l.heldIndex, false),
		maxKey: math.MaxUint64, doubtBit: bit, tracked: b.trackedNumber(l),
		onlyIfHeld: l.splitBy != nil && !l.wasGranted(),
	}
	client := l.firstRequest().Client
	switch called := min(l.endAskedAt, l.goneAt); {
	case l.endIndex > 0:
		s.minKey, s.maxKey = logKey(l.endIndex, false), logKey(l.endIndex, false)
		b.addStep(s, client, called, l.goneAt)
	case l.goneAt < never:
		if l.endedIndex > 0 {
			s.maxKey = logKey(l.endedIndex, false)
		}
		b.addStep(s, client, called, l.goneAt)
	case len(b.finals.States) > 0 && bit == 0:
		if last := b.finals.States[0].Index; l.heldIndex < last { // the final states do not have it
			s.maxKey = logKey(last, false)
			b.addStep(s, client, called, never)
		}
	default:
		s.optional = true
		b.doubts++
		b.addStep(s, client, called, never)
	}
}

// addReads adds the reads of the group. A stale read may be of the past, but is exact at its index.
func (b *modelBuilder) addReads() {
	for i := range b.ops {
		o := &b.ops[i]
		if o.Kind != history.ReadUsage || o.Outcome != history.OK || !b.trees[o.Claims[0].Tree] {
			continue
		}
		called := o.Call
		if o.Stale {
			called = 0
		}
		b.addStep(&modelStep{
			kind: opRead, usage: o.Usage, minKey: logKey(o.Index, true),
			maxKey: logKey(o.Index, true),
		}, o.Client, called, o.Return)
	}
}

func (b *modelBuilder) addLimitChanges() {
	for _, c := range b.changes {
		if !slices.ContainsFunc(c.limits, func(l history.Limit) bool { return b.trees[l.Tree] }) {
			continue
		}
		s := &modelStep{
			kind: opSetLimits, limits: c.limits, minKey: logKey(c.minIndex, false), maxKey: math.MaxUint64,
			optional: !c.certain,
		}
		if c.certain {
			s.maxKey = logKey(c.maxIndex, false)
		}
		b.addStep(s, c.client, c.called, c.back)
	}
}
