package check

import (
	"fmt"
	"reflect"

	"github.com/quorate/quorate/chaos/history"
)

// inTime (P7): every write, and every linearizable read, is of an index that is not behind what had been answered before it
// was called; weaker reads say what they are and keep to the index that they were asked for; watches go forwards.
//
// What the reads say is compared with the writes by linearizable.
func (s *story) inTime() *Verdict {
	v := &Verdict{Promise: "P7", Title: "linearizable: indexes follow time", Saw: map[string]int{}}
	for i := range s.ops {
		o := &s.ops[i]
		if o.Outcome == history.Failed || o.Outcome == history.Unknown || o.Index == 0 || o.Kind == history.Change {
			continue
		}
		floor := s.floors.before(o.Call)
		switch {
		case o.Outcome == history.Refused:
			v.saw("denials", 1)
			if o.Index <= floor && o.Mode != history.Wait { // who gave up waiting is shown a state instead
				v.broken("%s was denied at index %d, but index %d had been answered before it asked", o.ID, o.Index, floor)
			}
		case o.Reads():
			readInTime(v, o, floor)
		case first(o):
			v.saw("writes", 1)
			if o.Index <= floor {
				v.broken("%s of %s took effect at index %d, but index %d had been answered before it was called", o.Kind, o.ID, o.Index, floor)
			}
		default:
			v.saw("repeated writes", 1)
			if o.Index < floor {
				v.broken("%s of %s was answered at index %d, but index %d had been answered before it was called", o.Kind, o.ID, o.Index, floor)
			}
		}
	}
	s.watchesForwards(v)
	return v
}

func readInTime(v *Verdict, o *history.Op, floor uint64) {
	if o.Stale {
		v.saw("stale reads", 1)
		if o.Index < o.Least {
			v.broken("%s by %s is of index %d, although it asked for %d at least", o.Kind, o.ServedBy, o.Index, o.Least)
		}
		if !o.Marked || o.ServedBy == "" {
			v.broken("%s at index %d is stale and does not say so, or not who served it", o.Kind, o.Index)
		}
		return
	}
	v.saw("linearizable reads", 1)
	if o.Index < max(floor, o.Least) {
		v.broken("%s by %s is of index %d, but index %d had been answered before it was called", o.Kind, o.ServedBy, o.Index, max(floor, o.Least))
	}
	if o.Marked {
		v.broken("%s by %s at index %d was asked for as linearizable and answered as stale", o.Kind, o.ServedBy, o.Index)
	}
}

func (s *story) watchesForwards(v *Verdict) {
	type watch struct {
		client  int
		session int64
	}
	last := map[watch]*history.Op{}
	for i := range s.ops {
		o := &s.ops[i]
		if o.Kind != history.Change {
			continue
		}
		w := watch{o.Client, o.Session}
		if before := last[w]; before != nil && o.Change != history.WatchBegins {
			v.saw("changes", 1)
			if o.Index < before.Index || o.Index == before.Index && o.Within <= before.Within {
				v.broken("a watch saw change %d.%d after %d.%d", o.Index, o.Within, before.Index, before.Within)
			}
		}
		last[w] = o
	}
}

// sameEverywhere (P9): the final states of all nodes are the same at the same index, and so is whatever two nodes showed at
// one index during the run.
func (s *story) sameEverywhere() *Verdict {
	v := &Verdict{Promise: "P9", Title: "the same everywhere at the same index", Saw: map[string]int{}}
	for _, state := range s.finals.States {
		v.saw("final states", 1)
		if why := unlike(&s.finals.States[0], &state); why != "" {
			v.broken("%s and %s differ at index %d: %s", s.finals.States[0].Node, state.Node, state.Index, why)
		}
	}
	s.finals.sameDigests(v)
	seen := map[string]*history.Op{}
	for i := range s.ops {
		o := &s.ops[i]
		key := question(o)
		if key == "" {
			continue
		}
		before := seen[key]
		if before == nil {
			seen[key] = o
			continue
		}
		v.saw("equal questions", 1)
		if !alikeAnswers(before, o) {
			v.broken("%s of operations %d (%s) and %d (%s) differ", key, before.Number, before.ServedBy, o.Number, o.ServedBy)
		}
	}
	return v
}

// question is what has one answer only: what was asked for, at which index; empty for what has many.
func question(o *history.Op) string {
	switch {
	case o.Outcome != history.OK || o.Index == 0 || o.Change == history.WatchBegins:
		return ""
	case o.Kind == history.Change:
		return fmt.Sprintf("change %d.%d", o.Index, o.Within)
	case o.Kind == history.ReadAllocation && o.ID != "":
		return fmt.Sprintf("%s of %s at index %d", o.Kind, o.ID, o.Index)
	case o.Kind == history.ReadUsage, o.Kind == history.ListHeld, o.Kind == history.ListWaiting:
		return fmt.Sprintf("%s of %s at index %d", o.Kind, o.Claims[0].Tree, o.Index)
	case o.Kind == history.ReadLimits && len(o.Limits) > 0:
		return fmt.Sprintf("%s at index %d", o.Kind, o.Index)
	}
	return ""
}

func alikeAnswers(a, b *history.Op) bool {
	return a.Ledger == b.Ledger && a.Change == b.Change && a.ID == b.ID && a.State == b.State && a.Fence == b.Fence && a.Expires == b.Expires &&
		same(a.Records, b.Records) && same(a.Usage, b.Usage) && same(a.Limits, b.Limits) && same(a.Got, b.Got)
}

// same compares lists; none and an empty one are the same.
func same[E any](a, b []E) bool { return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b) }

// unlike says in what two states differ, or nothing.
func unlike(a, b *State) string {
	switch {
	case a.Index != b.Index:
		return fmt.Sprintf("one is at index %d", a.Index)
	case a.Ledger != b.Ledger:
		return fmt.Sprintf("ledger times %d and %d", a.Ledger, b.Ledger)
	case a.Revision != b.Revision:
		return fmt.Sprintf("revisions %d and %d", a.Revision, b.Revision)
	case !same(a.Held, b.Held):
		return "what is held"
	case !same(a.Waiting, b.Waiting):
		return "who waits"
	case !same(a.Usage, b.Usage):
		return "the use of nodes"
	case !same(a.Limits, b.Limits):
		return "limits"
	case !same(a.Items, b.Items):
		return "items"
	}
	return ""
}
