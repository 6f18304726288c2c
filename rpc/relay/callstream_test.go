package relay

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	peerv1 "github.com/quorate/quorate/gen/quorate/peer/v1"
)

// fakeStream is a stream whose leader is the test.
type fakeStream struct {
	sent    chan *peerv1.RelayCallsRequest // takes one message at a time
	answers chan *peerv1.RelayCallsResponse
	ctx     context.Context //nolint:containedctx // of the stream
	closed  chan struct{}
}

func (s *fakeStream) Send(m *peerv1.RelayCallsRequest) error {
	select {
	case s.sent <- m:
		return nil
	case <-s.ctx.Done():
		return io.EOF
	}
}

func (s *fakeStream) Receive() (*peerv1.RelayCallsResponse, error) {
	select {
	case m := <-s.answers:
		return m, nil
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

func (s *fakeStream) CloseRequest() error { close(s.closed); return nil }

func (s *fakeStream) answer(numbers ...uint64) {
	m := &peerv1.RelayCallsResponse{}
	for _, number := range numbers {
		m.Answers = append(m.Answers, &peerv1.RelayedAnswer{Number: number, Status: 200})
	}
	s.answers <- m
}

func openFakeStream(t *testing.T) (*callStream, *fakeStream, context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f := &fakeStream{
		sent: make(chan *peerv1.RelayCallsRequest), answers: make(chan *peerv1.RelayCallsResponse), ctx: ctx,
		closed: make(chan struct{}),
	}
	return startCallStream(f, cancel, ctx.Done()), f, cancel
}

type exchanged struct {
	number uint64
	err    error
}

func begin(ctx context.Context, s *callStream, body string) <-chan exchanged {
	result := make(chan exchanged, 1)
	go func() {
		answer, err := s.exchange(ctx, &peerv1.RelayedCall{Body: []byte(body)})
		result <- exchanged{answer.GetNumber(), err}
	}()
	synctest.Wait()
	return result
}

func wantUnsent(t *testing.T, what string, err error, unsent bool) {
	t.Helper()
	if err == nil || notSent(err) != unsent {
		t.Errorf("%s: %v, not sent: %t; want %t", what, err, notSent(err), unsent)
	}
}

func TestCallsShareMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, leader, cancel := openFakeStream(t)
		defer cancel()
		first := begin(t.Context(), s, "a") // is being sent
		second, third := begin(t.Context(), s, "b"), begin(t.Context(), s, "c")
		if m := <-leader.sent; len(m.GetCalls()) != 1 {
			t.Errorf("the first message has %d calls", len(m.GetCalls()))
		}
		if m := <-leader.sent; len(m.GetCalls()) != 2 {
			t.Errorf("the second message has %d calls", len(m.GetCalls()))
		}
		leader.answer(3, 1, 99) // in any order, and one that no caller waits for
		leader.answer(2)
		for i, got := range []<-chan exchanged{first, second, third} {
			if r := <-got; r.err != nil || r.number != uint64(i+1) {
				t.Errorf("call %d: %+v", i+1, r)
			}
		}
	})
}

func TestLargeCallsGoIntoMessagesOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, leader, cancel := openFakeStream(t)
		defer cancel()
		body := string(make([]byte, maxStreamedBody))
		for range 10 {
			begin(t.Context(), s, body)
		}
		<-leader.sent // the first call alone
		for _, want := range []int{4, 4, 1} {
			if m := <-leader.sent; len(m.GetCalls()) != want {
				t.Errorf("a message has %d calls, want %d", len(m.GetCalls()), want)
			}
		}
	})
}

func TestCallersThatGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, leader, cancel := openFakeStream(t)
		defer cancel()
		ctx, leave := context.WithCancel(t.Context())
		sent, waiting := begin(ctx, s, "a"), begin(ctx, s, "b")
		leave()
		wantUnsent(t, "a call that was being sent", (<-sent).err, false)
		wantUnsent(t, "a call that waited", (<-waiting).err, true)
		if m := <-leader.sent; len(m.GetCalls()) != 1 || len(m.GetCancelled()) != 0 {
			t.Errorf("sent %v", m)
		}
		if m := <-leader.sent; len(m.GetCalls()) != 0 || len(m.GetCancelled()) != 1 || m.GetCancelled()[0] != 1 {
			t.Errorf("sent %v, want the cancellation of call 1", m)
		}
	})
}

func TestStreamsThatBreakOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, leader, cancel := openFakeStream(t)
		answered, sent := begin(t.Context(), s, "a"), begin(t.Context(), s, "b")
		<-leader.sent
		leader.answer(1)
		<-leader.sent
		broken := begin(t.Context(), s, "c") // is being sent
		waiting := begin(t.Context(), s, "d")
		cancel()
		if r := <-answered; r.err != nil {
			t.Error(r.err)
		}
		wantUnsent(t, "a call that was sent", (<-sent).err, false)
		wantUnsent(t, "a call that was being sent", (<-broken).err, false)
		wantUnsent(t, "a call that waited", (<-waiting).err, true)
		if r := <-begin(t.Context(), s, "e"); !errors.Is(r.err, errStreamFull) {
			t.Errorf("a call after the end: %+v", r)
		}
	})
}

func TestAnswersOfStreamsThatBreakOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, leader, cancel := openFakeStream(t)
		defer cancel()
		lost := begin(t.Context(), s, "a")
		<-leader.sent
		leader.answers <- &peerv1.RelayCallsResponse{Answers: []*peerv1.RelayedAnswer{{Number: 1}}}
		wantUnsent(t, "an answer without a status", (<-lost).err, false)
	})
}

func TestStreamsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, cancel := openFakeStream(t)
		defer cancel()
		for range MaxStreamedCalls {
			begin(t.Context(), s, "")
		}
		if r := <-begin(t.Context(), s, ""); !errors.Is(r.err, errStreamFull) {
			t.Errorf("one call too many: %+v", r)
		}
	})
}

func TestRetiredStreamsEndWithTheirLastCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, leader, cancel := openFakeStream(t)
		defer cancel()
		last := begin(t.Context(), s, "a")
		<-leader.sent
		s.retire()
		if r := <-begin(t.Context(), s, "b"); !errors.Is(r.err, errStreamFull) {
			t.Errorf("a call after that: %+v", r)
		}
		synctest.Wait()
		select {
		case <-leader.closed:
			t.Fatal("closed before the last answer")
		default:
		}
		leader.answer(1)
		if r := <-last; r.err != nil {
			t.Error(r.err)
		}
		<-leader.closed
		<-leader.ctx.Done()
	})
}

// opener counts streams and lets the test decide what becomes of them.
type opener struct {
	opened int
	fails  error
	last   *fakeStream
}

func (o *opener) open(ctx context.Context, _ string) (messageStream, error) {
	o.opened++
	if o.fails != nil {
		return nil, o.fails
	}
	o.last = &fakeStream{
		sent: make(chan *peerv1.RelayCallsRequest, 1), answers: make(chan *peerv1.RelayCallsResponse, 1), ctx: ctx,
		closed: make(chan struct{}),
	}
	o.last.answers <- &peerv1.RelayCallsResponse{}
	return o.last, nil
}

func TestStreamsFollowTheLeaderAndTheCertificates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, version := &opener{}, uint64(1)
		s := &CallStreams{open: o.open, version: func() uint64 { return version }, refused: map[string]time.Time{}}
		defer s.Close()
		open := func(url string) *callStream {
			t.Helper()
			if got := s.streamTo(url); got != nil {
				t.Errorf("a call to %s would use an earlier stream, or wait for one", url)
			}
			s.prepare(url)
			s.prepare(url)
			synctest.Wait()
			return s.streamTo(url)
		}
		first := open("a")
		if first == nil || s.streamTo("a") != first || o.opened != 1 {
			t.Fatalf("%d streams were opened", o.opened)
		}
		stream := o.last
		second := open("b")
		<-stream.closed // the stream to the leader before
		version++
		third := open("b")
		time.Sleep(connectionSpan + time.Second)
		if fourth := open("b"); second == nil || third == nil || fourth == nil || o.opened != 4 {
			t.Errorf("%d streams were opened", o.opened)
		}
	})
}

func TestLeadersThatTakeNoStreamsAreLeftAloneForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &opener{fails: errors.New("unimplemented")}
		s := &CallStreams{open: o.open, refused: map[string]time.Time{}}
		defer s.Close()
		ask := func() {
			s.prepare("a")
			synctest.Wait()
		}
		ask()
		ask()
		if o.opened != 1 {
			t.Errorf("asked %d times at once", o.opened)
		}
		time.Sleep(reopenAfter + time.Second)
		o.fails = nil
		ask()
		if o.opened != 2 || s.streamTo("a") == nil {
			t.Errorf("asked %d times", o.opened)
		}
	})
}

// TestLeadersThatDoNotAnswerAHandshake: no call waits for them.
func TestLeadersThatDoNotAnswerAHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := func(ctx context.Context, _ string) (messageStream, error) {
			return &fakeStream{
				sent: make(chan *peerv1.RelayCallsRequest, 1), answers: make(chan *peerv1.RelayCallsResponse), ctx: ctx,
			}, nil
		}
		s := &CallStreams{open: silent, refused: map[string]time.Time{}}
		defer s.Close()
		for range 3 {
			s.prepare("a")
			synctest.Wait()
			if s.streamTo("a") != nil {
				t.Error("a stream without an answer is used")
			}
			time.Sleep(openPatience)
		}
	})
}
