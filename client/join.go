package client

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"
)

const (
	// defaultBatches is how many calls or batches of one method may be under way at a time. Measured with 1, 2 and 4
	// against three servers: docs/performance.md, "Joined calls, streams and shares".
	defaultBatches = 2
	// mostJoined is the most calls in one batch, which is the bound of the API.
	mostJoined = 1000
	// mostJoinedBytes bounds the bytes of a batch: servers queue requests of more than 128 KiB apart from small ones.
	mostJoinedBytes = 96 << 10
	// mostCallBytes is the size from which on a call is not joined, so that it cannot delay many small ones.
	mostCallBytes = 8 << 10
)

// joiner is an interceptor that joins concurrent attempts of Allocate, Release and Renew into batches. It is inside the
// retrier: each caller has its own retries, pauses and deadline, and only one attempt is shared. Repeating a call whose
// batch was not answered is as safe as repeating a unary call, because requests have ids.
type joiner struct {
	queues map[string]*callQueue // by procedure
}

// WrapUnary joins the calls of methods that have a batch method, and passes all others on.
func (j *joiner) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		q := j.queues[request.Spec().Procedure]
		if q == nil || !q.method.isJoinable(request.Any()) {
			return next(ctx, request)
		}
		return q.call(ctx, request, next)
	}
}

// WrapStreamingClient passes streams on.
func (j *joiner) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler is for servers.
func (j *joiner) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// callQueue joins the calls of one method. While fewer calls and batches than slots are under way, a call is made at
// once and on its own. Otherwise it waits, in the order of arrival, and is sent with all others that wait when a slot
// is free again. There is no timer: a batch is as large as the load makes it.
type callQueue struct {
	method joinedMethod
	slots  int
	tokens *tokens

	mu       sync.Mutex
	underWay int // calls and batches
	waiting  []*joinedCall
	gone     int // calls in waiting whose callers have given up
}

type joinedCall struct {
	server   uint32 // index of the server that the attempt goes to
	deadline time.Time
	shared   string      // headers that all calls of a batch have in common
	header   http.Header // those and the trace headers; nil if there are none
	encoded  []byte      // its element of the batch

	outcome chan callOutcome // receives one value, unless the caller gives up first

	// The mutex of the queue guards these.
	gone  bool         // the caller gave up before the call was taken from the queue
	taken bool         // a batch has it, or its caller makes it
	batch *joinedBatch // nil if its caller makes it
}

type callOutcome struct {
	response connect.AnyResponse
	err      error
	// alone means that the caller makes the call itself, and holdsSlot that it has a slot to give back.
	alone, holdsSlot bool
}

type joinedBatch struct {
	calls    []*joinedCall
	callers  int // that still wait; the mutex of the queue guards it
	cancel   context.CancelFunc
	deadline time.Time // the latest of its calls
}

func (q *callQueue) call(
	ctx context.Context, request connect.AnyRequest, next connect.UnaryFunc,
) (connect.AnyResponse, error) {
	if q.tryEnter() {
		defer q.leave()
		return next(ctx, request)
	}
	c, ok := q.newCall(ctx, request)
	if !ok {
		return next(ctx, request)
	}
	if q.enqueue(c) {
		defer q.leave()
		return next(ctx, request)
	}
	select {
	case o := <-c.outcome:
		if o.holdsSlot {
			defer q.leave()
		}
		if o.alone {
			return next(ctx, request)
		}
		return o.response, o.err
	case <-ctx.Done():
		return nil, q.giveUp(ctx, c)
	}
}

// newCall encodes in the goroutine of the caller, who may change the request once the call has returned; false if the
// call must be made alone.
func (q *callQueue) newCall(ctx context.Context, request connect.AnyRequest) (*joinedCall, bool) {
	encoded, err := q.method.encode(request.Any())
	deadline, bounded := ctx.Deadline()
	server, _ := ctx.Value(serverKey{}).(uint32)
	if err != nil || !bounded || len(encoded) > mostCallBytes {
		return nil, false
	}
	shared, header := headersOf(request.Header())
	return &joinedCall{
		server: server, deadline: deadline, shared: shared, header: header, encoded: encoded,
		outcome: make(chan callOutcome, 1),
	}, true
}

// tryEnter takes a slot if one is free. Then no call waits, because nextBatch keeps a slot while calls wait.
func (q *callQueue) tryEnter() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.underWay == q.slots {
		return false
	}
	q.underWay++
	return true
}

// enqueue returns true if a slot has become free meanwhile: the caller then has the slot, and the call is not queued.
func (q *callQueue) enqueue(c *joinedCall) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.underWay < q.slots {
		q.underWay++
		return true
	}
	q.waiting = append(q.waiting, c)
	return false
}

