package cluster

import (
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/quota/ledger"
)

const (
	// maxQueuedCommands and maxQueuedBytes bound the waiting proposals to about a second of work. Beyond that a caller
	// gets Overloaded at once instead of waiting for its deadline.
	maxQueuedCommands = 16 * fsm.MaxEntryCommands
	maxQueuedBytes    = 16 * fsm.MaxEntryBytes
	// largeCall is the size above which a call is large. Large calls wait in a list of their own with half of the
	// capacity, and one part of them is in flight at a time, so that a small call waits for at most one of these parts.
	largeCall = 128 << 10
	// largestPart is the size in bytes above which a call is split, unless it is a single command.
	largestPart = 1 << 20
	// entryOverhead is reserved for the stamp and the format of an entry.
	entryOverhead = 64
	// batchWindow is how long a batched proposal waits for others. 50 ms is little for a lease, and limits renewals to 20
	// entries a second.
	batchWindow = 50 * time.Millisecond
	// While an entry is in flight, the next one waits until that has ended, there are overlapCommands commands or
	// overlapBytes bytes for it, or the first proposal has waited for overlapWait. An entry costs the three nodes about a
	// millisecond of CPU time, however small it is, so a few large ones are cheaper than many small ones; overlapWait
	// bounds what a slow network or disk makes of that.
	overlapCommands = 128
	overlapBytes    = 64 << 10
	overlapWait     = 2 * time.Millisecond
)

// queuedPerUser is the share of the capacity that the commands of one user may have, as one part in so many.
const queuedPerUser = 4

// proposal is one caller's commands for one log entry.
type proposal struct {
	commands int
	part     fsm.Part
	// user is whose share the commands take from; empty for those of the cluster and of callers that are not known.
	user string
	// large is true if the proposal is part of a large call.
	large bool
	// keepsOrder is true if the proposal must not overtake a large call that arrived before it.
	keepsOrder bool
	// arrival is the sequence number of the proposal.
	arrival uint64
	// queued is when the proposal arrived.
	queued time.Time
	// callerErr returns why the caller no longer waits; nil while it does.
	callerErr func() error
	// done receives exactly one result, unless the proposal was withdrawn.
	done chan proposalResult
}

type proposalResult struct {
	outcomes []ledger.Outcome
	// report describes the entry, if there is no error.
	report EntryReport
	err    error
}

// proposalQueue keeps proposals until the next entry is built: one list for small calls and one for large calls, each
// in the order of arrival. While only batched proposals wait, takeBatch returns nothing until there are enough for an
// entry or the first one has waited for batchWindow. Any other proposal releases all of them.
type proposalQueue struct {
	mu           sync.Mutex
	small, large proposalList
	closed       bool
	arrivals     uint64 // the last sequence number
	// largeInFlight is true while an entry with a part of a large call is in flight. largeNext is true if the next entry
	// starts with such a part, because one was waiting when the last entry was built.
	largeInFlight, largeNext bool
	// urgent is true once the waiting proposals may go; windowTimer sets it at the end of batchWindow.
	urgent      bool
	windowTimer *time.Timer
	// overlapTimer signals at the end of overlapWait; nil if it does not run.
	overlapTimer *time.Timer
	// ready receives a value whenever there may be something to take.
	ready chan struct{}
}

func newProposalQueue() *proposalQueue { return &proposalQueue{ready: make(chan struct{}, 1)} }

type proposalList struct {
	proposals []*proposal
	queued
	// byUser are the parts of it that are of one user; users without a proposal have none.
	byUser map[string]queued
}

type queued struct{ commands, bytes int }

func (s *queued) adjust(p *proposal, sign int) {
	s.commands += sign * p.commands
	s.bytes += sign * p.part.Size()
}

// hasRoomFor gives a 1/shares part of the capacity of the queue. What is alone always fits.
func (s queued) hasRoomFor(commands, bytes, shares int) bool {
	return s.commands == 0 || s.commands+commands <= maxQueuedCommands/shares && s.bytes+bytes <= maxQueuedBytes/shares
}

