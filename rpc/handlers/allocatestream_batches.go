package handlers

import (
	"context"
	"slices"
	"sync"
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
)

// deadlineTick is how late a request of a stream may be answered that its time is over.
const deadlineTick = 20 * time.Millisecond

// StreamCalls makes the batch calls of streams: on the leader, or through it.
type StreamCalls struct {
	Client quoratev1connect.AllocationServiceClient
}

type streamKind int

const (
	streamAllocate streamKind = iota
	streamRelease
	streamRenew
	streamKinds
)

// streamQueue holds the requests of one kind that have arrived and are not yet in a batch.
type streamQueue struct {
	mu      sync.Mutex
	changed sync.Cond
	waiting []*streamCall
	closed  bool
}

func newStreamQueue() *streamQueue {
	q := &streamQueue{}
	q.changed.L = &q.mu
	return q
}

func (q *streamQueue) add(c *streamCall) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, c)
	q.changed.Signal()
}

// close makes take return nil when the queue is empty.
func (q *streamQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Signal()
}

// take waits for requests and removes the oldest, within the bounds of a batch.
func (q *streamQueue) take(most int) []*streamCall {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) == 0 && !q.closed {
		q.changed.Wait()
	}
	n, size := 0, int64(0)
	for n < len(q.waiting) && n < most && (n == 0 || size+q.waiting[n].size <= maxStreamBatch) {
		size += q.waiting[n].size
		n++
	}
	taken := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	return taken
}

func (q *streamQueue) removeExpired(now time.Time) (expired []*streamCall) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.DeleteFunc(q.waiting, func(c *streamCall) bool {
		if now.After(c.deadline) {
			expired = append(expired, c)
		}
		return now.After(c.deadline)
	})
	return expired
}

// work sends the requests of one kind in batches, one after the other, until the queue is closed and empty. After the
// end of the stream it begins no batch.
func (a *allocateStream) work(kind streamKind) {
	for {
		calls := a.queues[kind].take(MaxUnanswered)
		if len(calls) == 0 {
			return
		}
		begin := calls[:0:0]
		for _, c := range calls {
			switch {
			case a.ctx.Err() != nil:
				a.answerFailure(c, streamEnded())
			case !time.Now().Before(c.deadline):
				a.answerFailure(c, deadlineError(false))
			default:
				begin = append(begin, c)
			}
		}
		if len(begin) > 0 {
			a.sendBatch(kind, begin)
		}
	}
}

// sendBatch answers each request by its own deadline at the latest.
func (a *allocateStream) sendBatch(kind streamKind, calls []*streamCall) {
	latest := calls[0].deadline
	for _, c := range calls {
		if c.deadline.After(latest) {
			latest = c.deadline
		}
	}
	ctx, cancel := context.WithDeadline(a.batches, latest)
	defer cancel()
	done := make(chan struct{})
	var answers []*quoratev1.AllocateStreamResponse
	var failed error
	go func() {
		defer close(done)
		answers, failed = a.service.Streams.call(ctx, kind, calls)
	}()
	a.awaitBatch(done, a.queues[kind], calls)
	for i, c := range calls {
		if failed != nil || i >= len(answers) || answers[i] == nil {
			a.answerFailure(c, batchFailure(failed))
			continue
		}
		a.answer(c, answers[i])
	}
}

// awaitBatch waits until a batch is done. Meanwhile it answers the requests whose time is over, in the batch and behind
// it.
func (a *allocateStream) awaitBatch(done <-chan struct{}, behind *streamQueue, calls []*streamCall) {
	look := time.NewTicker(deadlineTick)
	defer look.Stop()
	for {
		select {
		case <-done:
			return
		case now := <-look.C:
			for _, c := range calls {
				if now.After(c.deadline) {
					a.answerFailure(c, deadlineError(true))
				}
			}
			for _, c := range behind.removeExpired(now) {
				a.answerFailure(c, deadlineError(false))
			}
		}
	}
}