// leave gives a slot back, or uses it for those that wait.
func (q *callQueue) leave() {
	if batch := q.nextBatch(); batch != nil {
		go q.sendLoop(batch)
	}
}

// sendLoop sends batches in one slot until no call waits.
func (q *callQueue) sendLoop(batch *joinedBatch) {
	for ; batch != nil; batch = q.nextBatch() {
		q.send(batch)
	}
}

// nextBatch takes the next calls from the queue. It returns nil if there are none, and gives the slot back, or if there
// is only one, and gives the slot to its caller.
func (q *callQueue) nextBatch() *joinedBatch {
	q.mu.Lock()
	defer q.mu.Unlock()
	calls := q.takeCalls()
	switch len(calls) {
	case 0:
		q.underWay--
		return nil
	case 1:
		calls[0].outcome <- callOutcome{alone: true, holdsSlot: true}
		return nil
	}
	batch := &joinedBatch{calls: calls, callers: len(calls)}
	for _, c := range calls {
		c.batch = batch
		if c.deadline.After(batch.deadline) {
			batch.deadline = c.deadline
		}
	}
	return batch
}

// takeCalls removes the oldest calls that may go together with the first one, within the bounds of a batch. The others
// stay in their order. Mu is held.
func (q *callQueue) takeCalls() (calls []*joinedCall) {
	size, kept := 0, q.waiting[:0]
	for i, c := range q.waiting {
		if c.gone {
			continue
		}
		if len(calls) == mostJoined || size+len(c.encoded) > mostJoinedBytes {
			kept = append(kept, q.waiting[i:]...)
			break
		}
		if len(calls) > 0 && (c.server != calls[0].server || c.shared != calls[0].shared) {
			kept = append(kept, c)
			continue
		}
		c.taken = true
		size += len(c.encoded)
		calls = append(calls, c)
	}
	clear(q.waiting[len(kept):])
	q.waiting = kept
	q.recountGone()
	return calls
}

// recountGone counts the calls in the queue whose callers have given up; mu is held.
func (q *callQueue) recountGone() {
	q.gone = 0
	for _, c := range q.waiting {
		if c.gone {
			q.gone++
		}
	}
}

// send makes the batch call and distributes its outcomes. If a server refused the batch as such, each caller makes its
// call alone, because what a server says about a batch is not an answer to one call. A failure after which the calls
// may have been carried out is the failure of each: a second attempt could hide that. So is the refusal of the
// credential, which all calls of a batch have in common.
func (q *callQueue) send(batch *joinedBatch) {
	ctx, cancel := context.WithDeadline(withServer(context.Background(), batch.calls[0].server), batch.deadline)
	defer cancel()
	q.mu.Lock()
	batch.cancel = cancel
	if batch.callers == 0 {
		cancel()
	}
	q.mu.Unlock()
	ctx, sent := withSentToken(ctx)
	outcomes, err := q.method.send(ctx, batch)
	if q.tokens.isReplaced(ctx, sent, err) {
		outcomes, err = q.method.send(ctx, batch)
	}
	for i, c := range batch.calls {
		switch {
		case err == nil:
			c.outcome <- outcomes[i]
		case isTransient(err) || MayBeDone(err) || !connect.IsWireError(err) || isRefusedCredential(err):
			c.outcome <- callOutcome{err: err}
		default:
			c.outcome <- callOutcome{alone: true}
		}
	}
}

// giveUp ends the wait of a caller whose context has ended. A call that was not sent is removed from the queue. A batch
// that no caller waits for any more is cancelled.
func (q *callQueue) giveUp(ctx context.Context, c *joinedCall) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !c.taken {
		c.gone = true
		q.gone++
		q.dropGone()
		return notSentError(ctx)
	}
	if c.batch == nil { // the slot was given to this caller just now
		<-c.outcome
		go q.leave()
		return notSentError(ctx)
	}
	if c.batch.callers--; c.batch.callers == 0 && c.batch.cancel != nil {
		c.batch.cancel()
	}
	return connect.NewError(codeOfContext(ctx), ctx.Err())
}

// dropGone removes the calls whose callers have given up once they are the larger part, so that a caller that gives up
// costs a constant time on average and a queue that is not served stays small. Mu is held.
func (q *callQueue) dropGone() {
	const worthwhile = 64
	if q.gone < worthwhile || q.gone < len(q.waiting)/2 {
		return
	}
	q.waiting = slices.DeleteFunc(q.waiting, func(c *joinedCall) bool { return c.gone })
	q.gone = 0
}
