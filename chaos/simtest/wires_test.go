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

// outside is where callers are.
const outside = "outside"

// silence is how long a caller takes to notice that nothing comes back over a wire that is cut.
const silence = 2 * time.Second

// home is where one node answers calls, until it dies.
type home struct {
	ports map[string]http.Handler
	alive context.Context //nolint:containedctx // it is the life of the home, not of a call
	die   context.CancelFunc
}

// wires carry calls between callers and nodes. A wire takes some time, loses what is on it when it is cut, and perhaps an
// answer now and then.
type wires struct {
	mu     sync.Mutex
	random *rand.Rand
	homes  map[string]*home
	cut    map[[2]string]bool
	loss   float64
	delay  time.Duration
}

func newWires(seed uint64) *wires {
	return &wires{
		random: rand.New(rand.NewPCG(seed, 1)), homes: map[string]*home{}, cut: map[[2]string]bool{}, delay: time.Millisecond,
	}
}

// change alters the wires.
func (w *wires) change(how func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	how()
}

// heal makes all wires whole and quick.
func (w *wires) heal() {
	w.change(func() { w.cut, w.loss, w.delay = map[[2]string]bool{}, 0, time.Millisecond })
}

func (w *wires) home(id string) *home {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.homes[id]
}

// passes tells whether something gets over a wire now; it may be lost on its own.
func (w *wires) passes(from, to string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.cut[[2]string{from, to}] && w.random.Float64() >= w.loss
}

func (w *wires) pause() {
	w.mu.Lock()
	d := w.delay
	w.mu.Unlock()
	time.Sleep(d)
}

// end is one end of the wires: the client of callers, and what servers reach each other by.
type end struct {
	*wires

	from string
}

// Do makes a call.
func (e end) Do(r *http.Request) (*http.Response, error) { return e.RoundTrip(r) }

// RoundTrip makes a call. To somebody who is dead it certainly fails; a call that is lost, or its answer, is only noticed
// after a while.
func (e end) RoundTrip(r *http.Request) (*http.Response, error) {
	id, port, _ := strings.Cut(r.URL.Host, ":")
	e.pause()
	h := e.home(id)
	if h == nil || h.alive.Err() != nil {
		return nil, &net.OpError{Op: "dial", Net: "wire", Err: errors.New(id + " is not there")}
	}
	if !e.passes(e.from, id) {
		return nil, lost(r.Context(), "the call")
	}
	answer, err := h.answer(r, port)
	if err != nil {
		return nil, err
	}
	e.pause()
	if !e.passes(id, e.from) {
		_ = answer.Body.Close() // nobody reads it
		return nil, lost(r.Context(), "the answer")
	}
	return answer, nil
}

// lost waits until somebody notices.
func lost(ctx context.Context, what string) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(silence):
		return &net.OpError{Op: "read", Net: "wire", Err: errors.New(what + " was lost")}
	}
}

// answer lets a node serve a call, until one of them goes away.
func (h *home) answer(r *http.Request, port string) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	body := &stream{more: make(chan struct{})}
	dead := context.AfterFunc(h.alive, cancel)
	gone := context.AfterFunc(ctx, func() { body.end(io.ErrUnexpectedEOF) })
	a := &answering{header: http.Header{}, body: body, begun: make(chan struct{})}
	received := r.Clone(ctx)
	if received.Body == nil {
		received.Body = http.NoBody // as servers have it
	}
	go func() {
		defer cancel()
		h.ports[port].ServeHTTP(a, received)
		a.WriteHeader(http.StatusOK)
		body.end(io.EOF)
		gone()
		dead()
	}()
	select {
	case <-a.begun:
		if h.alive.Err() == nil {
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

// answering passes an answer on while it is written.
type answering struct {
	header, sent http.Header
	code         int
	body         *stream
	begun        chan struct{}
	once         sync.Once
}

// Header is what the answer will begin with.
func (a *answering) Header() http.Header { return a.header }

// WriteHeader begins the answer.
func (a *answering) WriteHeader(code int) {
	a.once.Do(func() {
		a.code, a.sent = code, maps.Clone(a.header)
		close(a.begun)
	})
}

// Write passes a part of it on.
func (a *answering) Write(part []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.write(part)
}

// Flush has nothing to do.
func (a *answering) Flush() { a.WriteHeader(http.StatusOK) }

// stream is a body of any length: whoever writes never waits. A writer that waited with a lock in its hand would stop
// virtual time.
type stream struct {
	mu    sync.Mutex
	bytes []byte
	ended error
	more  chan struct{}
}

// change alters the stream and tells its reader.
func (s *stream) change(how func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how()
	close(s.more)
	s.more = make(chan struct{})
}

func (s *stream) write(part []byte) (n int, err error) {
	s.change(func() {
		if err = s.ended; err == nil {
			s.bytes, n = append(s.bytes, part...), len(part)
		}
	})
	return n, err
}

func (s *stream) end(why error) {
	s.change(func() {
		if s.ended == nil {
			s.ended = why
		}
	})
}

// Read waits for more.
func (s *stream) Read(into []byte) (int, error) {
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
func (s *stream) Close() error {
	s.end(io.ErrClosedPipe)
	return nil
}
