package ledger

import (
	"cmp"
	"iter"
	"slices"

	"github.com/quorate/quorate/quota"
)

// maxEventViolations bounds the violations that the event of a denial keeps.
const maxEventViolations = 100

// journal keeps the newest events, and the facts of the present command.
type journal struct {
	*environment
	facts     []Fact         // of the last command
	changes   []quota.Change // of configuration and access, by the last command
	events    []*quota.Event // oldest first
	lastEvent uint64         // number of the newest event
	bytes     int64          // size of the events, see quota.Sizes
	// denials are those among the events that have an owner, by owner. They are derived from the events.
	denials map[string]*userDenials
}

// eventsBetween are those that the numbers of a filter select, in its order.
func (j *journal) eventsBetween(f quota.EventFilter) iter.Seq2[int, *quota.Event] {
	list := j.eventsAfter(f.After)
	if f.Before > 0 {
		end, _ := slices.BinarySearchFunc(list, f.Before, compareNumber)
		list = list[:end]
	}
	if f.NewestFirst {
		return slices.Backward(list)
	}
	return slices.All(list)
}

func (j *journal) eventsAfter(number uint64) []*quota.Event {
	from, found := slices.BinarySearchFunc(j.events, number, compareNumber)
	if found {
		from++
	}
	return j.events[from:]
}

func compareNumber(e *quota.Event, number uint64) int { return cmp.Compare(e.Number, number) }

// noteEvent appends an event and drops the oldest ones beyond the bounds.
func (j *journal) noteEvent(e quota.Event) {
	j.lastEvent++
	e.Number, e.Stamp = j.lastEvent, j.now
	j.addEvent(&e)
}

// noteNodeEvent is noteEvent for what happens to a node, which watchers see too.
func (j *journal) noteNodeEvent(e quota.Event) {
	j.noteEvent(e)
	j.facts = append(j.facts, Fact{Kind: FactNode, Event: j.events[len(j.events)-1]})
}

func (j *journal) addEvent(e *quota.Event) {
	j.events = append(j.events, e)
	j.bytes += eventSize(e)
	j.countDenial(e)
	for j.tooManyEvents() {
		j.discountDenial(j.events[0])
		j.bytes -= eventSize(j.events[0])
		j.events[0] = nil
		j.events = j.events[1:]
	}
}

// tooManyEvents is true if the events exceed a bound. The newest is always kept.
func (j *journal) tooManyEvents() bool {
	return len(j.events) > j.bounds.Events || j.boundsBytes() && j.bytes > j.bounds.EventBytes && len(j.events) > 1
}

// noteDenial records the reasons of a denial. If the owner has a share only, its oldest denials beyond that are
// dropped.
func (j *journal) noteDenial(request *quota.Allocate, d quota.Decision, owner string, hasShare bool) {
	if len(d.Violations) > maxEventViolations {
		d.Violations = slices.Clone(d.Violations[:maxEventViolations])
	}
	kept := *request
	kept.Data = nil // user data may be secret
	j.noteEvent(quota.Event{
		Kind: quota.EventDenied, ID: request.ID, Owner: owner, Request: &kept, Decision: &d,
	})
	if hasShare {
		j.limitDenials(owner)
	}
}

// noteFact records a change of state for watchers.
func (j *journal) noteFact(kind FactKind, a *Allocation) {
	j.facts = append(j.facts, Fact{Kind: kind, Allocation: a})
}

// TakeFacts returns the changes of allocations by the last command, in order, and clears them.
func (l *Ledger) TakeFacts() []Fact {
	facts := l.journal.facts
	l.journal.facts = nil
	return facts
}

// TakeChanges returns the changes of configuration or access that the last command made, in order, and clears them. All
// are there, whatever the caller of the command may see. They must not be changed.
func (l *Ledger) TakeChanges() []quota.Change {
	changes := l.journal.changes
	l.journal.changes = nil
	return changes
}

// Fact is a change of state of one allocation, threshold or node, or of the configuration, for watchers. It is not
// part of the state.
type Fact struct {
	Kind FactKind
	// Allocation is the record after the change; nil for facts about something else.
	Allocation *Allocation
	// Crossing is the threshold, for FactCrossed and FactCleared.
	Crossing *quota.Crossing
	// Revision is set for FactConfigured, without what takes it back. It must not be changed.
	Revision *quota.Revision
	// Event is set for FactNode. It must not be changed.
	Event *quota.Event
	// Since is when a request that was granted from the queue had entered it; 0 otherwise.
	Since quota.Instant
}

// Size is the estimated memory of what the fact is about.
func (f *Fact) Size() int64 {
	switch {
	case f.Allocation != nil:
		return f.Allocation.Size()
	case f.Revision != nil:
		return revisionSize(f.Revision)
	case f.Crossing != nil:
		return eventSize(&quota.Event{Crossing: f.Crossing})
	case f.Event != nil:
		return eventSize(f.Event)
	}
	return 0
}

// FactKind is the kind of a change.
type FactKind uint8

// The closed list of kinds.
const (
	FactWaiting   FactKind = 1
	FactGranted   FactKind = 2
	FactConfirmed FactKind = 3
	FactRevoked   FactKind = 4
	FactEnded     FactKind = 5
	FactRestored  FactKind = 6
	// FactShrunk: some of the allocation's items were returned.
	FactShrunk FactKind = 7
	// FactResized: the allocation's claims have changed.
	FactResized FactKind = 8
	// FactCrossed: the use of a limit has reached a threshold. FactCleared: it has fallen below, or there is none any
	// more.
	FactCrossed FactKind = 14
	FactCleared FactKind = 15
	// FactConfigured: a revision has changed the configuration.
	FactConfigured FactKind = 16
	// FactNode: something has happened to a node that does not change its configuration: a scheduled limit was made,
	// begins, ends soon, has ended or skips windows, or the node is drained.
	FactNode FactKind = 27
	// FactResizeWaits: a Resize of the allocation waits. FactResizeDropped: it has ended without being carried out.
	FactResizeWaits   FactKind = 50
	FactResizeDropped FactKind = 51
)
