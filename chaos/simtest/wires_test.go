package simtest

import (
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// callerSide is where callers are.
const callerSide = "outside"

// lossTimeout is how long a caller takes to notice that nothing comes back over a wire that is cut.
const lossTimeout = 2 * time.Second

// nodeEndpoint is where one node answers calls, until it dies.
type nodeEndpoint struct {
	ports   map[string]http.Handler
	running context.Context //nolint:containedctx // it is the life of the home, not of a call
	stop    context.CancelFunc
}

// simWires carry calls between callers and nodes. A wire takes some time, loses what is on it when it is cut, and perhaps an
// answer now and then.
type simWires struct {
	mu        sync.Mutex
	random    *rand.Rand
	endpoints map[string]*nodeEndpoint
	cut       map[[2]string]bool
	loss      float64
	delay     time.Duration
}

func newSimWires(seed uint64) *simWires {
	return &simWires{
		random: rand.New(rand.NewPCG(seed, 1)), endpoints: map[string]*nodeEndpoint{}, cut: map[[2]string]bool{}, delay: time.Millisecond,
	}
}

// update alters the wires.
func (w *simWires) update(how func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	how()
}

// healAll makes all wires whole and quick.
func (w *simWires) healAll() {
	w.update(func() { w.cut, w.loss, w.delay = map[[2]string]bool{}, 0, time.Millisecond })
}

func (w *simWires) endpointOf(id string) *nodeEndpoint {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.endpoints[id]
}

// letsPass tells whether something gets over a wire now; it may be lost on its own.
func (w *simWires) letsPass(from, to string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.cut[[2]string{from, to}] && w.random.Float64() >= w.loss
}

func (w *simWires) waitDelay() {
	w.mu.Lock()
	d := w.delay
	w.mu.Unlock()
	time.Sleep(d)
}

// wireTransport is one end of the wires: the client of callers, and what servers reach each other by.
type wireTransport struct {
	*simWires

	from string
}

// Do makes a call.
func (e wireTransport) Do(r *http.Request) (*http.Response, error) { return e.RoundTrip(r) }

// RoundTrip makes a call. To somebody who is dead it certainly fails; a call that is lost, or its answer, is only noticed
// after a while.
func (e wireTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	id, port, _ := strings.Cut(r.URL.Host, ":")
	e.waitDelay()
	h := e.endpointOf(id)
	if h == nil || h.running.Err() != nil {
		return nil, &net.OpError{Op: "dial", Net: "wire", Err: errors.New(id + " is not there")}
	}
	if !e.letsPass(e.from, id) {
		return nil, awaitTimeout(r.Context(), "the call")
	}
	answer, err := h.serveCall(r, port)
	if err != nil {
		return nil, err
	}
	e.waitDelay()
	if !e.letsPass(id, e.from) {
		_ = answer.Body.Close() // nobody reads it
		return nil, awaitTimeout(r.Context(), "the answer")
	}
	return answer, nil
}

// awaitTimeout waits until somebody notices.
func awaitTimeout(ctx context.Context, what string) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(lossTimeout):
		return &net.OpError{Op: "read", Net: "wire", Err: errors.New(what + " was lost")}
	}
}

// serveCall lets a node serve a call, until one of them goes away.
func (h *nodeEndpoint) serveCall(r *http.Request, port string) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	body := &bodyStream{more: make(chan struct{})}
	dead := context.AfterFunc(h.running, cancel)
	gone := context.AfterFunc(ctx, func() { body.endWith(io.ErrUnexpectedEOF) })
	a := &streamingResponse{header: http.Header{}, body: body, begun: make(chan struct{})}
	received := r.Clone(ctx)
	if received.Body == nil {
		received.Body = http.NoBody // as servers have it
	}
	go func() {
		defer cancel()
		h.ports[port].ServeHTTP(a, received)
		a.WriteHeader(http.StatusOK)
		body.endWith(io.EOF)
		gone()
		dead()
	}()
	select {
	case <-a.begun:
		if h.running.Err() == nil {
			return &http.Response{
				StatusCode: a.code, Header: a.sent, Body: body, Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
			}, nil
		}
	case <-ctx.Done():
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return nil, &net.OpError{Op: "read", Net: "wire", Err: errors.New("it died meanwhile")}
}

// streamingResponse passes an answer on while it is written.
type streamingResponse struct {
	header, sent http.Header
	code         int
	body         *bodyStream
	begun        chan struct{}
	once         sync.Once
}

// Header is what the answer will begin with.
func (a *streamingResponse) Header() http.Header { return a.header }

// WriteHeader begins the answer.
func (a *streamingResponse) WriteHeader(code int) {
	a.once.Do(func() {
		a.code, a.sent = code, maps.Clone(a.header)
		close(a.begun)
	})
}

// Write passes a part of it on.
func (a *streamingResponse) Write(part []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.appendPart(part)
}

// Flush has nothing to do.
func (a *streamingResponse) Flush() { a.WriteHeader(http.StatusOK) }

// bodyStream is a body of any length: whoever writes never waits. A writer that waited with a lock in its hand would stop
// virtual time.
type bodyStream struct {
	mu    sync.Mutex
	bytes []byte
	ended error
	more  chan struct{}
}

// update alters the stream and tells its reader.
func (s *bodyStream) update(how func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how()
	close(s.more)
	s.more = make(chan struct{})
}

func (s *bodyStream) appendPart(part []byte) (n int, err error) {
	s.update(func() {
		if err = s.ended; err == nil {
			s.bytes, n = append(s.bytes, part...), len(part)
		}
	})
	return n, err
}

func (s *bodyStream) endWith(why error) {
	s.update(func() {
		if s.ended == nil {
			s.ended = why
		}
	})
}

// Read waits for more.
func (s *bodyStream) Read(into []byte) (int, error) {
	for {
		s.mu.Lock()
		n, ended, more := copy(into, s.bytes), s.ended, s.more
		s.bytes = s.bytes[n:]
		s.mu.Unlock()
		switch {
		case n > 0 || len(into) == 0:
			return n, nil
		case ended != nil:
			return 0, ended
		}
		<-more
	}
}

// Close takes no more.
func (s *bodyStream) Close() error {
	s.endWith(io.ErrClosedPipe)
	return nil
}
