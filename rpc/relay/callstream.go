package relay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	peerv1 "github.com/quorate/quorate/gen/quorate/peer/v1"
)

// MaxStreamedCalls bounds the unanswered calls of one stream between nodes. Calls beyond that are relayed on their own.
const MaxStreamedCalls = 1000

// maxStreamedMessage is the size of calls with their headers, in bytes, from which on further ones go into the next
// message.
const maxStreamedMessage = 256 << 10

type messageStream interface {
	Send(*peerv1.RelayCallsRequest) error
	Receive() (*peerv1.RelayCallsResponse, error)
	CloseRequest() error
}

// callStream carries calls to one leader over one stream of messages. All calls that wait while a message is being sent
// share the next one, so a call waits for no others.
type callStream struct {
	stream messageStream
	cancel context.CancelFunc
	ended  <-chan struct{}
	opened time.Time
	// wake receives a value when there is something to send.
	wake chan struct{}

	mu        sync.Mutex
	waiting   []*streamedCall
	cancelled []uint64
	sent      map[uint64]*streamedCall // and unanswered
	last      uint64                   // the last number
	// retired is true if the stream takes no more calls; it ends with the last that it carries.
	retired bool
	// failed is why the stream has ended.
	failed error
}

type streamedCall struct {
	message *peerv1.RelayedCall
	// done receives one result, unless the call was abandoned.
	done chan streamedResult
}

type streamedResult struct {
	answer *peerv1.RelayedAnswer
	err    error
}

// errStreamFull: a stream takes no more calls now.
var errStreamFull = errors.New("the stream takes no more calls")

// startCallStream takes a cancel that must end the stream, and a channel that is closed when it has ended.
func startCallStream(stream messageStream, cancel context.CancelFunc, ended <-chan struct{}) *callStream {
	s := &callStream{
		stream: stream, cancel: cancel, ended: ended, opened: time.Now(), wake: make(chan struct{}, 1),
		sent: map[uint64]*streamedCall{},
	}
	go s.sendMessages()
	go s.receiveAnswers()
	return s
}

// exchange sends a call and waits for its answer. The error is errStreamFull if the stream does not take the call, and
// an unsentError if it was certainly not sent.
func (s *callStream) exchange(ctx context.Context, message *peerv1.RelayedCall) (*peerv1.RelayedAnswer, error) {
	c := &streamedCall{message: message, done: make(chan streamedResult, 1)}
	if !s.enqueue(c) {
		return nil, errStreamFull
	}
	select {
	case r := <-c.done:
		return r.answer, r.err
	case <-ctx.Done():
		return s.abandon(c, ctx.Err())
	}
}

func (s *callStream) enqueue(c *streamedCall) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.retired || s.failed != nil || len(s.waiting)+len(s.sent) >= MaxStreamedCalls {
		return false
	}
	s.last++
	c.message.Number = s.last
	s.waiting = append(s.waiting, c)
	s.signal()
	return true
}

// abandon takes back a call whose caller has stopped waiting. If it was sent, the leader is told.
func (s *callStream) abandon(c *streamedCall, cause error) (*peerv1.RelayedAnswer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.waiting {
		if other == c {
			s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
			s.endIfDrained()
			return nil, unsentError{cause}
		}
	}
	number := c.message.GetNumber()
	if s.sent[number] == c {
		delete(s.sent, number)
		s.cancelled = append(s.cancelled, number)
		s.signal()
		return nil, cause
	}
	r := <-c.done // it was answered at this moment
	return r.answer, r.err
}

// signal must be called with mu held.
func (s *callStream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *callStream) sendMessages() {
	for {
		select {
		case <-s.wake:
		case <-s.ended:
			return
		}
		for m := s.takeMessage(); m != nil; m = s.takeMessage() {
			if s.stream.Send(m) != nil {
				s.cancel() // receiveAnswers learns why
				return
			}
		}
		s.closeIfDrained()
	}
}

// takeMessage returns nil if there is nothing to send. The calls of the message count as sent from now on.
func (s *callStream) takeMessage() *peerv1.RelayCallsRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting)+len(s.cancelled) == 0 || s.failed != nil {
		return nil
	}
	m := &peerv1.RelayCallsRequest{Cancelled: s.cancelled}
	s.cancelled = nil
	size, count := 0, 0
	for _, c := range s.waiting {
		if size >= maxStreamedMessage {
			break
		}
		size += len(c.message.GetBody()) + len(c.message.GetHeaders())
		m.Calls = append(m.Calls, c.message)
		s.sent[c.message.GetNumber()] = c
		count++
	}
	s.waiting = s.waiting[count:]
	return m
}

func (s *callStream) receiveAnswers() {
	defer s.cancel()
	for {
		m, err := s.stream.Receive()
		if err != nil {
			s.fail(err)
			return
		}
		s.deliver(m.GetAnswers())
	}
}

func (s *callStream) deliver(answers []*peerv1.RelayedAnswer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, answer := range answers {
		c := s.sent[answer.GetNumber()]
		if c == nil {
			continue // its caller has gone
		}
		delete(s.sent, answer.GetNumber())
		r := streamedResult{answer: answer}
		if answer.GetStatus() == 0 {
			r = streamedResult{err: errors.New("the answer broke off")}
		}
		c.done <- r
	}
	s.endIfDrained()
}

// fail gives all calls an error: whether they were sent or not.
func (s *callStream) fail(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = fmt.Errorf("the stream of calls to it broke off: %w", cause)
	for _, c := range s.waiting {
		c.done <- streamedResult{err: unsentError{s.failed}}
	}
	for _, c := range s.sent {
		c.done <- streamedResult{err: s.failed}
	}
	s.waiting, s.cancelled = nil, nil
	clear(s.sent)
}

// retire lets the stream end when the calls that it carries have ended.
func (s *callStream) retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retired = true
	s.endIfDrained()
}

// endIfDrained must be called with mu held.
func (s *callStream) endIfDrained() {
	if s.retired && len(s.waiting)+len(s.sent) == 0 {
		s.signal()
	}
}

// closeIfDrained tells the leader that nothing more comes. Only the sender closes, so that it does not close in the
// middle of a message.
func (s *callStream) closeIfDrained() {
	s.mu.Lock()
	drained := s.retired && len(s.waiting)+len(s.sent)+len(s.cancelled) == 0
	s.mu.Unlock()
	if drained {
		_ = s.stream.CloseRequest() // if it fails the stream has ended
		s.cancel()
	}
}

func (s *callStream) isUsable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.retired && s.failed == nil
}
