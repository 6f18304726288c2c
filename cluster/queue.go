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
	// patience is how long a proposal waits for company that does not need to be carried out at once. A twentieth of a second
	// is little for a lease, and bounds what renewals cost to 20 entries a second.
	patience = 50 * time.Millisecond
)

// proposal is one caller's commands on their way into one log entry.
type proposal struct {
	commands int
	part     fsm.Part
	// large is true if its call is.
	large bool
	// passesNone is true for what must not pass a large call that came before it.
	passesNone bool
	// arrival counts what came.
	arrival uint64
	// queued is when it came.
	queued time.Time
	// late answers why its caller does not wait any more; nil while it does.
	late func() error
	// done receives exactly one result, unless the proposal was withdrawn.
	done chan result
}

type result struct {
	outcomes []ledger.Outcome
	// way is that of the entry, if there is no error.
	way EntryReport
	err error
}

// queue holds proposals until there is room in the log: those of small calls and those of large ones, each in the order of
// their arrival. While all of them are patient it gives none away, until there are enough for an entry or the first has
// waited long enough; with one that is not, they go.
type queue struct {
	mu           sync.Mutex
	small, large waitingList
	closed       bool
	arrivals     uint64 // last given
	// largeUnderway is true while an entry with a part of a large call is on its way; largeNext is true if the next entry begins
	// with one, because one waited while the last entry was made.
	largeUnderway, largeNext bool
	// hurried is true once what waits may go; until then ripe will say so.
	hurried bool
	ripe    *time.Timer
	// filled has a value whenever there may be something to take.
	filled chan struct{}
}

func newQueue() *queue { return &queue{filled: make(chan struct{}, 1)} }

// waitingList is what waits of one kind, the oldest first.
type waitingList struct {
	proposals       []*proposal
	commands, bytes int
}

func (w *waitingList) add(p *proposal) {
	w.proposals = append(w.proposals, p)
	w.count(p, 1)
}

func (w *waitingList) count(p *proposal, sign int) {
	w.commands += sign * p.commands
	w.bytes += sign * len(p.part.Data)
}

// remove takes out what matches.
func (w *waitingList) remove(matches func(*proposal) bool) (found bool) {
	w.proposals = slices.DeleteFunc(w.proposals, func(p *proposal) bool {
		if !matches(p) {
			return false
		}
		w.count(p, -1)
		found = true
		return true
	})
	return found
}

// holds is true if there is room for more, of a number of shares of the whole.
func (w *waitingList) holds(commands, bytes, shares int) bool {
	return w.commands == 0 || w.commands+commands <= maxQueuedCommands/shares && w.bytes+bytes <= maxQueuedBytes/shares
}

// put appends proposals together, or none of them: an error says why.
func (q *queue) put(proposals []*proposal, patient bool) *Error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return failure(NotLeader, true, nil, "this node has just lost the leadership; ask the new leader")
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
	if !list.holds(commands, bytes, shares) {
		return failure(Overloaded, true, nil, "%d commands with %d bytes wait already; try again later, with fewer at once", list.commands, list.bytes)
	}
	now := time.Now()
	for _, p := range proposals {
		q.arrivals++
		p.queued, p.large, p.arrival = now, bytes > largeCall, q.arrivals
		list.add(p)
	}
	switch {
	case q.hurried || !patient || list.commands >= fsm.MaxEntryCommands:
		q.hurry()
	case q.ripe == nil:
		q.ripe = time.AfterFunc(patience, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.hurry()
		})
	}
	return nil
}

// hurry must be called with mu held.
func (q *queue) hurry() {
	q.hurried = true
	q.signal()
}

// rest must be called with mu held, when nothing waits.
func (q *queue) rest() {
	q.small, q.large, q.hurried = waitingList{}, waitingList{}, false
	if q.ripe != nil {
		q.ripe.Stop()
		q.ripe = nil
	}
}

// take removes what goes into the next entry; nil if none may go. Small calls go first, oldest first, for as many as fit. If a
// large one waits meanwhile, the next entry begins with one part of it, unless another is on its way still. What callers do not
// wait for any more is refused on the way, so that nothing is carried out that was given up before.
func (q *queue) take() []*proposal {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.hurried {
		return nil
	}
	q.small.remove(refuseLate)
	q.large.remove(refuseLate)
	var e entryFill
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
		q.rest()
	case len(e.batch) > 0 && (len(q.small.proposals) > 0 || !q.largeUnderway):
		q.signal()
	}
	return e.batch
}

// entryFill is what goes into one entry.
type entryFill struct {
	batch           []*proposal
	commands, bytes int
}

// fillFrom moves up to so many proposals from a list, as long as they fit.
func (e *entryFill) fillFrom(w *waitingList, most int) {
	count := 0
	for _, p := range w.proposals[:most] {
		full := e.commands+p.commands > fsm.MaxEntryCommands || e.bytes+len(p.part.Data)+entryOverhead > fsm.MaxEntryBytes
		if full && len(e.batch) > 0 {
			break
		}
		e.commands += p.commands
		e.bytes += len(p.part.Data)
		e.batch = append(e.batch, p)
		w.count(p, -1)
		count++
	}
	w.proposals = w.proposals[count:]
}

// fillFromLarge takes a part of a large call, unless another is on its way.
func (e *entryFill) fillFromLarge(q *queue) {
	if len(q.large.proposals) > 0 && !q.largeUnderway {
		e.fillFrom(&q.large, 1)
		q.largeUnderway, q.largeNext = true, false
	}
}

// fillFromSmall takes small calls, but leaves what must not pass a large one that waits still.
func (e *entryFill) fillFromSmall(q *queue) {
	var held []*proposal
	if len(q.large.proposals) > 0 {
		oldest := q.large.proposals[0].arrival
		held = slices.DeleteFunc(slices.Clone(q.small.proposals), func(p *proposal) bool { return !p.passesNone || p.arrival < oldest })
	}
	q.small.remove(func(p *proposal) bool { return slices.Contains(held, p) })
	e.fillFrom(&q.small, len(q.small.proposals))
	for _, p := range held {
		q.small.add(p)
	}
}

// entryEnded says that an entry is not on its way any more.
func (q *queue) entryEnded(batch []*proposal) {
	if !batch[0].large { // the part of a large call is the first
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.largeUnderway = false
	if len(q.small.proposals)+len(q.large.proposals) > 0 {
		q.signal()
	}
}

// refuseLate answers a proposal whose caller does not wait any more.
func refuseLate(p *proposal) bool {
	cause := p.late()
	if cause == nil {
		return false
	}
	p.done <- result{err: tooLate(cause)}
	return true
}

func tooLate(cause error) *Error {
	return failure(Deadline, true, cause, "the commands were not written in time, so they never take effect")
}

// withdraw removes a proposal; false if it was taken already.
func (q *queue) withdraw(p *proposal) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	is := func(other *proposal) bool { return other == p }
	return q.small.remove(is) || q.large.remove(is)
}

// close refuses everything that waits and everything that comes.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, p := range slices.Concat(q.small.proposals, q.large.proposals) {
		p.done <- result{err: failure(NotLeader, true, nil,
			"this node lost the leadership before the entry was written; ask the new leader")}
	}
	q.rest()
}

// signal must be called with mu held.
func (q *queue) signal() {
	select {
	case q.filled <- struct{}{}:
	default:
	}
}
