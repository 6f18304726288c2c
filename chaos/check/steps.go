package check

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/quorate/quorate/chaos/history"
)

// untimed is why a group is left out: allocations end there without anybody being told.
const untimed = "allocations end by themselves"

// builder gathers the steps of the model on a group of trees.
type builder struct {
	*story

	trees  map[string]bool
	steps  []porcupine.Operation
	doubts int
}

// steps are the operations of the model on a group of trees, or why there are none.
func (s *story) steps(trees map[string]bool) (steps []porcupine.Operation, why string) {
	b := &builder{story: s, trees: trees}
	for _, id := range slices.Sorted(maps.Keys(s.lives)) {
		l := s.lives[id]
		if !slices.ContainsFunc(l.ask().Claims, func(c history.Claim) bool { return trees[c.Tree] }) {
			continue
		}
		if l.leased() || l.ask().Mode == history.Wait || l.restored {
			return nil, untimed
		}
		if b.life(l); b.doubts > mostDoubts {
			return nil, fmt.Sprintf("of more than %d allocations nobody knows whether they happened", mostDoubts)
		}
	}
	b.readings()
	b.settings()
	return b.steps, ""
}

func (b *builder) add(s *step, client int, call, back int64) {
	b.steps = append(b.steps, porcupine.Operation{ClientId: client, Input: s, Call: call, Return: back})
}

// bit is a new one.
func (b *builder) bit() uint64 {
	b.doubts++
	return 1 << ((b.doubts - 1) % mostDoubts)
}

// life adds what is known of one allocation.
func (b *builder) life(l *life) {
	for _, o := range l.asks {
		if o.Outcome == history.Refused && o.Reason == history.Denied {
			b.denial(o)
		}
	}
	grant := &step{deed: grants, id: l.id, claims: l.ask().Claims, fence: l.fence, from: key(l.from, false), by: math.MaxUint64}
	if l.happened() {
		grant.by = key(l.by, false)
		b.add(grant, l.ask().Client, l.asked, l.granted)
		b.end(l, 0)
		return
	}
	asked := slices.ContainsFunc(l.asks, func(o *history.Op) bool { return o.Outcome == history.Unknown })
	switch ended := l.given < never; {
	case l.gone < never: // nobody saw it held, but somebody was told that it had ended
		b.add(grant, l.ask().Client, l.asked, l.gone)
		b.end(l, 0)
	case !asked:
	case len(b.finals.States) > 0 && !ended: // it would be in the final states
	default:
		grant.bit, grant.maybe = b.bit(), true
		b.add(grant, l.ask().Client, l.asked, never)
		b.end(l, grant.bit)
	}
}

// denial adds one that somebody was told; older servers do not say at which index.
func (b *builder) denial(o *history.Op) {
	s := &step{deed: denies, id: o.ID, claims: o.Claims, because: o.Violations, from: key(b.floors.before(o.Call), false), by: math.MaxUint64}
	if o.Index > 0 && o.Mode != history.Wait {
		s.from, s.by = key(o.Index, false), key(o.Index, false)
	}
	b.add(s, o.Client, o.Call, o.Return)
}

// end adds the end of an allocation that somebody tried to end.
func (b *builder) end(l *life, bit uint64) {
	if l.given == never && l.gone == never {
		return
	}
	s := &step{deed: ends, id: l.id, claims: l.ask().Claims, from: key(l.until, false), by: math.MaxUint64, bit: bit}
	client := l.ask().Client
	switch called := min(l.given, l.gone); {
	case l.end > 0:
		s.from, s.by = key(l.end, false), key(l.end, false)
		b.add(s, client, called, l.gone)
	case l.gone < never:
		if l.over > 0 {
			s.by = key(l.over, false)
		}
		b.add(s, client, called, l.gone)
	case len(b.finals.States) > 0 && bit == 0:
		if last := b.finals.States[0].Index; l.until < last { // it is not in the final states
			s.by = key(last, false)
			b.add(s, client, called, never)
		}
	default:
		s.maybe = true
		b.doubts++
		b.add(s, client, called, never)
	}
}

// readings adds reads of the group. A stale one is of the past, but true at its index.
func (b *builder) readings() {
	for i := range b.ops {
		o := &b.ops[i]
		if o.Kind != history.ReadUsage || o.Outcome != history.OK || !b.trees[o.Claims[0].Tree] {
			continue
		}
		called := o.Call
		if o.Stale {
			called = 0
		}
		b.add(&step{deed: reads, usage: o.Usage, from: key(o.Index, true), by: key(o.Index, true)}, o.Client, called, o.Return)
	}
}

// settings adds changes of limits.
func (b *builder) settings() {
	for _, c := range b.changes {
		if !slices.ContainsFunc(c.limits, func(l history.Limit) bool { return b.trees[l.Tree] }) {
			continue
		}
		s := &step{deed: sets, limits: c.limits, from: key(c.from, false), by: math.MaxUint64, maybe: !c.certain}
		if c.certain {
			s.by = key(c.by, false)
		}
		b.add(s, c.client, c.called, c.back)
	}
}
