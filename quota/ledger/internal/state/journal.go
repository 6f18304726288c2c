package state

import (
	"cmp"
	"iter"
	"slices"

	"github.com/quorate/quorate/quota"
)

// MaxEventViolations bounds the violations that the event of a denial keeps.
const MaxEventViolations = 100

// Journal keeps the newest events, and the facts of the present command.
type Journal struct {
	*Environment
	Facts     []Fact         // of the last command
	Changes   []quota.Change // of configuration and access, by the last command
	Events    []*quota.Event // oldest first
	LastEvent uint64         // number of the newest event
	bytes     int64          // size of the events, see quota.Sizes
	// Denials are those among the events that have an owner, by owner. They are derived from the events.
	Denials map[string]*userDenials
}

// EventsBetween are those that the numbers of a filter select, in its order.
func (j *Journal) EventsBetween(f quota.EventFilter) iter.Seq2[int, *quota.Event] {
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

func (j *Journal) eventsAfter(number uint64) []*quota.Event {
	from, found := slices.BinarySearchFunc(j.Events, number, compareNumber)
	if found {
		from++
	}
	return j.Events[from:]
}

func compareNumber(e *quota.Event, number uint64) int { return cmp.Compare(e.Number, number) }

// NoteEvent appends an event and drops the oldest ones beyond the bounds.
func (j *Journal) NoteEvent(e quota.Event) {
	j.LastEvent++
	e.Number, e.Stamp = j.LastEvent, j.Now
	j.AddEvent(&e)
}

// NoteNodeEvent is NoteEvent for what happens to a node, which watchers see too.
func (j *Journal) NoteNodeEvent(e quota.Event) {
	j.NoteEvent(e)
	j.Facts = append(j.Facts, Fact{Kind: FactNode, Event: j.Events[len(j.Events)-1]})
}

func (j *Journal) AddEvent(e *quota.Event) {
	j.Events = append(j.Events, e)
	j.bytes += EventSize(e)
	j.CountDenial(e)
	for j.tooManyEvents() {
		j.discountDenial(j.Events[0])
		j.bytes -= EventSize(j.Events[0])
		j.Events[0] = nil
		j.Events = j.Events[1:]
	}
}

// tooManyEvents is true if the events exceed a bound. The newest is always kept.
func (j *Journal) tooManyEvents() bool {
	return len(j.Events) > j.Bounds.Events || j.BoundsBytes() && j.bytes > j.Bounds.EventBytes && len(j.Events) > 1
}

// NoteDenial records the reasons of a denial. If the owner has a share only, its oldest denials beyond that are
// dropped.
func (j *Journal) NoteDenial(request *quota.Allocate, d quota.Decision, owner string, hasShare bool) {
	if len(d.Violations) > MaxEventViolations {
		d.Violations = slices.Clone(d.Violations[:MaxEventViolations])
	}
	kept := *request
	kept.Data = nil // user data may be secret
	j.NoteEvent(quota.Event{
		Kind: quota.EventDenied, ID: request.ID, Owner: owner, Request: &kept, Decision: &d,
	})
	if hasShare {
		j.limitDenials(owner)
	}
}

// NoteFact records a change of state for watchers.
func (j *Journal) NoteFact(kind FactKind, a *Allocation) {
	j.Facts = append(j.Facts, Fact{Kind: kind, Allocation: a})
}

// TakeFacts returns the changes of allocations by the last command, in order, and clears them.
func (s *State) TakeFacts() []Fact {
	facts := s.Journal.Facts
	s.Journal.Facts = nil
	return facts
}

// TakeChanges returns the changes of configuration or access that the last command made, in order, and clears them. All
// are there, whatever the caller of the command may see. They must not be changed.
func (s *State) TakeChanges() []quota.Change {
	changes := s.Journal.Changes
	s.Journal.Changes = nil
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
		return RevisionSize(f.Revision)
	case f.Crossing != nil:
		return EventSize(&quota.Event{Crossing: f.Crossing})
	case f.Event != nil:
		return EventSize(f.Event)
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
