package handlers

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"

	"connectrpc.com/connect"

	peerv1 "github.com/quorate/quorate/gen/quorate/peer/v1"
	"github.com/quorate/quorate/rpc/admission"
	"github.com/quorate/quorate/rpc/codec"
	"github.com/quorate/quorate/rpc/relay"
	"github.com/quorate/quorate/rpc/wire"
)

// maxAnswersMessage is the size of answers, in bytes, from which on further ones go into the next message.
const maxAnswersMessage = 256 << 10

type relayedCallsStream = connect.BidiStream[peerv1.RelayCallsRequest, peerv1.RelayCallsResponse]

// RelayCalls serves the calls that another node relays. Each is served as one that the node had sent by HTTP: what the
// node may do is decided for the call, by the identity that the connection has proved.
func (s PeerService) RelayCalls(ctx context.Context, stream *relayedCallsStream) error {
	if !relay.NodeCallOf(ctx).Internal {
		return connect.NewError(connect.CodeUnimplemented, errors.New("calls are relayed to the listener for nodes"))
	}
	if _, err := stream.Receive(); err != nil {
		return err
	}
	if err := stream.Send(&peerv1.RelayCallsResponse{}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &relayedCalls{
		ctx: ctx, calls: s.Calls, stream: stream, cancels: map[uint64]context.CancelFunc{}, wake: make(chan struct{}, 1),
	}
	var sender sync.WaitGroup
	sender.Go(r.sendAnswers)
	err := r.receiveCalls()
	cancel()
	r.serving.Wait()
	sender.Wait()
	return err
}

type relayedCalls struct {
	ctx    context.Context //nolint:containedctx // that of the stream, under which all calls run
	calls  *RelayedCallServer
	stream *relayedCallsStream
	// serving are the calls under way.
	serving sync.WaitGroup
	// wake receives a value when there is an answer.
	wake chan struct{}

	mu      sync.Mutex
	cancels map[uint64]context.CancelFunc // of the calls under way
	answers []*peerv1.RelayedAnswer
}

func (r *relayedCalls) receiveCalls() error {
	for {
		m, err := r.stream.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		r.cancelCalls(m.GetCancelled())
		for _, c := range m.GetCalls() {
			if err := r.begin(c); err != nil {
				return err
			}
		}
	}
}

// begin returns an error if it must end the stream.
func (r *relayedCalls) begin(c *peerv1.RelayedCall) error {
	ctx, cancel := context.WithCancel(r.ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancels[c.GetNumber()] != nil || len(r.cancels) >= relay.MaxStreamedCalls {
		cancel()
		return wire.ToError(wire.InvalidField("calls",
			"number %d is under way already, or %d calls are, which is the limit; the stream ends", c.GetNumber(),
			len(r.cancels)))
	}
	r.cancels[c.GetNumber()] = cancel
	r.serving.Go(func() {
		defer cancel()
		r.answer(c.GetNumber(), r.calls.serve(ctx, c))
	})
	return nil
}

// cancelCalls takes calls out of the count at once, because the follower does not count them any more either.
func (r *relayedCalls) cancelCalls(numbers []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, number := range numbers {
		if cancel := r.cancels[number]; cancel != nil {
			cancel()
			delete(r.cancels, number)
		}
	}
}

// answer keeps an answer for sendAnswers. It drops one that is made after the end of the stream: it may say that the
// call was cancelled, which its caller did not do. Without an answer the follower says that the outcome is unknown.
func (r *relayedCalls) answer(number uint64, answer *peerv1.RelayedAnswer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.cancels, number)
	if r.ctx.Err() != nil {
		return
	}
	r.answers = append(r.answers, answer)
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// sendAnswers sends until the stream ends. All answers that are made while a message is sent share the next one.
func (r *relayedCalls) sendAnswers() {
	for {
		select {
		case <-r.wake:
		case <-r.ctx.Done():
			return
		}
		for m := r.takeAnswers(); m != nil; m = r.takeAnswers() {
			admission.ExtendSending(r.ctx, 0)
			err := r.stream.Send(m)
			admission.KeepSendingOpen(r.ctx)
			if err != nil {
				// The reader must not wait for a node that does not receive.
				admission.EndReceiving(r.ctx)
				return
			}
		}
	}
}

// takeAnswers returns nil if there is no answer.
func (r *relayedCalls) takeAnswers() *peerv1.RelayCallsResponse {
	r.mu.Lock()
	defer r.mu.Unlock()
	size, count := 0, 0
	for ; count < len(r.answers) && size < maxAnswersMessage; count++ {
		size += len(r.answers[count].GetBody())
	}
	if count == 0 {
		return nil
	}
	m := &peerv1.RelayCallsResponse{Answers: r.answers[:count:count]}
	r.answers = r.answers[count:]
	return m
}

// RelayedCallServer serves relayed calls with the handler for calls of other nodes.
type RelayedCallServer struct {
	// Transport serves whole exchanges.
	Transport http.RoundTripper
	// Known reports whether a path is that of a method for clients with one request and one answer.
	Known func(path string) bool
}

// serve returns status 0 if the answer broke off.
func (s *RelayedCallServer) serve(ctx context.Context, c *peerv1.RelayedCall) (answer *peerv1.RelayedAnswer) {
	answer = &peerv1.RelayedAnswer{Number: c.GetNumber()}
	defer func() {
		if cause := recover(); cause != nil && cause != http.ErrAbortHandler { //nolint:errorlint // it is that value
			panic(cause)
		}
	}()
	if !s.Known(c.GetPath()) {
		answer.Status = http.StatusNotFound
		return answer
	}
	r := (&http.Request{
		Method: http.MethodPost, URL: &url.URL{Path: c.GetPath()}, Header: relay.HeadersFromWire(c.GetHeaders()),
	}).WithContext(ctx)
	codec.SetBody(r, c.GetBody())
	received, err := s.Transport.RoundTrip(r)
	if err != nil {
		return answer
	}
	body, err := io.ReadAll(received.Body)
	if err = errors.Join(err, received.Body.Close()); err != nil {
		return answer
	}
	return relay.AnswerToWire(c.GetNumber(), received, body)
}
