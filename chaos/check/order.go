package check

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/chaos/history"
)

// inOrder (P8): in a line in which all want the same and nobody may overtake, nobody is granted while another waits who is
// more important, or as important and there earlier.
func (s *story) inOrder() *Verdict {
	v := &Verdict{Promise: "P8", Title: "ordered: nobody is overtaken", Saw: map[string]int{}}
	lines := map[string][]*life{}
	for _, l := range s.byFence {
		if ask := l.ask(); ask.Mode == history.Wait && len(ask.Claims) == 1 {
			line := fmt.Sprint(ask.Claims[0])
			lines[line] = append(lines[line], l)
		}
	}
	for _, line := range lines {
		v.saw("grants", len(line))
		for i, b := range line {
			for _, a := range line[i+1:] {
				s.overtakes(v, b, a)
			}
		}
	}
	for i := range s.ops {
		if o := &s.ops[i]; o.Kind == history.ListWaiting {
			listOrder(v, o)
		}
	}
	return v
}

// overtakes finds that b, whose fence is the smaller one, was granted while a waited before it.
func (s *story) overtakes(v *Verdict, b, a *life) {
	i := slices.IndexFunc(a.sightings, func(s sighting) bool { return s.state == history.Waiting })
	if i < 0 || a.ask().Priority < b.ask().Priority {
		return
	}
	waits := a.sightings[i] // the first; it waited from there until its own grant
	if waits.index >= b.from {
		return
	}
	v.saw("pairs", 1)
	if a.ask().Priority == b.ask().Priority && !comesAfter(b, waits) {
		return
	}
	v.broken("%s (priority %d) got fence %d at index %d to %d, while %s (priority %d), granted with fence %d, had waited since index %d at least",
		b.id, b.ask().Priority, b.fence, b.from, b.by, a.id, a.ask().Priority, a.fence, waits.index)
}

// comesAfter tells whether a request came after a sighting for certain: nobody had asked for it when that was answered, or
// the log says so.
func comesAfter(b *life, at sighting) bool {
	if b.asked > at.back {
		return true
	}
	return slices.ContainsFunc(b.sightings, func(s sighting) bool {
		return s.op != nil && s.op.Change == "WAITING" && (s.index > at.index && at.index > 0)
	})
}

// listOrder: a queue is listed by priority within each line.
func listOrder(v *Verdict, o *history.Op) {
	last := map[string]history.Record{}
	for _, r := range o.Records {
		v.saw("queue places", 1)
		line := fmt.Sprint(r.Claims)
		if before, found := last[line]; found && (before.Priority < r.Priority || before.Place >= r.Place) {
			v.broken("%s shows %s (priority %d, place %d) before %s (priority %d, place %d) at index %d",
				o.ServedBy, before.ID, before.Priority, before.Place, r.ID, r.Priority, r.Place, o.Index)
		}
		last[line] = r
	}
}

// explained (P10): every denial names at least one limit, each with numbers that add up, at a node that the request is
// about. Whether it names all of them is for linearizable to say, which knows the state.
func (s *story) explained() *Verdict {
	v := &Verdict{Promise: "P10", Title: "explained: denials name limits", Saw: map[string]int{}}
	for i := range s.ops {
		o := &s.ops[i]
		if o.Kind != history.Allocate || o.Outcome != history.Refused || o.Reason != history.Denied {
			continue
		}
		v.saw("denials", 1)
		if len(o.Violations) == 0 {
			v.broken("%s was denied and no limit is named", o.ID)
		}
		for _, x := range o.Violations {
			v.saw("violations", 1)
			if why := s.nonsense(o, x); why != "" {
				v.broken("%s was denied because of %+v: %s", o.ID, x, why)
			}
		}
	}
	return v
}

// nonsense says what is wrong with the reason of a denial.
func (s *story) nonsense(o *history.Op, x history.Violation) string {
	at := place{x.Tree, x.Node, x.Resource}
	switch {
	case x.Missing <= 0 || x.Kind == "" && x.Missing != x.Used+x.Requested-x.Limit:
		return "it does not add up"
	case x.Kind != "":
		return ""
	case amountAt(o.Claims, at) != x.Requested:
		return "something else was requested there"
	case s.limits[at] != nil && !slices.ContainsFunc(s.limits[at], func(c setting) bool { return c.amount == x.Limit }):
		return "the limit never was that"
	}
	return ""
}

// live: after everything was healed all nodes came to one index, and nobody waits who is first in his line and fits.
func (s *story) live() *Verdict {
	v := &Verdict{Promise: Live, Title: "after healing the cluster is healthy and nobody waits who fits", Saw: map[string]int{}}
	if s.finals.Missing != "" {
		v.broken("%s", s.finals.Missing)
	}
	for _, state := range s.finals.States {
		v.saw("healthy nodes", 1)
		for _, r := range state.Waiting {
			v.saw("waiting requests", 1)
			if r.Place == 1 && state.fits(r) {
				v.broken("%s waits on %s at index %d although it is the first in its line and fits", r.ID, state.Node, state.Index)
			}
		}
	}
	return v
}

// fits tells whether what a record asks for is free. Of items nothing is known here.
func (s *State) fits(r history.Record) bool {
	for _, claim := range r.Claims {
		if len(claim.Amounts) == 0 {
			return false
		}
		for _, u := range s.Usage {
			more := amountAt(r.Claims, place{u.Tree, u.Node, u.Resource})
			if more > 0 && u.Limit != history.Unlimited && u.Used+more > u.Limit {
				return false
			}
		}
	}
	return len(r.Claims) > 0
}
