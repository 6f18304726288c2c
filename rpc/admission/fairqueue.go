package admission

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorate/quorate/cluster"
)

// heldTurn may be used by several goroutines; its zero value is no turn.
type heldTurn struct {
	mu sync.Mutex
	// ends are called at its end, the last one first.
	ends []func()
}

func (t *heldTurn) AddEnd(end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ends = append(t.ends, end)
}

// EndTurn gives the turn back, if there is one.
func (t *heldTurn) EndTurn() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, end := range slices.Backward(t.ends) {
		end()
	}
	t.ends = nil
}

type queuedTurn struct {
	caller *Caller
	// granted is closed when the read may begin.
	granted chan struct{}
	began   time.Time
	// prepared is how long it took to decode and check the request, which happens before its turn but is charged with it.
	prepared time.Duration
}

// FairQueue admit work one at a time. Callers take turns: one that asks for much waits for itself, and for one of
// each other caller.
//
// With a share, all of the work takes no more than one part in so many of the time, but for a burst. It is measured
// on the clock and not as processor time: on a machine that is busy it takes longer, and the pause after it is longer
// too.
type FairQueue struct {
	share time.Duration // 0 for no pauses
	// dropped counts those who did not wait for their turn, taken is how long the others took.
	dropped, taken atomic.Int64

	mu sync.Mutex
	// queues have the work that waits, by caller; callers are those that have some, in the order of their turns.
	queues  map[*Caller][]*queuedTurn
	callers []*Caller
	running bool
	// paused is true while a timer will call next.
	paused bool
	// credit is the time that may be taken, as of an instant; negative after a turn that took more.
	credit   time.Duration
	creditAt time.Time
}

func newFairQueue(share time.Duration) *FairQueue {
	return &FairQueue{share: share, queues: map[*Caller][]*queuedTurn{}, credit: expensiveBurst, creditAt: time.Now()}
}

// WaitTurn waits for the turn of a caller, nil for all that are not told apart. If it is granted, leave must be called.
func (t *FairQueue) WaitTurn(ctx context.Context, caller *Caller, prepared time.Duration) (leave func(), err error) {
	read := &queuedTurn{caller: caller, prepared: prepared, granted: make(chan struct{})}
	t.enqueueTurn(read)
	select {
	case <-read.granted:
	case <-ctx.Done():
		if t.abandonTurn(read) {
			return nil, &cluster.Error{
				Reason: cluster.Overloaded, NotApplied: true, Cause: ctx.Err(),
				Text: "this server decodes large requests, and answers plans, dry runs, explanations, long lists and " +
					"large trees, one after " +
					"the other, and the turn of this one did not come in time; nothing was done, try again later or " +
					"at another server",
			}
		}
	}
	return func() { t.endTurn(read) }, nil
}

func (t *FairQueue) enqueueTurn(read *queuedTurn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queues[read.caller]) == 0 {
		t.callers = append(t.callers, read.caller)
	}
	t.queues[read.caller] = append(t.queues[read.caller], read)
	t.startNext()
}

// abandonTurn is for a caller that waits no longer; false if its turn has come meanwhile.
func (t *FairQueue) abandonTurn(read *queuedTurn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.queues[read.caller], read) {
		return false
	}
	t.removeTurn(read)
	t.dropped.Add(1)
	return true
}

func (t *FairQueue) removeTurn(read *queuedTurn) {
	caller := read.caller
	t.queues[caller] = slices.DeleteFunc(t.queues[caller], func(r *queuedTurn) bool { return r == read })
	if len(t.queues[caller]) == 0 {
		delete(t.queues, caller)
		t.callers = slices.DeleteFunc(t.callers, func(c *Caller) bool { return c == caller })
	}
}

// startNext lets the next read begin, or sets a timer for it.
func (t *FairQueue) startNext() {
	if t.running || t.paused || len(t.callers) == 0 {
		return
	}
	now := time.Now()
	if t.share > 0 && !t.hasCredit(now) {
		t.paused = true
		time.AfterFunc(t.share*(1-t.credit), t.resumeQueue)
		return
	}
	caller := t.callers[0]
	read := t.queues[caller][0]
	t.removeTurn(read)
	if len(t.queues[caller]) > 0 { // the other callers come first
		t.callers = append(t.callers[1:], caller)
	}
	t.running, read.began = true, now
	close(read.granted)
}

func (t *FairQueue) hasCredit(now time.Time) bool {
	t.credit = min(expensiveBurst, t.credit+now.Sub(t.creditAt)/t.share)
	t.creditAt = now
	return t.credit > 0
}

func (t *FairQueue) resumeQueue() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paused = false
	t.startNext()
}

func (t *FairQueue) endTurn(read *queuedTurn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	took := read.prepared + time.Since(read.began)
	t.taken.Add(int64(took))
	// What is refilled for the time of the read itself is less than the charge.
	t.credit -= min(took, maxCharge)
	t.running = false
	t.startNext()
}

// IsRunning reports whether a turn is in progress.
func (t *FairQueue) IsRunning() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running
}

// CountWaiting is how many callers wait for a turn.
func (t *FairQueue) CountWaiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.callers)
}
