package quota

// EventKind is the kind of an event. The numbers are part of the snapshot format.
type EventKind uint8

// The closed list of kinds.
const (
	// EventDenied: a request was denied.
	EventDenied EventKind = 1
	// EventPreempted: an allocation was ended in favour of another.
	EventPreempted EventKind = 2
	// EventExpired: a reservation was not confirmed in time, or a lease was not renewed.
	EventExpired EventKind = 3
	// EventRestored: a preempted allocation is held again, because the reservation that preempted it was not confirmed.
	EventRestored EventKind = 4
	// EventRevoked: the revocation of a lease was announced.
	EventRevoked EventKind = 5
	// EventDropped: a request left the queue, because its deadline passed or its caller stopped sending heartbeats.
	EventDropped EventKind = 6
	// EventCrossed: the use of a limit has reached a threshold.
	EventCrossed EventKind = 7
	// EventCleared: the use has fallen below a threshold by its margin, or the threshold is gone.
	EventCleared EventKind = 8
	// EventDrained: nothing is held any more at a node that is being drained, and below.
	EventDrained EventKind = 12
	// EventWebhookDead: a webhook could not deliver an event for as long as it may try; the id is its name.
	EventWebhookDead EventKind = 20
	// EventLimitStarted: a scheduled limit came into force.
	EventLimitStarted EventKind = 24
	// EventLimitEnding: a window of a scheduled limit ends soon.
	EventLimitEnding EventKind = 25
	// EventLimitEnded: a window of a scheduled limit has ended, or the limit with all its windows.
	EventLimitEnded EventKind = 26
	// EventLimitScheduled: a scheduled limit was made.
	EventLimitScheduled EventKind = 27
	// EventLimitSkipped: windows to come of a recurring limit are skipped, because a policy does not allow them.
	EventLimitSkipped EventKind = 37
	// EventDeclaredEnd: an allocation ended because its declared time was over.
	EventDeclaredEnd EventKind = 110
)

// Event is a change of one allocation or of one node, the crossing of a threshold, or a change of limits by the
// calendar. It is immutable.
type Event struct {
	// Number increases by one from event to event.
	Number uint64
	Kind   EventKind
	// Tree and Node are set for an EventDrained, which has no ID.
	Tree, Node string
	// ID is the id of the allocation, request or scheduled limit. By is the id of the allocation that caused the event,
	// see
	// IsByAllocation, or the actor.
	ID, By string
	Stamp  Stamp
	// Reason is why an allocation was preempted, or a lease revoked; nil for other kinds.
	Reason *Reason
	// Owner is the user whose request was denied; empty for other kinds, and if it is not known.
	Owner string
	// Request and Decision are set for a denial.
	Request  *Allocate
	Decision *Decision
	// Scheduled is set for what happened to a scheduled limit.
	Scheduled *ScheduledLimitEvent
	// Crossing is set for events about a threshold, which have no id.
	Crossing *Crossing
}

// NodePlace is the node of an event about a node; empty for other events.
func (e *Event) NodePlace() (tree, node string) {
	if e.Scheduled != nil {
		return e.Scheduled.Limit.Tree, e.Scheduled.Limit.Node
	}
	return e.Tree, e.Node
}

// IsOfAllocation is true if the id of the event is that of an allocation or request.
func (e *Event) IsOfAllocation() bool {
	switch e.Kind {
	case EventDenied, EventPreempted, EventExpired, EventRestored, EventRevoked, EventDropped, EventDeclaredEnd:
		return true
	case EventCrossed, EventCleared, EventDrained, EventWebhookDead, EventLimitStarted, EventLimitEnding,
		EventLimitEnded, EventLimitScheduled, EventLimitSkipped:
	}
	return false
}

// IsByAllocation is true if By is the id of an allocation, or stands for one.
func (e *Event) IsByAllocation() bool {
	return e.Kind == EventPreempted || e.Kind == EventRestored || e.Kind == EventRevoked
}

// EventFilter selects remembered events; all given conditions must be met.
type EventFilter struct {
	// After selects events with a higher number, and Before those with a lower one unless it is 0.
	After, Before uint64
	// NewestFirst asks for the events in the opposite order.
	NewestFirst bool
	// Kind and ID are those of the events; 0 and empty for any.
	Kind EventKind
	ID   string
	// Namespace is that of the ID, if it is of an allocation. Without an ID it selects the events of allocations in it.
	Namespace string
	// Tree, if not empty, selects events about that tree, and Node those about that node or below it.
	Tree, Node string
}

// EventPage is one page of events in the order of their numbers, or newest first.
type EventPage struct {
	Events []Event
	// Next is the number to continue after, or before; 0 on the last page.
	Next uint64
}
