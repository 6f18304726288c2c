package rpc

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quorate/quorate/cluster"
)

const (
	// expensiveShare is the part of a server's time that expensive reads may take in the long run: one in so many.
	expensiveShare = 4
	// expensiveBurst is how much time they may have saved, so that nobody waits who asks now and then.
	expensiveBurst = 250 * time.Millisecond
	// maxCharge is the most that one read is charged, so that the next one comes soon enough for its caller's patience.
	maxCharge = time.Second
)

// expensiveReads schedules the reads that cost as much as many writes: plans, dry runs, explanations, lists and whole trees. They
// keep the state from writers, or a processor, for milliseconds, and a caller that repeats them would leave writers nothing. So a
// server serves one at a time, and all of them together take no more than a share of its time. Callers take turns: one that asks
// for many waits for its own reads, and for one of each other caller.
//
// The time of a read is measured on the clock and not as processor time: on a machine that is busy a read takes longer, and the
// pause after it is longer too.
type expensiveReads struct {
	gate *gate
	// dropped counts reads whose callers went away, took sums up how long the others took.
	dropped, took prometheus.Counter

	mu sync.Mutex
	// queues have the reads that wait, by caller; callers are those that have one, in the order of their turns.
	queues  map[*caller][]*expensiveRead
	callers []*caller
	running bool
	// paused is true while a timer will call next.
	paused bool
	// credit is the time that may be taken, as of an instant; negative after a read that took more.
	credit   time.Duration
	creditAt time.Time
}

// heldTurn is the turn that a call has; the zero value is none. It may be used by several goroutines.
type heldTurn struct {
	mu sync.Mutex
	// ends are called at its end, the last one first.
	ends []func()
}

func (t *heldTurn) hold(end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ends = append(t.ends, end)
}

// end gives the turn back, if there is one.
func (t *heldTurn) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, end := range slices.Backward(t.ends) {
		end()
	}
	t.ends = nil
}

// expensiveRead is one that waits for its turn.
type expensiveRead struct {
	caller *caller
	// granted is closed when the read may begin.
	granted chan struct{}
	began   time.Time
}

func newExpensiveReads(g *gate, registerer prometheus.Registerer) (*expensiveReads, error) {
	e := &expensiveReads{
		gate: g, queues: map[*caller][]*expensiveRead{}, credit: expensiveBurst, creditAt: time.Now(),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quorate_rpc_expensive_reads_dropped_total", Help: "Expensive reads whose callers did not wait for their turn.",
		}),
		took: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quorate_rpc_expensive_reads_seconds_total", Help: "Time that expensive reads took, one at a time.",
		}),
	}
	for _, c := range []prometheus.Collector{e.dropped, e.took} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of expensive reads: %w", err)
		}
	}
	return e, nil
}

// take takes a place among the reads that are under way or wait, which give returns.
func (e *expensiveReads) take(by *caller) (give func(), err error) {
	if err := e.gate.take(by, 1); err != nil {
		return nil, err
	}
	return func() { e.gate.give(by, 1) }, nil
}

// enter waits for the turn of a caller, nil for all that are not told apart. If it is granted, leave must be called.
func (e *expensiveReads) enter(ctx context.Context, by *caller) (leave func(), err error) {
	read := &expensiveRead{caller: by, granted: make(chan struct{})}
	e.enqueue(read)
	select {
	case <-read.granted:
	case <-ctx.Done():
		if e.giveUp(read) {
			return nil, &cluster.Error{
				Reason: cluster.Overloaded, NotApplied: true, Cause: ctx.Err(),
				Text: "this server answers plans, dry runs, explanations, long lists and large trees one after the other, and the turn of " +
					"this one did not come in time; try again later or at another server",
			}
		}
	}
	return func() { e.leave(read) }, nil
}

func (e *expensiveReads) enqueue(read *expensiveRead) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queues[read.caller]) == 0 {
		e.callers = append(e.callers, read.caller)
	}
	e.queues[read.caller] = append(e.queues[read.caller], read)
	e.next()
}

// giveUp is for a caller that waits no longer; false if its turn has come meanwhile.
func (e *expensiveReads) giveUp(read *expensiveRead) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Contains(e.queues[read.caller], read) {
		return false
	}
	e.remove(read)
	e.dropped.Inc()
	return true
}

// remove takes a read out of the queue of its caller.
func (e *expensiveReads) remove(read *expensiveRead) {
	by := read.caller
	e.queues[by] = slices.DeleteFunc(e.queues[by], func(r *expensiveRead) bool { return r == read })
	if len(e.queues[by]) == 0 {
		delete(e.queues, by)
		e.callers = slices.DeleteFunc(e.callers, func(c *caller) bool { return c == by })
	}
}

// next lets the next read begin, now or when there is time for it again.
func (e *expensiveReads) next() {
	if e.running || e.paused || len(e.callers) == 0 {
		return
	}
	now := time.Now()
	e.credit = min(expensiveBurst, e.credit+now.Sub(e.creditAt)/expensiveShare)
	e.creditAt = now
	if e.credit <= 0 {
		e.paused = true
		time.AfterFunc(expensiveShare*(1-e.credit), e.resume)
		return
	}
	by := e.callers[0]
	read := e.queues[by][0]
	e.remove(read)
	if len(e.queues[by]) > 0 { // the other callers come first
		e.callers = append(e.callers[1:], by)
	}
	e.running, read.began = true, now
	close(read.granted)
}

func (e *expensiveReads) resume() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.paused = false
	e.next()
}

// leave charges a read and lets the next one begin.
func (e *expensiveReads) leave(read *expensiveRead) {
	e.mu.Lock()
	defer e.mu.Unlock()
	took := time.Since(read.began)
	e.took.Add(took.Seconds())
	// What is refilled for the time of the read itself is less than the charge.
	e.credit -= min(took, maxCharge)
	e.running = false
	e.next()
}
