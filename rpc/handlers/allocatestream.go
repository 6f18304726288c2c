package handlers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/rpc/admission"
	"github.com/quorate/quorate/rpc/codec"
	"github.com/quorate/quorate/rpc/wire"
)

const (
	// MaxUnanswered is how many requests of a stream may be unanswered; then the server reads no further.
	MaxUnanswered = 1000
	// MaxStreamRequest is the largest request in a stream, in bytes.
	MaxStreamRequest = 64 << 10
	// maxStreamBatch bounds the bytes of a batch that is made of requests of a stream, so that it queues as a small call.
	maxStreamBatch = 96 << 10
	// streamIdle is how long a stream may be without a request.
	streamIdle = 2 * time.Minute
	// streamGrace is how long the batches that are under way may take after the stream has broken or the server has begun
	// to stop.
	streamGrace = 2 * time.Second
)

// allocateStream is one stream: a reader, which charges and queues requests, and a worker for each kind of request,
// which sends what has arrived as one batch.
type allocateStream struct {
	service AllocationService
	stream  *connect.BidiStream[quoratev1.AllocateStreamRequest, quoratev1.AllocateStreamResponse]
	ticket  *admission.Ticket
	// ctx ends when the stream breaks or the server stops. Batches under way outlive it by streamGrace.
	ctx     context.Context //nolint:containedctx // it is that of the stream
	cancel  context.CancelFunc
	batches context.Context //nolint:containedctx // that of batches
	// room has a token for each unanswered request.
	room    chan struct{}
	queues  [streamKinds]*streamQueue
	sending sync.Mutex

	mu         sync.Mutex
	unanswered map[uint64]*streamCall
}

type streamCall struct {
	request  *quoratev1.AllocateStreamRequest
	size     int64
	deadline time.Time
	charged  bool
}

// AllocateStream serves one stream. It answers every request that it has read before it returns.
func (s AllocationService) AllocateStream(
	ctx context.Context,
	stream *connect.BidiStream[quoratev1.AllocateStreamRequest, quoratev1.AllocateStreamResponse],
) error {
	a := &allocateStream{
		service: s, stream: stream, ticket: admission.TicketOf(ctx),
		room: make(chan struct{}, MaxUnanswered), unanswered: map[uint64]*streamCall{},
	}
	a.ctx, a.cancel = context.WithCancel(ctx)
	defer a.cancel()
	// Batches run at the same time, so each needs a ticket of its own: calls change theirs.
	var endBatches context.CancelFunc
	a.batches, endBatches = context.WithCancel(context.WithValue(context.WithoutCancel(ctx), admission.TicketKey{},
		&admission.Ticket{Caller: a.ticket.Caller, Limiters: a.ticket.Limiters}))
	defer endBatches()
	stop := context.AfterFunc(a.ctx, func() { time.AfterFunc(streamGrace, endBatches) })
	defer stop()
	var workers sync.WaitGroup
	for kind := range a.queues {
		a.queues[kind] = newStreamQueue()
		workers.Go(func() { a.work(streamKind(kind)) })
	}
	err := a.readRequests()
	for _, q := range a.queues {
		q.close()
	}
	workers.Wait()
	return err
}

// readRequests reads until the caller ends the stream. Its error is why the stream ends otherwise.
func (a *allocateStream) readRequests() error {
	for {
		select {
		case a.room <- struct{}{}:
		case <-a.ctx.Done():
			return streamEnded()
		}
		admission.ExtendReceiving(a.ctx, time.Now().Add(streamIdle))
		a.keepSendingOpen()
		request, err := a.stream.Receive()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && a.ctx.Err() != nil:
			return streamEnded()
		case err != nil:
			return err
		}
		if err := a.accept(request); err != nil {
			a.cancel() // what was not begun is answered as not applied
			return err
		}
	}
}

// keepSendingOpen lets the stream be without an answer until the next request and its deadline. While an answer is
// being sent, its much shorter deadline stays: otherwise a caller that sends and never receives could hold the stream.
func (a *allocateStream) keepSendingOpen() {
	if a.sending.TryLock() {
		admission.ExtendSending(a.ctx, streamIdle+admission.LongestDeadline)
		a.sending.Unlock()
	}
}

// streamEnded is for a stream that ends because the server stops.
func streamEnded() error {
	return wire.NodeError(&cluster.Error{
		Reason: cluster.ShuttingDown, NotApplied: true,
		Text: "this server ends the stream because it stops; what it has read is answered, repeat the rest elsewhere",
	})
}

