package inprocess

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
)

// streamBuffer is how many bytes of an answer may wait for the caller before the handler has to. It stands for the
// buffers of a socket: a handler may answer early, with an error, while its caller still sends and does not read.
const streamBuffer = 64 << 10

// errAnswerClosed is what the handler gets when the caller has closed the body of the answer.
var errAnswerClosed = errors.New("the caller has closed the answer")

// serveStream returns when the handler has begun to answer. The handler's context ends when the caller's does, when the
// caller closes the body of the answer, and when the handler returns.
func (t *Transport) serveStream(r, served *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	served = served.WithContext(ctx)
	answer := &streamAnswer{header: http.Header{}, begun: make(chan struct{}), body: newPipe(cancel)}
	// A handler that waits for the next part of the request does not look at its context.
	stop := context.AfterFunc(ctx, func() { _ = served.Body.Close() })
	go func() {
		defer cancel()
		defer stop()
		defer func() {
			cause := recover()
			_ = served.Body.Close() // a caller that still sends must not wait for a reader
			answer.endAnswer(cause)
		}()
		t.Handler.ServeHTTP(answer, served)
	}()
	select {
	case <-answer.begun:
	case <-ctx.Done():
		// Perhaps the handler has answered and returned at this moment.
		select {
		case <-answer.begun:
		default:
			return nil, ctx.Err()
		}
	}
	response := newResponse(r, answer.status, answer.sent)
	response.Body = answer.body
	answer.body.trailer = response.Trailer
	return response, nil
}

type streamAnswer struct {
	header http.Header
	// begun is closed when the status is written; then status and sent do not change any more.
	begun  chan struct{}
	sent   http.Header
	status int
	body   *pipe
}

// Header holds the headers, and in the end the trailers, of the answer.
func (a *streamAnswer) Header() http.Header { return a.header }

// WriteHeader sends the headers; what is sent twice counts once.
func (a *streamAnswer) WriteHeader(status int) {
	if a.sent == nil && status >= http.StatusOK {
		a.sent, a.status = a.header.Clone(), status
		close(a.begun)
	}
}

// Write waits while too much of the body is unread.
func (a *streamAnswer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// Flush sends the headers; the body is never kept back.
func (a *streamAnswer) Flush() { a.WriteHeader(http.StatusOK) }

// endAnswer is for the return of the handler, or for its panic if there is a cause.
func (a *streamAnswer) endAnswer(cause any) {
	a.WriteHeader(http.StatusOK)
	if cause != nil {
		a.body.endWriting(nil, fmt.Errorf("the handler broke off the answer: %v", cause))
		return
	}
	trailer := http.Header{}
	addTrailers(trailer, a.sent, a.header)
	a.body.endWriting(trailer, io.EOF)
}

// pipe is a bounded buffer between a handler and its caller.
type pipe struct {
	// onClose is called when the reader closes.
	onClose func()
	// trailer belongs to the reader, who may look at it at any time: it is filled when the reader reads the end.
	trailer http.Header

	mu      sync.Mutex
	changed sync.Cond
	buffer  bytes.Buffer
	// ended is what the reader gets after the last byte, and trailers what it finds then; closed is true when it
	// wants no more.
	ended    error
	trailers http.Header
	closed   bool
}

func newPipe(onClose func()) *pipe {
	p := &pipe{onClose: onClose}
	p.changed.L = &p.mu
	return p
}

// Write blocks until there is space in the buffer or the reader closes.
func (p *pipe) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.buffer.Len() >= streamBuffer && !p.closed {
		p.changed.Wait()
	}
	if p.closed {
		return 0, errAnswerClosed
	}
	p.changed.Broadcast()
	return p.buffer.Write(data)
}

func (p *pipe) endWriting(trailers http.Header, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended, p.trailers = err, trailers
	p.changed.Broadcast()
}

// Read waits for the writer.
func (p *pipe) Read(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.buffer.Len() == 0 && p.ended == nil && !p.closed {
		p.changed.Wait()
	}
	switch {
	case p.closed:
		return 0, http.ErrBodyReadAfterClose
	case p.buffer.Len() == 0:
		maps.Copy(p.trailer, p.trailers)
		return 0, p.ended
	}
	p.changed.Broadcast()
	return p.buffer.Read(data)
}

// Close ends the call: a writer that waits or writes later gets an error.
func (p *pipe) Close() error {
	p.mu.Lock()
	p.closed = true
	p.changed.Broadcast()
	p.mu.Unlock()
	p.onClose()
	return nil
}
