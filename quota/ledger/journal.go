package ledger

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/quota"
)

// maxEventViolations bounds the violations that an event of a denial keeps.
const maxEventViolations = 100

// journal keeps the newest events, and the facts of the present command.
type journal struct {
	*environment
	facts     []Fact         // of the last command
	events    []*quota.Event // oldest first
	lastEvent uint64         // number of the last one
	bytes     int64          // what the events take, see quota.Sizes
}

// Events shows up to max remembered events after a number (0: from the oldest): those of a kind, unless it is 0, and of
// an id, unless it is empty. Requests and decisions in them must not be changed.
func (v View) Events(after uint64, kind quota.EventKind, id string, max int) quota.EventPage {
	var page quota.EventPage
	for _, e := range v.ledger.journal.eventsAfter(after) {
		if kind != 0 && e.Kind != kind || id != "" && e.ID != id {
			continue
		}
		if len(page.Events) == max {
			return page
		}
		page.Events = append(page.Events, *e)
		page.Next = e.Number
	}
	page.Next = 0
	return page
}

func (j *journal) eventsAfter(number uint64) []*quota.Event {
	from, found := slices.BinarySearchFunc(j.events, number, func(e *quota.Event, number uint64) int { return cmp.Compare(e.Number, number) })
	if found {
		from++
	}
	return j.events[from:]
}

// noteEvent remembers an event and forgets the oldest beyond the bound.
func (j *journal) noteEvent(e quota.Event) {
	j.lastEvent++
	e.Number, e.Stamp = j.lastEvent, j.now
	j.addEvent(&e)
}

func (j *journal) addEvent(e *quota.Event) {
	j.events = append(j.events, e)
	j.bytes += eventSize(e)
	for j.tooManyEvents() {
		j.bytes -= eventSize(j.events[0])
		j.events[0] = nil
		j.events = j.events[1:]
	}
}

// tooManyEvents is true if the events pass a bound of theirs. The newest always stays.
func (j *journal) tooManyEvents() bool {
	return len(j.events) > j.bounds.Events || j.boundsBytes() && j.bytes > j.bounds.EventBytes && len(j.events) > 1
}

// noteDenial remembers why a request was denied.
func (j *journal) noteDenial(request quota.Allocate, d quota.Decision) {
	if len(d.Violations) > maxEventViolations {
		d.Violations = slices.Clone(d.Violations[:maxEventViolations])
	}
	request.Data = nil // not for everybody's eyes
	j.noteEvent(quota.Event{Kind: quota.EventDenied, ID: request.ID, Request: &request, Decision: &d})
}

// noteFact notes a change of state for those who watch.
func (j *journal) noteFact(kind FactKind, a *Allocation) {
	j.facts = append(j.facts, Fact{Kind: kind, Allocation: a})
}

// TakeFacts answers what the last command has done to allocations, in order, and forgets it.
func (l *Ledger) TakeFacts() []Fact {
	facts := l.journal.facts
	l.journal.facts = nil
	return facts
}

// Fact is a change of state of one allocation, for those who watch. It is no part of the state.
type Fact struct {
	Kind FactKind
	// Allocation is the record after it.
	Allocation *Allocation
	// Since is when a request that was granted from the queue had come into it; 0 for all others.
	Since quota.Instant
}

// FactKind says what has happened.
type FactKind uint8

// The closed list.
const (
	FactWaiting   FactKind = 1
	FactGranted   FactKind = 2
	FactConfirmed FactKind = 3
	FactRevoked   FactKind = 4
	FactEnded     FactKind = 5
	FactRestored  FactKind = 6
	// FactShrunk: some of its items were given back.
	FactShrunk FactKind = 7
)
