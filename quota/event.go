package quota

// note remembers an event and forgets the oldest beyond the bound.
func (l *Ledger) note(e Event) {
	l.lastEvent++
	e.Number, e.Stamp = l.lastEvent, l.now
	l.addEvent(&e)
}

func (l *Ledger) addEvent(e *Event) {
	l.events = append(l.events, e)
	if len(l.events) > l.bounds.Events {
		l.events[0] = nil
		l.events = l.events[1:]
	}
}

// noteDenial remembers why a request was denied.
func (l *Ledger) noteDenial(request Allocate, d Decision) {
	l.note(Event{Kind: EventDenied, ID: request.ID, Request: &request, Decision: &d})
}
