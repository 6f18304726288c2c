package check

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/chaos/history"
)

// checkNeverTwice (P2): an id is granted once and ends once, its retries get the same answer, and no item has two
// holders at a time, neither by the log nor by the clock of the clients.
func (s *timeline) checkNeverTwice() *Verdict {
	v := &Verdict{
		Promise: "P2", Title: "never twice: one grant for an id, one holder for an item",
		Counts: map[string]int{},
	}
	owner := map[uint64]string{}
	for _, l := range s.allocations {
		v.Count("ids", 1)
		l.checkSingleGrant(v)
		l.checkRetries(v)
		if l.wasGranted() {
			if other, taken := owner[l.fence]; taken {
				v.AddViolation("fence %d was given to %s and to %s", l.fence, other, l.id)
			}
			owner[l.fence] = l.id
		}
	}
	for _, holds := range s.itemHolds() {
		checkExclusive(v, holds)
	}
	for _, holds := range s.boskosHolds() {
		checkExclusive(v, holds)
	}
	s.checkFinalUsage(v)
	return v
}

// checkSingleGrant: an allocation has one fence and one grant, and does not hold anything after its end.
func (l *allocationHistory) checkSingleGrant(v *Verdict) {
	fresh := 0
	for _, s := range l.observations {
		if s.fence > 0 && s.fence != l.fence {
			v.AddViolation("%s was granted under fence %d and under %d", l.id, l.fence, s.fence)
		}
		if s.op != nil && s.op.Kind == history.Allocate && s.decisive && s.isHeld() {
			fresh++
		}
	}
	if fresh > 1 {
		v.AddViolation("%s was granted %d times as if it was new", l.id, fresh)
	}
	if l.endedIndex > 0 && l.heldIndex > l.endedIndex && !l.restored {
		v.AddViolation("%s had ended at index %d and is held at index %d", l.id, l.endedIndex, l.heldIndex)
	}
}

// checkRetries: a retry is never refused as another request, and never denied while the allocation is held.
func (l *allocationHistory) checkRetries(v *Verdict) {
	if len(l.requests) < 2 {
		return
	}
	v.Count("retried ids", 1)
	for _, o := range l.requests {
		switch {
		case o.Outcome != history.Refused:
		case o.Reason == "ID_TAKEN":
			v.AddViolation("%s was asked for again with the same content and refused as taken", l.id)
		case o.Reason == history.Denied && l.grantedAt < o.Call && l.goneAt > o.Return && l.heldIndex > 0 &&
			l.heldThroughout(o):
			v.AddViolation("%s was granted with fence %d and denied when it was repeated", l.id, l.fence)
		}
	}
}

// heldThroughout reports whether an allocation was held during a whole call: a later call saw it held.
func (l *allocationHistory) heldThroughout(o *history.Op) bool {
	return slices.ContainsFunc(l.observations, func(s observation) bool {
		return s.isHeld() && s.called > o.Return && s.called != never
	})
}

// itemHold is a span in which the holder certainly held the item.
type itemHold struct {
	holder   string
	from, to int64
	item     string
}

// checkExclusive finds two holders at one time. A span may begin where another one ends.
func checkExclusive(v *Verdict, holds []itemHold) {
	slices.SortFunc(holds, func(a, b itemHold) int { return cmp.Compare(a.from, b.from) })
	var last itemHold
	for i, h := range holds {
		v.Count("item holds", 1)
		if i > 0 && h.from < last.to && h.holder != last.holder {
			v.AddViolation("%s held %s from %d to %d, and %s from %d to %d", last.holder, h.item, last.from, last.to,
				h.holder, h.from, h.to)
		}
		if i == 0 || h.to > last.to {
			last = h
		}
	}
}

// itemHolds returns the spans of all items, both by index and by time: from the answer that granted the item until
// its holder first tried to release it, or could no longer rely on the lease.
func (s *timeline) itemHolds() map[string][]itemHold {
	all := map[string][]itemHold{}
	for _, l := range s.byFence {
		for _, claim := range l.heldClaims() {
			for _, item := range claim.Items {
				name := claim.Tree + ":" + item
				if l.heldIndex > l.maxGrantIndex && !l.restored {
					all[name+" by index"] = append(all[name+" by index"],
						itemHold{l.id, int64(l.maxGrantIndex), int64(l.heldIndex), name})
				}
				if from, to := l.holdSpan(); from < to {
					all[name+" by time"] = append(all[name+" by time"], itemHold{l.id, from, to, name})
				}
			}
		}
	}
	return all
}

// holdSpan returns when the holder certainly knew that it held the allocation.
func (l *allocationHistory) holdSpan() (from, to int64) {
	from, to = l.grantedAt, min(l.endAskedAt, l.goneAt)
	if l.endsByItself() {
		to = min(to, l.guaranteedUntil())
	}
	return from, to
}

// boskosHolds returns the spans of what was acquired through Boskos front ends, by time.
func (s *timeline) boskosHolds() map[string][]itemHold {
	all := map[string][]itemHold{}
	open := map[string]int{} // owner and item -> position in all[key]
	for i := range s.ops {
		o := &s.ops[i]
		if o.Kind != history.BoskosAcquire && o.Kind != history.BoskosUpdate && o.Kind != history.BoskosRelease ||
			len(o.Claims) == 0 {
			continue
		}
		item := o.Claims[0].Items[0]
		key := o.Claims[0].Tree + ":" + item
		at, held := open[o.ID+" "+item]
		switch {
		case o.Kind == history.BoskosAcquire && o.Outcome == history.OK:
			all[key] = append(all[key], itemHold{o.ID, o.Return, o.Call + o.TTL*1e6, key})
			open[o.ID+" "+item] = len(all[key]) - 1
		case held && o.Kind == history.BoskosUpdate && o.Outcome == history.OK:
			all[key][at].to = o.Call + o.TTL*1e6
		case held && o.Kind == history.BoskosRelease:
			all[key][at].to = min(all[key][at].to, o.Call)
			delete(open, o.ID+" "+item)
		}
	}
	return all
}

// checkFinalUsage: in the final states the usage of every node is the sum of the allocations held there, and each
// item has at most one holder.
func (s *timeline) checkFinalUsage(v *Verdict) {
	for _, state := range s.finals.States {
		held := map[string]bool{}
		for _, r := range state.Held {
			for _, claim := range r.Claims {
				for _, item := range claim.Items {
					if key := claim.Tree + ":" + item; held[key] {
						v.AddViolation("on %s two allocations hold %s", state.Node, key)
					} else {
						held[key] = true
					}
				}
			}
		}
		for _, u := range state.Usage {
			v.Count("final usages", 1)
			var sum int64
			for _, r := range state.Held {
				sum += amountAt(r.Claims, limitKey{u.Tree, u.Node, u.Resource})
			}
			if sum != u.Used {
				v.AddViolation("on %s %s:%s counts %d %s, but what is held there adds up to %d", state.Node, u.Tree,
					u.Node, u.Used, u.Resource, sum)
			}
		}
	}
}
