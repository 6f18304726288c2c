package check

import (
	"fmt"
	"math"
	"slices"

	"github.com/quorate/quorate/chaos/history"
)

// checkQueueOrder (P8): among requests that want the same and may not be overtaken, none is granted while another one
// waits that has a higher priority, or the same priority and arrived earlier.
func (s *timeline) checkQueueOrder() *Verdict {
	v := &Verdict{Promise: "P8", Title: "ordered: no waiting request is overtaken", Counts: map[string]int{}}
	lines := map[string][]*allocationHistory{}
	for _, l := range s.byFence {
		if ask := l.firstRequest(); ask.Mode != history.Wait || len(ask.Claims) != 1 {
			continue
		}
		for _, claims := range l.choices() {
			line := fmt.Sprint(claims)
			lines[line] = append(lines[line], l)
		}
	}
	for claims, line := range lines {
		v.Count("grants", len(line))
		for i, b := range line {
			if fmt.Sprint(b.versions[0].claims) != claims {
				continue // it was granted another alternative
			}
			for _, a := range line[i+1:] {
				s.checkOvertaking(v, b, a)
			}
		}
	}
	for i := range s.ops {
		if o := &s.ops[i]; o.Kind == history.ListWaiting {
			checkListOrder(v, o)
		}
	}
	return v
}

// checkOvertaking reports that b, which has the smaller fence, was granted while a waited ahead of it.
func (s *timeline) checkOvertaking(v *Verdict, b, a *allocationHistory) {
	i := slices.IndexFunc(a.observations, func(s observation) bool { return s.state == history.Waiting })
	if i < 0 || a.firstRequest().Priority < b.firstRequest().Priority {
		return
	}
	waits := a.observations[i] // the first one; the request waited from then until its own grant
	if waits.index >= b.minGrantIndex {
		return
	}
	v.Count("pairs", 1)
	if a.firstRequest().Priority == b.firstRequest().Priority && !arrivedAfter(b, waits) {
		return
	}
	v.AddViolation("%s (priority %d) got fence %d at index %d to %d, "+
		"while %s (priority %d, fence %d) had waited since index %d or earlier",
		b.id, b.firstRequest().Priority, b.fence, b.minGrantIndex, b.maxGrantIndex, a.id, a.firstRequest().Priority,
		a.fence, waits.index)
}

// arrivedAfter is true only if that is certain: the request was sent after the observation was answered, or the log
// says so.
func arrivedAfter(b *allocationHistory, at observation) bool {
	if b.askedAt > at.returned {
		return true
	}
	return slices.ContainsFunc(b.observations, func(s observation) bool {
		return s.op != nil && s.op.Change == "WAITING" && (s.index > at.index && at.index > 0)
	})
}

// checkListOrder: requests that want the same are listed by priority and position.
func checkListOrder(v *Verdict, o *history.Op) {
	last := map[string]history.Record{}
	for _, r := range o.Records {
		if r.State != history.Waiting {
			continue // it stands for the resize that waits for it
		}
		v.Count("queue places", 1)
		line := fmt.Sprint(r.Claims)
		if before, found := last[line]; found && (before.Priority < r.Priority || before.Place >= r.Place) {
			v.AddViolation("%s shows %s (priority %d, place %d) before %s (priority %d, place %d) at index %d",
				o.ServedBy, before.ID, before.Priority, before.Place, r.ID, r.Priority, r.Place, o.Index)
		}
		last[line] = r
	}
}