func (l *proposalList) addProposal(p *proposal) {
	l.proposals = append(l.proposals, p)
	l.adjustCounts(p, 1)
}

func (l *proposalList) adjustCounts(p *proposal, sign int) {
	l.adjust(p, sign)
	if p.user == "" {
		return
	}
	ofUser := l.byUser[p.user]
	ofUser.adjust(p, sign)
	if ofUser.commands == 0 {
		delete(l.byUser, p.user)
		return
	}
	if l.byUser == nil {
		l.byUser = map[string]queued{}
	}
	l.byUser[p.user] = ofUser
}

func (l *proposalList) removeMatching(matches func(*proposal) bool) (found bool) {
	l.proposals = slices.DeleteFunc(l.proposals, func(p *proposal) bool {
		if !matches(p) {
			return false
		}
		l.adjustCounts(p, -1)
		found = true
		return true
	})
	return found
}

// checkRoom gives the list a 1/shares part of the capacity.
func (l *proposalList) checkRoom(user string, commands, bytes, shares int) *Error {
	if !l.hasRoomFor(commands, bytes, shares) {
		return newError(Overloaded, true, nil, "%d commands with %d bytes wait already; try again later, with fewer at once",
			l.commands, l.bytes)
	}
	ofUser := l.byUser[user]
	if user != "" && !ofUser.hasRoomFor(commands, bytes, shares*queuedPerUser) {
		return newError(Overloaded, true, nil,
			"%d commands with %d bytes of user %s wait already, and the share of one user is %d with %d; try again later, "+
				"with fewer at once",
			ofUser.commands, ofUser.bytes, user, maxQueuedCommands/shares/queuedPerUser, maxQueuedBytes/shares/queuedPerUser)
	}
	return nil
}

// enqueue appends either all proposals or, with an error, none.
func (q *proposalQueue) enqueue(proposals []*proposal, batched bool) *Error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return newError(NotLeader, true, nil, "this node has just lost the leadership; ask the new leader")
	}
	commands, bytes := 0, 0
	for _, p := range proposals {
		commands += p.commands
		bytes += p.part.Size()
	}
	list, shares := &q.small, 1
	if bytes > largeCall {
		list, shares = &q.large, 2
	}
	if err := list.checkRoom(proposals[0].user, commands, bytes, shares); err != nil {
		return err
	}
	now := time.Now()
	for _, p := range proposals {
		q.arrivals++
		p.queued, p.large, p.arrival = now, bytes > largeCall, q.arrivals
		list.addProposal(p)
	}
	switch {
	case q.urgent || !batched || list.commands >= fsm.MaxEntryCommands:
		q.markUrgent()
	case q.windowTimer == nil:
		q.windowTimer = time.AfterFunc(batchWindow, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.markUrgent()
		})
	}
	return nil
}

// markUrgent must be called with mu held.
func (q *proposalQueue) markUrgent() {
	q.urgent = true
	q.signalReady()
}

// resetLists must be called with mu held, when no proposal waits.
func (q *proposalQueue) resetLists() {
	q.small, q.large, q.urgent = proposalList{}, proposalList{}, false
	if q.windowTimer != nil {
		q.windowTimer.Stop()
		q.windowTimer = nil
	}
}

// takeOverlapping is takeBatch while another entry is in flight: it returns nil as long as the next entry should wait.
func (q *proposalQueue) takeOverlapping() []*proposal {
	if !q.isWorthOverlapping() {
		return nil
	}
	return q.takeBatch()
}

// isWorthOverlapping reports whether the next entry should not wait for one in flight. If it should, ready receives a
// value when it has waited long enough.
func (q *proposalQueue) isWorthOverlapping() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.small.commands+q.large.commands >= overlapCommands || q.small.bytes+q.large.bytes >= overlapBytes {
		return true
	}
	var oldest time.Time
	for _, list := range []*proposalList{&q.small, &q.large} {
		if len(list.proposals) > 0 && (oldest.IsZero() || list.proposals[0].queued.Before(oldest)) {
			oldest = list.proposals[0].queued
		}
	}
	left := overlapWait - time.Since(oldest)
	if oldest.IsZero() || left <= 0 {
		return true
	}
	if q.overlapTimer == nil {
		q.overlapTimer = time.AfterFunc(left, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.overlapTimer = nil
			q.signalReady()
		})
	}
	return false
}

