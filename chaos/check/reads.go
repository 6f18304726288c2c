package check

import (
	"fmt"
	"reflect"

	"github.com/quorate/quorate/chaos/history"
)

// checkRealTimeOrder (P7): writes and linearizable reads are of an index at or above everything that had been
// answered before they were called; stale reads are marked as such and respect their minimum index; watches never go
// back.
//
// checkLinearizable compares the contents of reads with the writes.
func (s *timeline) checkRealTimeOrder() *Verdict {
	v := &Verdict{Promise: "P7", Title: "linearizable: indexes follow time", Counts: map[string]int{}}
	for i := range s.ops {
		o := &s.ops[i]
		if o.Outcome == history.Failed || o.Outcome == history.Unknown || o.Index == 0 || o.IsWatched() {
			continue
		}
		floor := s.indexFloors.highestBefore(o.Call)
		switch {
		case o.Outcome == history.Refused:
			v.Count("denials", 1)
			if o.Index <= floor && o.Mode != history.Wait { // a request that stops waiting is answered with a state
				v.AddViolation("%s was denied at index %d, but index %d had been answered before it asked", o.ID,
					o.Index, floor)
			}
		case o.IsRead():
			checkReadIndex(v, o, floor)
		case isDecisive(o), o.ChangesHolding() && !o.Repeated:
			v.Count("writes", 1)
			if o.Index <= floor {
				v.AddViolation("%s of %s took effect at index %d, but index %d had been answered before it was called",
					o.Kind, o.ID, o.Index, floor)
			}
		default:
			v.Count("repeated writes", 1)
			if o.Index < floor {
				v.AddViolation("%s of %s was answered at index %d, but index %d had been answered before it was called",
					o.Kind, o.ID, o.Index, floor)
			}
		}
	}
	s.checkWatchOrder(v)
	return v
}

func checkReadIndex(v *Verdict, o *history.Op, floor uint64) {
	if o.Stale {
		v.Count("stale reads", 1)
		if o.Index < o.MinIndex {
			v.AddViolation("%s by %s is of index %d, although the minimum index was %d", o.Kind, o.ServedBy, o.Index,
				o.MinIndex)
		}
		if !o.MarkedStale || o.ServedBy == "" {
			v.AddViolation("%s at index %d is stale and not marked as stale, or does not name the server", o.Kind,
				o.Index)
		}
		return
	}
	v.Count("linearizable reads", 1)
	if o.Index < max(floor, o.MinIndex) {
		v.AddViolation("%s by %s is of index %d, but index %d had been answered before it was called", o.Kind,
			o.ServedBy, o.Index, max(floor, o.MinIndex))
	}
	if o.MarkedStale {
		v.AddViolation("%s by %s at index %d was requested as linearizable and marked as stale", o.Kind, o.ServedBy,
			o.Index)
	}
}

func (s *timeline) checkWatchOrder(v *Verdict) {
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
			v.Count("changes", 1)
			if o.Index < before.Index || o.Index == before.Index && o.Position <= before.Position {
				v.AddViolation("a watch saw change %d.%d after %d.%d", o.Index, o.Position, before.Index,
					before.Position)
			}
		}
		last[w] = o
	}
}

// checkSameEverywhere (P9): all nodes have the same state at the same index, in the final states and in every read
// during the run.
func (s *timeline) checkSameEverywhere() *Verdict {
	v := &Verdict{Promise: "P9", Title: "the same everywhere at the same index", Counts: map[string]int{}}
	for _, state := range s.finals.States {
		v.Count("final states", 1)
		if why := stateDifference(&s.finals.States[0], &state); why != "" {
			v.AddViolation("%s and %s differ at index %d: %s", s.finals.States[0].Node, state.Node, state.Index, why)
		}
	}
	s.finals.checkDigests(v)
	seen := map[string]*history.Op{}
	for i := range s.ops {
		o := &s.ops[i]
		key := questionOf(o)
		if key == "" {
			continue
		}
		before := seen[key]
		if before == nil {
			seen[key] = o
			continue
		}
		v.Count("equal questions", 1)
		if !sameAnswers(before, o) {
			v.AddViolation("%s of operations %d (%s) and %d (%s) differ", key, before.Number, before.ServedBy, o.Number,
				o.ServedBy)
		}
	}
	return v
}

// questionOf returns a key for a read that has only one possible answer: what was asked at which index. It is empty
// for other operations.
func questionOf(o *history.Op) string {
	switch {
	case o.Outcome != history.OK || o.Index == 0 || o.Change == history.WatchBegins:
		return ""
	case o.Kind == history.Change:
		return fmt.Sprintf("change %d.%d", o.Index, o.Position)
	case o.Kind == history.Crossing && o.Change != "":
		return fmt.Sprintf("crossing %d.%d", o.Index, o.Position)
	case o.Kind == history.ReadAllocation && o.ID != "":
		return fmt.Sprintf("%s of %s at index %d", o.Kind, o.ID, o.Index)
	case o.Kind == history.ReadUsage, o.Kind == history.ListHeld, o.Kind == history.ListWaiting:
		return fmt.Sprintf("%s of %s at index %d", o.Kind, o.Claims[0].Tree, o.Index)
	case o.Kind == history.ReadLimits && len(o.Limits) > 0, o.Kind == history.ReadSchedule:
		return fmt.Sprintf("%s at index %d", o.Kind, o.Index)
	}
	return ""
}

// sameAnswers ignores the times of reads: a read tells the time at which it was answered, an event that of its entry.
func sameAnswers(a, b *history.Op) bool {
	isEvent := a.Kind == history.Change || a.Kind == history.Crossing
	if isEvent && (a.Ledger != b.Ledger || a.Civil != b.Civil) {
		return false
	}
	return a.Change == b.Change && a.ID == b.ID && a.State == b.State && a.Fence == b.Fence &&
		sameList(a.Percents, b.Percents) &&
		a.Expires == b.Expires && sameList(a.Scheduled, b.Scheduled) &&
		sameList(a.Records, b.Records) && sameList(a.Usage, b.Usage) && sameList(a.Limits, b.Limits) &&
		sameList(a.Granted, b.Granted)
}

// sameList takes a missing list as empty.
func sameList[E any](a, b []E) bool { return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b) }

// stateDifference ignores the times at which the states were read.
func stateDifference(a, b *State) string {
	switch {
	case a.Index != b.Index:
		return fmt.Sprintf("one is at index %d", a.Index)
	case a.Revision != b.Revision:
		return fmt.Sprintf("revisions %d and %d", a.Revision, b.Revision)
	case !sameList(a.Held, b.Held):
		return "held allocations"
	case !sameList(a.Waiting, b.Waiting):
		return "waiting requests"
	case !sameList(a.Usage, b.Usage):
		return "usage"
	case !sameList(a.Limits, b.Limits):
		return "limits"
	case !sameList(a.Items, b.Items):
		return "items"
	case !sameList(a.OnHold, b.OnHold):
		return "holds"
	case !sameList(a.Scheduled, b.Scheduled):
		return "scheduled limits"
	}
	return ""
}
