package ledger

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/quota"
)

// maxEventViolations bounds the violations that an event of a denial keeps.
const maxEventViolations = 100

// Events shows up to max remembered events after a number (0: from the oldest): those of a kind, unless it is 0, and of
// an id, unless it is empty. Requests and decisions in them must not be changed.
func (v View) Events(after uint64, kind quota.EventKind, id string, max int) quota.EventPage {
	var page quota.EventPage
	for _, e := range v.ledger.eventsAfter(after) {
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

func (l *Ledger) eventsAfter(number uint64) []*quota.Event {
	from, found := slices.BinarySearchFunc(l.events, number, func(e *quota.Event, number uint64) int { return cmp.Compare(e.Number, number) })
	if found {
		from++
	}
	return l.events[from:]
}

// note remembers an event and forgets the oldest beyond the bound.
func (l *Ledger) note(e quota.Event) {
	l.lastEvent++
	e.Number, e.Stamp = l.lastEvent, l.now
	l.addEvent(&e)
}

func (l *Ledger) addEvent(e *quota.Event) {
	l.events = append(l.events, e)
	l.eventBytes += eventSize(e)
	for l.tooManyEvents() {
		l.eventBytes -= eventSize(l.events[0])
		l.events[0] = nil
		l.events = l.events[1:]
	}
}

// tooManyEvents is true if the events pass a bound of theirs. The newest always stays.
func (l *Ledger) tooManyEvents() bool {
	return len(l.events) > l.bounds.Events || l.boundsBytes() && l.eventBytes > l.bounds.EventBytes && len(l.events) > 1
}

// noteDenial remembers why a request was denied.
func (l *Ledger) noteDenial(request quota.Allocate, d quota.Decision) {
	if len(d.Violations) > maxEventViolations {
		d.Violations = slices.Clone(d.Violations[:maxEventViolations])
	}
	request.Data = nil // not for everybody's eyes
	l.note(quota.Event{Kind: quota.EventDenied, ID: request.ID, Request: &request, Decision: &d})
}
