package check

import (
	"slices"

	"github.com/quorate/quorate/chaos/history"
)

// neverLost (P3): whatever was acknowledged is in the final state of every node, in every linearizable read that was called
// later, and in every watch that passed its index.
func (s *story) neverLost() *Verdict {
	v := &Verdict{Promise: "P3", Title: "never lost: acknowledged writes stay", Saw: map[string]int{}}
	for _, state := range s.finals.States {
		if top := s.floors.before(never); state.Index < top {
			v.broken("%s ends at index %d, but index %d had been answered", state.Node, state.Index, top)
		}
		s.inFinal(v, &state)
	}
	s.inReads(v)
	s.inLists(v)
	s.inWatches(v)
	return v
}

// inFinal compares one node's final state with what callers were told.
func (s *story) inFinal(v *Verdict, state *State) {
	held := map[string]bool{}
	for _, r := range state.Held {
		held[r.ID] = true
	}
	for _, l := range s.lives {
		switch {
		case held[l.id]:
			v.saw("final allocations", 1)
			if l.over > 0 && l.over < state.Index && !l.restored {
				v.broken("%s had ended at index %d and is held on %s at index %d", l.id, l.over, state.Node, state.Index)
			}
		case l.granted < never && l.mustBeHeld():
			v.broken("%s was granted with fence %d and is not held on %s", l.id, l.fence, state.Node)
		default:
			v.saw("ended allocations", 1)
		}
	}
}

// mustBeHeld tells whether nothing could have ended it: no lease, no reservation that was not confirmed, and nobody tried.
func (l *life) mustBeHeld() bool {
	return l.given == never && l.gone == never && l.over == 0 && l.lasting()
}

// lasting tells whether it does not end by itself, as far as anybody was told. An attempt to confirm that was not answered
// may have been carried out, but need not.
func (l *life) lasting() bool {
	if !l.leased() {
		return true
	}
	return l.ask().Mode == history.Reserve && slices.ContainsFunc(l.sightings, func(s sighting) bool { return s.state == history.Held })
}

// inReads: whoever asks for an acknowledged allocation later finds it.
func (s *story) inReads(v *Verdict) {
	for i := range s.ops {
		o := &s.ops[i]
		if o.Kind != history.ReadAllocation || o.Stale || o.ID == "" || o.Outcome != history.Refused || o.Reason != "NOT_FOUND" {
			continue
		}
		l := s.lives[o.ID]
		if l == nil {
			continue
		}
		v.saw("reads of acknowledged ids", 1)
		if l.granted < o.Call {
			v.broken("%s was granted with fence %d, and a read that was called later does not know it", o.ID, l.fence)
		}
	}
}

// inLists: a list of what is held at an index has everything that was held there for certain, and nothing that had ended.
func (s *story) inLists(v *Verdict) {
	byTree := map[string][]*life{}
	for _, l := range s.byFence {
		for _, claim := range l.ask().Claims {
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
			if l.by <= o.Index && o.Index < l.until && !l.restored {
				v.saw("listed allocations", 1)
				if !listed[l.id] {
					v.broken("%s, held from index %d to %d, is not in the list of %s at index %d", l.id, l.by, l.until, o.ServedBy, o.Index)
				}
			}
		}
	}
}

// inWatches: a watch that went from one index to another saw every grant between them.
func (s *story) inWatches(v *Verdict) {
	type watch struct {
		client  int
		session int64
	}
	first, last, saw := map[watch]uint64{}, map[watch]uint64{}, map[watch]map[string]bool{}
	for i := range s.ops {
		o := &s.ops[i]
		if o.Kind != history.Change {
			continue
		}
		w := watch{o.Client, o.Session}
		switch {
		case o.Change == history.WatchBegins:
			first[w], last[w], saw[w] = o.Index, o.Index, map[string]bool{}
		case saw[w] != nil:
			last[w] = max(last[w], o.Index)
			if o.Change == "GRANTED" {
				saw[w][o.ID] = true
			}
		}
	}
	for w := range saw {
		for _, l := range s.byFence {
			if l.from > first[w] && l.by < last[w] {
				v.saw("watched grants", 1)
				if !saw[w][l.id] {
					v.broken("%s was granted at index %d to %d, and watch %d of client %d from %d to %d did not see it",
						l.id, l.from, l.by, w.session, w.client, first[w], last[w])
				}
			}
		}
	}
}