// takeBatch removes and returns the proposals of the next entry; nil if there are none. Small calls go first, oldest
// first, as many as fit. If a large call waits meanwhile, the next entry starts with one part of it, unless another
// part is still in flight. Proposals whose callers no longer wait are refused, so that an abandoned command is not
// carried out.
func (q *proposalQueue) takeBatch() []*proposal {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.urgent {
		return nil
	}
	q.small.removeMatching(refuseAbandoned)
	q.large.removeMatching(refuseAbandoned)
	var e batchBuilder
	if q.largeNext {
		e.fillFromLarge(q)
	}
	e.fillFromSmall(q)
	if len(e.batch) == 0 {
		e.fillFromLarge(q)
	}
	q.largeNext = q.largeNext || len(q.large.proposals) > 0
	switch {
	case len(q.small.proposals)+len(q.large.proposals) == 0:
		q.resetLists()
	case len(e.batch) > 0 && (len(q.small.proposals) > 0 || !q.largeInFlight):
		q.signalReady()
	}
	return e.batch
}

type batchBuilder struct {
	batch           []*proposal
	commands, bytes int
}

func (e *batchBuilder) fillFrom(list *proposalList, limit int) {
	count := 0
	for _, p := range list.proposals[:limit] {
		full := e.commands+p.commands > fsm.MaxEntryCommands ||
			e.bytes+p.part.Size()+entryOverhead > fsm.MaxEntryBytes
		if full && len(e.batch) > 0 {
			break
		}
		e.commands += p.commands
		e.bytes += p.part.Size()
		e.batch = append(e.batch, p)
		list.adjustCounts(p, -1)
		count++
	}
	list.proposals = list.proposals[count:]
}

// fillFromLarge takes nothing if another part is in flight.
func (e *batchBuilder) fillFromLarge(q *proposalQueue) {
	if len(q.large.proposals) > 0 && !q.largeInFlight {
		e.fillFrom(&q.large, 1)
		q.largeInFlight, q.largeNext = true, false
	}
}

// fillFromSmall takes small calls, except those that must not overtake a waiting large call.
func (e *batchBuilder) fillFromSmall(q *proposalQueue) {
	var held []*proposal
	if len(q.large.proposals) > 0 {
		oldest := q.large.proposals[0].arrival
		held = slices.DeleteFunc(slices.Clone(q.small.proposals), func(p *proposal) bool {
			return !p.keepsOrder || p.arrival < oldest
		})
	}
	q.small.removeMatching(func(p *proposal) bool { return slices.Contains(held, p) })
	e.fillFrom(&q.small, len(q.small.proposals))
	for _, p := range held {
		q.small.addProposal(p)
	}
}

func (q *proposalQueue) entryEnded(batch []*proposal) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if batch[0].large { // a part of a large call is always first
		q.largeInFlight = false
	}
	if len(q.small.proposals)+len(q.large.proposals) > 0 {
		q.signalReady()
	}
}

func refuseAbandoned(p *proposal) bool {
	cause := p.callerErr()
	if cause == nil {
		return false
	}
	p.done <- proposalResult{err: notWrittenError(cause)}
	return true
}

func notWrittenError(cause error) *Error {
	return newError(Deadline, true, cause, "the commands were not written in time, so they never take effect")
}

// withdraw is false if the proposal was taken already.
func (q *proposalQueue) withdraw(p *proposal) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	isSame := func(other *proposal) bool { return other == p }
	return q.small.removeMatching(isSame) || q.large.removeMatching(isSame)
}

func (q *proposalQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, p := range slices.Concat(q.small.proposals, q.large.proposals) {
		p.done <- proposalResult{err: newError(NotLeader, true, nil,
			"this node lost the leadership before the entry was written; ask the new leader")}
	}
	q.resetLists()
}

// signalReady must be called with mu held.
func (q *proposalQueue) signalReady() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}
