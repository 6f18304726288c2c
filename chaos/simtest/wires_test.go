package simtest

import (
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"
)

// callerSide is the name of the clients' end of a wire.
const callerSide = "outside"

// lossTimeout is how long a client takes to notice that a wire is cut.
const lossTimeout = 2 * time.Second

type nodeEndpoint struct {
	ports   map[string]http.Handler
	running context.Context //nolint:containedctx // it ends with the node, not with a call
	stop    context.CancelFunc
}

// simWires carry calls between clients and nodes. A wire has a delay, loses calls under way when it is cut, and may
// lose single calls and answers.
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
		random: rand.New(rand.NewPCG(seed, 1)), endpoints: map[string]*nodeEndpoint{}, cut: map[[2]string]bool{},
		delay: time.Millisecond,
	}
}

func (w *simWires) update(how func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	how()
}

func (w *simWires) healAll() {
	w.update(func() { w.cut, w.loss, w.delay = map[[2]string]bool{}, 0, time.Millisecond })
}

func (w *simWires) endpointOf(id string) *nodeEndpoint {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.endpoints[id]
}

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

// wireTransport is one end of the wires: the HTTP client of clients, and of nodes that call each other.
type wireTransport struct {
	*simWires

	from string
}

// Do makes a call.
func (e wireTransport) Do(r *http.Request) (*http.Response, error) { return e.RoundTrip(r) }

// RoundTrip makes a call. A call to a stopped node fails at once; a lost call or answer is noticed after lossTimeout.
func (e wireTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	id, port, _ := strings.Cut(r.URL.Host, ":")
	e.waitDelay()
	h := e.endpointOf(id)
	if h == nil || h.running.Err() != nil {
		return nil, &net.OpError{Op: "dial", Net: "wire", Err: errors.New(id + " is not there")}
	}
	// As with real connections: a node that relays a call takes one without a connection for one that was not sent.
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
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
		_ = answer.Body.Close() // it is lost
		return nil, awaitTimeout(r.Context(), "the answer")
	}
	return answer, nil
}

func awaitTimeout(ctx context.Context, what string) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(lossTimeout):
		return &net.OpError{Op: "read", Net: "wire", Err: errors.New(what + " was lost")}
	}
}

func (h *nodeEndpoint) serveCall(r *http.Request, port string) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	body := &bodyStream{more: make(chan struct{})}
	dead := context.AfterFunc(h.running, cancel)
	gone := context.AfterFunc(ctx, func() { body.endWith(io.ErrUnexpectedEOF) })
	a := &streamingResponse{header: http.Header{}, body: body, begun: make(chan struct{})}
	received := r.Clone(ctx)
	if received.Body == nil {
		received.Body = http.NoBody // servers never see a nil body
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
				StatusCode: a.code, Header: a.sent, Body: body, Request: r, Proto: "HTTP/1.1", ProtoMajor: 1,
				ProtoMinor: 1, ContentLength: -1,
			}, nil
		}
	case <-ctx.Done():
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return nil, &net.OpError{Op: "read", Net: "wire", Err: errors.New("the node stopped")}
}

// streamingResponse is a response that the client reads while the server writes it.
type streamingResponse struct {
	header, sent http.Header
	code         int
	body         *bodyStream
	begun        chan struct{}
	once         sync.Once
}

// Header returns the header of the response.
func (a *streamingResponse) Header() http.Header { return a.header }

// WriteHeader begins the response.
func (a *streamingResponse) WriteHeader(code int) {
	a.once.Do(func() {
		a.code, a.sent = code, maps.Clone(a.header)
		close(a.begun)
	})
}

// Write adds to the body.
func (a *streamingResponse) Write(part []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.appendPart(part)
}

// Flush begins the response; there is no buffer to flush.
func (a *streamingResponse) Flush() { a.WriteHeader(http.StatusOK) }

// bodyStream is an unbounded buffer, so that writers never wait. A writer that waited while it held a lock would stop
// virtual time.
type bodyStream struct {
	mu    sync.Mutex
	bytes []byte
	ended error
	more  chan struct{}
}

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

// Read waits for data.
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

// Close refuses further data.
func (s *bodyStream) Close() error {
	s.endWith(io.ErrClosedPipe)
	return nil
}