// checkExplained (P10): every denial names at least one limit, each with numbers that add up, at a node that the
// request claims at. Whether it names all exceeded limits is checked by checkLinearizable, which knows the state.
func (s *timeline) checkExplained() *Verdict {
	v := &Verdict{Promise: "P10", Title: "explained: denials name limits", Counts: map[string]int{}}
	for i := range s.ops {
		o := &s.ops[i]
		if o.Kind != history.Allocate && !o.ChangesHolding() || o.Outcome != history.Refused ||
			o.Reason != history.Denied {
			continue
		}
		v.Count("denials", 1)
		if len(o.Violations) == 0 {
			v.AddViolation("%s was denied and no limit is named", o.ID)
		}
		for _, x := range o.Violations {
			v.Count("violations", 1)
			if why := s.invalidReason(o, x); why != "" {
				v.AddViolation("%s was denied because of %+v: %s", o.ID, x, why)
			}
		}
	}
	return v
}

func (s *timeline) invalidReason(o *history.Op, x history.Violation) string {
	at := violatedLimit(x)
	switch {
	case x.Kind == history.Cordon && !slices.ContainsFunc(s.limits[at], func(c limitValue) bool { return c.amount == 0 }):
		return "the node never was on hold"
	case x.Kind == history.Cordon:
		return ""
	case x.Missing <= 0 || x.Kind == "" && x.Missing != x.Used+x.Requested-x.Limit:
		return "it does not add up"
	case x.Kind != "":
		return ""
	case !s.mayRequest(o, x):
		return "something else was requested there"
	case s.limits[at] != nil && !slices.ContainsFunc(s.limits[at],
		func(c limitValue) bool { return c.amount == x.Limit }):
		return "the limit never was that"
	}
	return ""
}

func violatedLimit(x history.Violation) limitKey {
	if x.Kind == history.Cordon {
		return limitKey{x.Tree, x.Node, history.OnHold}
	}
	return limitKey{x.Tree, x.Node, x.Resource}
}

// mayRequest reports whether a call asks for the amount of a reason beyond what it has there: a change of what is held
// asks for the difference to what the allocation holds when the change is decided.
func (s *timeline) mayRequest(o *history.Op, x history.Violation) bool {
	at := violatedLimit(x)
	wanted := amountAt(claimsWith(o.ClaimsOf(x.Alternative), o.Parts), at)
	l := s.allocations[o.ID]
	if !o.ChangesHolding() || l == nil {
		return wanted == x.Requested
	}
	from, to := o.Index, o.Index
	if o.Index == 0 {
		to = math.MaxUint64
	}
	return slices.ContainsFunc(l.versionsBetween(from, to), func(v *holdingVersion) bool {
		return v.generation < o.Generation && wanted-amountAt(v.claims, at) == x.Requested
	})
}

// checkLive: after healing, all nodes reached one index, and no request waits that is first in its queue and fits.
func (s *timeline) checkLive() *Verdict {
	v := &Verdict{
		Promise: Live, Title: "after healing the cluster is healthy and no request waits that fits",
		Counts: map[string]int{},
	}
	if s.finals.Missing != "" {
		v.AddViolation("%s", s.finals.Missing)
	}
	for _, state := range s.finals.States {
		v.Count("healthy nodes", 1)
		for _, r := range state.Waiting {
			v.Count("waiting requests", 1)
			if r.Place == 1 && state.hasRoomFor(r) {
				v.AddViolation("%s waits on %s at index %d although it is first in its queue and fits", r.ID,
					state.Node, state.Index)
			}
		}
	}
	return v
}

// hasRoomFor reports whether the requested amounts are free, at nodes that are not on hold. It does not count free
// items.
func (s *State) hasRoomFor(r history.Record) bool {
	for _, h := range s.OnHold {
		if amountAt(r.Claims, limitKey{h.Tree, h.Node, h.Resource}) > 0 {
			return false
		}
	}
	for _, claim := range r.Claims {
		if len(claim.Amounts) == 0 {
			return false
		}
		for _, u := range s.Usage {
			more := amountAt(r.Claims, limitKey{u.Tree, u.Node, u.Resource})
			if more > 0 && u.Limit != history.Unlimited && u.Used+more > u.Limit {
				return false
			}
		}
	}
	return len(r.Claims) > 0
}