// accept returns an error only if it ends the stream.
func (a *allocateStream) accept(request *quoratev1.AllocateStreamRequest) error {
	c := &streamCall{request: request, size: int64(proto.Size(request)), deadline: time.Now().Add(timeoutOf(request))}
	a.mu.Lock()
	if a.unanswered[request.GetNumber()] != nil {
		a.mu.Unlock()
		return wire.ToError(wire.InvalidField("number", "the request with number %d is not answered yet; the stream ends",
			request.GetNumber()))
	}
	a.unanswered[request.GetNumber()] = c
	a.mu.Unlock()
	kind, err := kindOf(request, c.size)
	if release := request.GetRelease(); err == nil && release != nil { // batches leave their ids to the ledger
		if broken := a.service.Validator.Validate(release); broken != nil {
			err = wire.InvalidRequestError(broken)
		}
	}
	if err == nil {
		err = a.charge(c)
	}
	if err != nil {
		a.answerFailure(c, err)
		return nil
	}
	a.queues[kind].add(c)
	return nil
}

// timeoutOf is how long a request may take. An invalid one is refused by kindOf.
func timeoutOf(request *quoratev1.AllocateStreamRequest) time.Duration {
	if request.GetTimeoutMs() == 0 {
		return admission.DefaultDeadline
	}
	return time.Duration(request.GetTimeoutMs()) * time.Millisecond
}

// kindOf returns the queue of a request, or why it is refused before anything is done.
func kindOf(request *quoratev1.AllocateStreamRequest, size int64) (streamKind, error) {
	longest := admission.LongestDeadline.Milliseconds()
	switch {
	case size > MaxStreamRequest:
		return 0, codec.LargerThanError("request", MaxStreamRequest)
	case request.GetTimeoutMs() < 0 || request.GetTimeoutMs() > longest:
		return 0, wire.InvalidField("timeout_ms", "must be between 0 and %d", longest)
	case request.GetAllocate() != nil:
		return streamAllocate, nil
	case request.GetRenew() != nil:
		return streamRenew, nil
	case request.GetRelease() != nil:
		return streamRelease, nil
	}
	return 0, wire.InvalidField("request", "one of allocate, release and renew must be set")
}

// charge takes from the limits of the caller what a unary call would take.
func (a *allocateStream) charge(c *streamCall) error {
	if a.ticket.Limiters == nil {
		return nil
	}
	if err := a.service.Limiters.CheckRate(a.ticket.Caller); err != nil {
		return err
	}
	if err := a.ticket.Limiters.Calls.TryAcquire(a.ticket.Caller, 1); err != nil {
		return err
	}
	if err := a.ticket.Limiters.SmallBodies.TryAcquire(a.ticket.Caller, c.size); err != nil {
		a.ticket.Limiters.Calls.Release(a.ticket.Caller, 1)
		return err
	}
	c.charged = true
	return nil
}

func (a *allocateStream) answerFailure(c *streamCall, err error) {
	a.answer(c, &quoratev1.AllocateStreamResponse{
		Outcome: &quoratev1.AllocateStreamResponse_Failure{Failure: wire.ToFailure(wire.ToError(err))},
	})
}

// answer sends the answer to a request, once, and gives back what the request held. A caller that does not receive it
// in time breaks the stream.
func (a *allocateStream) answer(c *streamCall, response *quoratev1.AllocateStreamResponse) {
	if !a.takeUnanswered(c) {
		return
	}
	response.Number = c.request.GetNumber()
	a.sending.Lock() // keepSendingOpen relies on it
	admission.ExtendSending(a.ctx, 0)
	err := a.stream.Send(response)
	admission.ExtendSending(a.ctx, streamIdle+admission.LongestDeadline)
	a.sending.Unlock()
	if err != nil {
		a.cancel()
		admission.ExtendReceiving(a.ctx, time.Now()) // the reader must not wait for a caller that does not receive
	}
	if c.charged {
		a.ticket.Limiters.SmallBodies.Release(a.ticket.Caller, c.size)
		a.ticket.Limiters.Calls.Release(a.ticket.Caller, 1)
	}
	<-a.room
}

// takeUnanswered reports whether a request was unanswered, and marks it as answered.
func (a *allocateStream) takeUnanswered(c *streamCall) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unanswered[c.request.GetNumber()] != c {
		return false
	}
	delete(a.unanswered, c.request.GetNumber())
	return true
}

func deadlineError(begun bool) error {
	return wire.NodeError(&cluster.Error{
		Reason: cluster.Deadline, NotApplied: !begun,
		Text: fmt.Sprintf("the time of this request passed before the answer was there (begun: %t)", begun),
	})
}
