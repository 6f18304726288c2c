package check

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/chaos/history"
)

// neverTwice (P2): an id is granted once and ends once, its retries are answered alike, and no item has two holders at any
// time, by the log and by the clock of the callers.
func (s *story) neverTwice() *Verdict {
	v := &Verdict{Promise: "P2", Title: "never twice: one grant for an id, one holder for an item", Saw: map[string]int{}}
	owner := map[uint64]string{}
	for _, l := range s.lives {
		v.saw("ids", 1)
		l.once(v)
		l.alike(v)
		if l.happened() {
			if other, taken := owner[l.fence]; taken {
				v.broken("fence %d was given to %s and to %s", l.fence, other, l.id)
			}
			owner[l.fence] = l.id
		}
	}
	for _, holds := range s.itemHolds() {
		alone(v, holds)
	}
	for _, holds := range s.vanHolds() {
		alone(v, holds)
	}
	s.chargedOnce(v)
	return v
}

// once: one fence, one grant, and nothing that has ended is held again.
func (l *life) once(v *Verdict) {
	fresh := 0
	for _, s := range l.sightings {
		if s.fence > 0 && s.fence != l.fence {
			v.broken("%s was granted under fence %d and under %d", l.id, l.fence, s.fence)
		}
		if s.op != nil && s.op.Kind == history.Allocate && s.first && s.holds() {
			fresh++
		}
	}
	if fresh > 1 {
		v.broken("%s was granted %d times as if it was new", l.id, fresh)
	}
	if l.over > 0 && l.until > l.over && !l.restored {
		v.broken("%s had ended at index %d and is held at index %d", l.id, l.over, l.until)
	}
}

// alike: a retry says the same as the first request, so it is never taken for another; and what was granted and has not
// ended is not denied.
func (l *life) alike(v *Verdict) {
	if len(l.asks) < 2 {
		return
	}
	v.saw("retried ids", 1)
	for _, o := range l.asks {
		switch {
		case o.Outcome != history.Refused:
		case o.Reason == "ID_TAKEN":
			v.broken("%s was asked for again with the same content and refused as taken", l.id)
		case o.Reason == history.Denied && l.granted < o.Call && l.gone > o.Return && l.until > 0 && l.certainlyHeld(o):
			v.broken("%s was granted with fence %d and denied when it was repeated", l.id, l.fence)
		}
	}
}

// certainlyHeld tells whether it was held during a whole call: somebody asked later and saw it held.
func (l *life) certainlyHeld(o *history.Op) bool {
	return slices.ContainsFunc(l.sightings, func(s sighting) bool { return s.holds() && s.call > o.Return && s.call != never })
}

// hold is a span in which an item had a holder for certain.
type hold struct {
	who      string
	from, to int64
	item     string
}

// alone finds two holders at one time. What ends where another begins is not at one time.
func alone(v *Verdict, holds []hold) {
	slices.SortFunc(holds, func(a, b hold) int { return cmp.Compare(a.from, b.from) })
	var last hold
	for i, h := range holds {
		v.saw("item holds", 1)
		if i > 0 && h.from < last.to && h.who != last.who {
			v.broken("%s held %s from %d to %d, and %s from %d to %d", last.who, h.item, last.from, last.to, h.who, h.from, h.to)
		}
		if i == 0 || h.to > last.to {
			last = h
		}
	}
}

// itemHolds are the spans of items by index, and by time: from the answer that gave it until its holder first tried to give
// it back, or its lease was over as he counts.
func (s *story) itemHolds() map[string][]hold {
	all := map[string][]hold{}
	for _, l := range s.byFence {
		for _, claim := range l.claims() {
			for _, item := range claim.Items {
				name := claim.Tree + ":" + item
				if l.until > l.by && !l.restored {
					all[name+" by index"] = append(all[name+" by index"], hold{l.id, int64(l.by), int64(l.until), name})
				}
				if from, to := l.span(); from < to {
					all[name+" by time"] = append(all[name+" by time"], hold{l.id, from, to, name})
				}
			}
		}
	}
	return all
}

// span is when its holder knew for certain that it was his.
func (l *life) span() (from, to int64) {
	from, to = l.granted, min(l.given, l.gone)
	if l.leased() {
		to = min(to, l.surelyUntil())
	}
	return from, to
}

// vanHolds are the spans of what was acquired through Boskos front ends, by time.
func (s *story) vanHolds() map[string][]hold {
	all := map[string][]hold{}
	open := map[string]int{} // by owner: the place of what he holds
	for i := range s.ops {
		o := &s.ops[i]
		if o.Kind != history.Take && o.Kind != history.Keep && o.Kind != history.Give || len(o.Claims) == 0 {
			continue
		}
		item := o.Claims[0].Items[0]
		key := o.Claims[0].Tree + ":" + item
		at, held := open[o.ID+" "+item]
		switch {
		case o.Kind == history.Take && o.Outcome == history.OK:
			all[key] = append(all[key], hold{o.ID, o.Return, o.Call + o.TTL*1e6, key})
			open[o.ID+" "+item] = len(all[key]) - 1
		case held && o.Kind == history.Keep && o.Outcome == history.OK:
			all[key][at].to = o.Call + o.TTL*1e6
		case held && o.Kind == history.Give:
			all[key][at].to = min(all[key][at].to, o.Call)
			delete(open, o.ID+" "+item)
		}
	}
	return all
}

// chargedOnce: in the final states the use of every node is what the allocations held there add up to, and no item has a
// holder that does not hold it.
func (s *story) chargedOnce(v *Verdict) {
	for _, state := range s.finals.States {
		held := map[string]bool{}
		for _, r := range state.Held {
			for _, claim := range r.Claims {
				for _, item := range claim.Items {
					if key := claim.Tree + ":" + item; held[key] {
						v.broken("on %s two allocations hold %s", state.Node, key)
					} else {
						held[key] = true
					}
				}
			}
		}
		for _, u := range state.Usage {
			v.saw("final usages", 1)
			var sum int64
			for _, r := range state.Held {
				sum += amountAt(r.Claims, place{u.Tree, u.Node, u.Resource})
			}
			if sum != u.Used {
				v.broken("on %s %s:%s counts %d %s, but what is held there adds up to %d", state.Node, u.Tree, u.Node, u.Used, u.Resource, sum)
			}
		}
	}
}
