package cluster

import (
	"slices"
	"sync"
	"time"

	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/quota"
)

const (
	// maxQueuedCommands and maxQueuedBytes bound what waits for a log entry: about a second of work. Beyond it a
	// caller hears at once that the node is overloaded, instead of waiting for its deadline.
	maxQueuedCommands = 16 * fsm.MaxEntryCommands
	maxQueuedBytes    = 16 * fsm.MaxEntryBytes
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
	// queued is when it came.
	queued time.Time
	// late answers why its caller does not wait any more; nil while it does.
	late func() error
	// done receives exactly one result, unless the proposal was withdrawn.
	done chan result
}

type result struct {
	outcomes []quota.Outcome
	// way is that of the entry, if there is no error.
	way EntryReport
	err error
}

// queue holds proposals in the order of their arrival until there is room in the log. While all of them are patient it
// gives none away, until there are enough for an entry or the first has waited long enough; with one that is not, they go.
type queue struct {
	mu       sync.Mutex
	waiting  []*proposal
	commands int
	bytes    int
	closed   bool
	// hurried is true once what waits may go; until then ripe will say so.
	hurried bool
	ripe    *time.Timer
	// filled has a value whenever there may be something to take.
	filled chan struct{}
}

func newQueue() *queue { return &queue{filled: make(chan struct{}, 1)} }

// put appends proposals together, or none of them: an error says why.
func (q *queue) put(proposals []*proposal, patient bool) *Error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return failure(NotLeader, true, nil, "this node has just lost the leadership; ask the new leader")
	}
	commands, bytes := q.commands, q.bytes
	for _, p := range proposals {
		commands += p.commands
		bytes += len(p.part.Data)
	}
	if q.commands > 0 && (commands > maxQueuedCommands || bytes > maxQueuedBytes) {
		return failure(Overloaded, true, nil, "%d commands wait already; try again later, with fewer at once", q.commands)
	}
	now := time.Now()
	for _, p := range proposals {
		p.queued = now
	}
	q.waiting = append(q.waiting, proposals...)
	q.commands, q.bytes = commands, bytes
	switch {
	case q.hurried || !patient || commands >= fsm.MaxEntryCommands:
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
	q.waiting, q.hurried = nil, false
	if q.ripe != nil {
		q.ripe.Stop()
		q.ripe = nil
	}
}

// take removes the longest run of proposals, oldest first, that fits into one entry; nil if none may go. Those whose
// callers do not wait any more are refused on the way, so that nothing is carried out that was given up before.
func (q *queue) take() []*proposal {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.hurried {
		return nil
	}
	q.dropLate()
	count, commands, bytes := 0, 0, entryOverhead
	for _, p := range q.waiting {
		if count > 0 && (commands+p.commands > fsm.MaxEntryCommands || bytes+len(p.part.Data) > fsm.MaxEntryBytes) {
			break
		}
		commands += p.commands
		bytes += len(p.part.Data)
		count++
	}
	batch := q.waiting[:count:count]
	q.waiting = q.waiting[count:]
	q.commands -= commands
	q.bytes -= bytes - entryOverhead
	if len(q.waiting) > 0 {
		q.signal()
	} else {
		q.rest()
	}
	return batch
}

// dropLate must be called with mu held.
func (q *queue) dropLate() {
	q.waiting = slices.DeleteFunc(q.waiting, func(p *proposal) bool {
		cause := p.late()
		if cause == nil {
			return false
		}
		q.commands -= p.commands
		q.bytes -= len(p.part.Data)
		p.done <- result{err: tooLate(cause)}
		return true
	})
}

func tooLate(cause error) *Error {
	return failure(Deadline, true, cause, "the commands were not written in time, so they never take effect")
}

// withdraw removes a proposal; false if it was taken already.
func (q *queue) withdraw(p *proposal) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, other := range q.waiting {
		if other == p {
			q.waiting = append(q.waiting[:i:i], q.waiting[i+1:]...)
			q.commands -= p.commands
			q.bytes -= len(p.part.Data)
			return true
		}
	}
	return false
}

// close refuses everything that waits and everything that comes.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, p := range q.waiting {
		p.done <- result{err: failure(NotLeader, true, nil,
			"this node lost the leadership before the entry was written; ask the new leader")}
	}
	q.commands, q.bytes = 0, 0
	q.rest()
}

// signal must be called with mu held.
func (q *queue) signal() {
	select {
	case q.filled <- struct{}{}:
	default:
	}
}
