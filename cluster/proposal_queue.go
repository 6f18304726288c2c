package cluster

import (
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/quota/ledger"
)

const (
	// maxQueuedCommands and maxQueuedBytes bound what waits for a log entry: about a second of work. Beyond it a
	// caller hears at once that the node is overloaded, instead of waiting for its deadline.
	maxQueuedCommands = 16 * fsm.MaxEntryCommands
	maxQueuedBytes    = 16 * fsm.MaxEntryBytes
	// largeCall is the size from which the commands of a call are large: they wait apart from the others, with half of the
	// room, and one part of them is on its way at a time, so that a small call waits for one of them at most.
	largeCall = 128 << 10
	// largestPart is the size in bytes at which a call is divided, unless a command alone is larger.
	largestPart = 1 << 20
	// entryOverhead is room for the stamp and the format of an entry.
	entryOverhead = 64
	// batchWindow is how long a proposal waits for company that does not need to be carried out at once. A twentieth of a second
	// is little for a lease, and bounds what renewals cost to 20 entries a second.
	batchWindow = 50 * time.Millisecond
)

// proposal is one caller's commands on their way into one log entry.
type proposal struct {
	commands int
	part     fsm.Part
	// large is true if its call is.
	large bool
	// keepsOrder is true for what must not pass a large call that came before it.
	keepsOrder bool
	// arrival counts what came.
	arrival uint64
	// queued is when it came.
	queued time.Time
	// callerErr answers why its caller does not wait any more; nil while it does.
	callerErr func() error
	// done receives exactly one result, unless the proposal was withdrawn.
	done chan proposalResult
}

type proposalResult struct {
	outcomes []ledger.Outcome
	// report is that of the entry, if there is no error.
	report EntryReport
	err    error
}

// proposalQueue holds proposals until there is room in the log: those of small calls and those of large ones, each in the order of
// their arrival. While all of them are patient it gives none away, until there are enough for an entry or the first has
// waited long enough; with one that is not, they go.
type proposalQueue struct {
	mu           sync.Mutex
	small, large proposalList
	closed       bool
	arrivals     uint64 // last given
	// largeInFlight is true while an entry with a part of a large call is on its way; largeNext is true if the next entry begins
	// with one, because one waited while the last entry was made.
	largeInFlight, largeNext bool
	// urgent is true once what waits may go; until then ripe will say so.
	urgent      bool
	windowTimer *time.Timer
	// ready has a value whenever there may be something to take.
	ready chan struct{}
}

func newProposalQueue() *proposalQueue { return &proposalQueue{ready: make(chan struct{}, 1)} }

// proposalList is what waits of one kind, the oldest first.
type proposalList struct {
	proposals       []*proposal
	commands, bytes int
}

func (w *proposalList) addProposal(p *proposal) {
	w.proposals = append(w.proposals, p)
	w.adjustCounts(p, 1)
}

func (w *proposalList) adjustCounts(p *proposal, sign int) {
	w.commands += sign * p.commands
	w.bytes += sign * len(p.part.Data)
}

// removeMatching takes out what matches.
func (w *proposalList) removeMatching(matches func(*proposal) bool) (found bool) {
	w.proposals = slices.DeleteFunc(w.proposals, func(p *proposal) bool {
		if !matches(p) {
			return false
		}
		w.adjustCounts(p, -1)
		found = true
		return true
	})
	return found
}

// hasRoomFor is true if there is room for more, of a number of shares of the whole.
func (w *proposalList) hasRoomFor(commands, bytes, shares int) bool {
	return w.commands == 0 || w.commands+commands <= maxQueuedCommands/shares && w.bytes+bytes <= maxQueuedBytes/shares
}

// enqueue appends proposals together, or none of them: an error says why.
func (q *proposalQueue) enqueue(proposals []*proposal, patient bool) *Error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return newError(NotLeader, true, nil, "this node has just lost the leadership; ask the new leader")
	}
	commands, bytes := 0, 0
	for _, p := range proposals {
		commands += p.commands
		bytes += len(p.part.Data)
	}
	list, shares := &q.small, 1
	if bytes > largeCall {
		list, shares = &q.large, 2
	}
	if !list.hasRoomFor(commands, bytes, shares) {
		return newError(Overloaded, true, nil, "%d commands with %d bytes wait already; try again later, with fewer at once", list.commands, list.bytes)
	}
	now := time.Now()
	for _, p := range proposals {
		q.arrivals++
		p.queued, p.large, p.arrival = now, bytes > largeCall, q.arrivals
		list.addProposal(p)
	}
	switch {
	case q.urgent || !patient || list.commands >= fsm.MaxEntryCommands:
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

// resetLists must be called with mu held, when nothing waits.
func (q *proposalQueue) resetLists() {
	q.small, q.large, q.urgent = proposalList{}, proposalList{}, false
	if q.windowTimer != nil {
		q.windowTimer.Stop()
		q.windowTimer = nil
	}
}

// takeBatch removes what goes into the next entry; nil if none may go. Small calls go first, oldest first, for as many as fit. If a
// large one waits meanwhile, the next entry begins with one part of it, unless another is on its way still. What callers do not
// wait for any more is refused on the way, so that nothing is carried out that was given up before.
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

// batchBuilder is what goes into one entry.
type batchBuilder struct {
	batch           []*proposal
	commands, bytes int
}

// fillFrom moves up to so many proposals from a list, as long as they fit.
func (e *batchBuilder) fillFrom(w *proposalList, most int) {
	count := 0
	for _, p := range w.proposals[:most] {
		full := e.commands+p.commands > fsm.MaxEntryCommands || e.bytes+len(p.part.Data)+entryOverhead > fsm.MaxEntryBytes
		if full && len(e.batch) > 0 {
			break
		}
		e.commands += p.commands
		e.bytes += len(p.part.Data)
		e.batch = append(e.batch, p)
		w.adjustCounts(p, -1)
		count++
	}
	w.proposals = w.proposals[count:]
}

// fillFromLarge takes a part of a large call, unless another is on its way.
func (e *batchBuilder) fillFromLarge(q *proposalQueue) {
	if len(q.large.proposals) > 0 && !q.largeInFlight {
		e.fillFrom(&q.large, 1)
		q.largeInFlight, q.largeNext = true, false
	}
}

// fillFromSmall takes small calls, but leaves what must not pass a large one that waits still.
func (e *batchBuilder) fillFromSmall(q *proposalQueue) {
	var held []*proposal
	if len(q.large.proposals) > 0 {
		oldest := q.large.proposals[0].arrival
		held = slices.DeleteFunc(slices.Clone(q.small.proposals), func(p *proposal) bool { return !p.keepsOrder || p.arrival < oldest })
	}
	q.small.removeMatching(func(p *proposal) bool { return slices.Contains(held, p) })
	e.fillFrom(&q.small, len(q.small.proposals))
	for _, p := range held {
		q.small.addProposal(p)
	}
}

// entryEnded says that an entry is not on its way any more.
func (q *proposalQueue) entryEnded(batch []*proposal) {
	if !batch[0].large { // the part of a large call is the first
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.largeInFlight = false
	if len(q.small.proposals)+len(q.large.proposals) > 0 {
		q.signalReady()
	}
}

// refuseAbandoned answers a proposal whose caller does not wait any more.
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

// withdraw removes a proposal; false if it was taken already.
func (q *proposalQueue) withdraw(p *proposal) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	is := func(other *proposal) bool { return other == p }
	return q.small.removeMatching(is) || q.large.removeMatching(is)
}

// close refuses everything that waits and everything that comes.
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
