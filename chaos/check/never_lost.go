package check

import (
	"slices"

	"github.com/quorate/quorate/chaos/history"
)

// checkNeverLost (P3): every acknowledged write is in the final state of every node, in every linearizable read that
// was called later, and in every watch that passed its index.
func (s *timeline) checkNeverLost() *Verdict {
	v := &Verdict{Promise: "P3", Title: "never lost: acknowledged writes stay", Counts: map[string]int{}}
	for _, state := range s.finals.States {
		if top := s.indexFloors.highestBefore(never); state.Index < top {
			v.AddViolation("%s ends at index %d, but index %d had been answered", state.Node, state.Index, top)
		}
		s.checkFinalState(v, &state)
	}
	s.checkReads(v)
	s.checkLists(v)
	s.checkWatches(v)
	return v
}

// checkFinalState compares the final state of one node with what clients were told.
func (s *timeline) checkFinalState(v *Verdict, state *State) {
	held := map[string]bool{}
	for _, r := range state.Held {
		held[r.ID] = true
	}
	for _, l := range s.allocations {
		switch {
		case held[l.id]:
			v.Count("final allocations", 1)
			if l.endedIndex > 0 && l.endedIndex < state.Index && !l.restored {
				v.AddViolation("%s had ended at index %d and is held on %s at index %d", l.id, l.endedIndex, state.Node,
					state.Index)
			}
		case l.grantedAt < never && l.mustBeHeld():
			v.AddViolation("%s was granted with fence %d and is not held on %s", l.id, l.fence, state.Node)
		default:
			v.Count("ended allocations", 1)
		}
	}
}

// mustBeHeld reports whether nothing can have ended the allocation: it is neither a lease nor an unconfirmed
// reservation, and no client tried to end it.
func (l *allocationHistory) mustBeHeld() bool {
	return l.endAskedAt == never && l.goneAt == never && l.endedIndex == 0 && l.isPermanent()
}

// isPermanent reports whether the allocation does not expire, as far as answers tell. An unanswered attempt to
// confirm may have been carried out or not.
func (l *allocationHistory) isPermanent() bool {
	if !l.endsByItself() {
		return true
	}
	return l.firstRequest().Mode == history.Reserve && slices.ContainsFunc(l.observations,
		func(s observation) bool { return s.state == history.Held })
}

// checkReads finds reads that do not know an allocation that was acknowledged before they were called.
func (s *timeline) checkReads(v *Verdict) {
	for i := range s.ops {
		o := &s.ops[i]
		if o.Kind != history.ReadAllocation || o.Stale || o.ID == "" || o.Outcome != history.Refused ||
			o.Reason != "NOT_FOUND" {
			continue
		}
		l := s.allocations[o.ID]
		if l == nil {
			continue
		}
		v.Count("reads of acknowledged ids", 1)
		if l.grantedAt < o.Call {
			v.AddViolation("%s was granted with fence %d, and a read that was called later does not know it", o.ID,
				l.fence)
		}
	}
}

// checkLists finds lists that lack an allocation that was certainly held at their index.
func (s *timeline) checkLists(v *Verdict) {
	byTree := map[string][]*allocationHistory{}
	for _, l := range s.byFence {
		for _, claim := range l.firstRequest().Claims {
			if mine := byTree[claim.Tree]; len(mine) == 0 || mine[len(mine)-1] != l {
				byTree[claim.Tree] = append(mine, l)
			}
		}
	}
	for i := range s.ops {
		o := &s.ops[i]
		if o.Kind != history.ListHeld || o.Outcome != history.OK {
			continue
		}
		listed := map[string]bool{}
		for _, r := range o.Records {
			listed[r.ID] = true
		}
		for _, l := range byTree[o.Claims[0].Tree] {
			if l.maxGrantIndex <= o.Index && o.Index < l.heldIndex && !l.restored {
				v.Count("listed allocations", 1)
				if !listed[l.id] {
					v.AddViolation("%s, held from index %d to %d, is not in the list of %s at index %d", l.id,
						l.maxGrantIndex, l.heldIndex, o.ServedBy, o.Index)
				}
			}
		}
	}
}

// checkWatches finds grants that a watch passed without reporting them.
func (s *timeline) checkWatches(v *Verdict) {
	type watch struct {
		client  int
		session int64
	}
	first, last, grants := map[watch]uint64{}, map[watch]uint64{}, map[watch]map[string]bool{}
	for i := range s.ops {
		o := &s.ops[i]
		if o.Kind != history.Change {
			continue
		}
		w := watch{o.Client, o.Session}
		switch {
		case o.Change == history.WatchBegins:
			first[w], last[w], grants[w] = o.Index, o.Index, map[string]bool{}
		case grants[w] != nil:
			last[w] = max(last[w], o.Index)
			if o.Change == "GRANTED" {
				grants[w][o.ID] = true
			}
		}
	}
	for w := range grants {
		for _, l := range s.byFence {
			if l.minGrantIndex > first[w] && l.maxGrantIndex < last[w] {
				v.Count("watched grants", 1)
				if !grants[w][l.id] {
					v.AddViolation("%s was granted at index %d to %d, but watch %d of client %d (%d to %d) missed it",
						l.id, l.minGrantIndex, l.maxGrantIndex, w.session, w.client, first[w], last[w])
				}
			}
		}
	}
}
