// Package inprocess carries HTTP calls to a handler of the same process, without a socket, so that code which lives
// beside a server can use the same generated clients as everyone else.
//
// [Transport] is the only type to know. It tells two kinds of exchange apart: a whole exchange (one request, one
// answer) is served on the caller's goroutine into a buffer; a stream is served on a goroutine of its own, and its
// answer is read while the handler writes it.
package inprocess

import (
	"bytes"
	"io"
	"net/http"
	"net/textproto"
	"strings"
)

// Transport serves requests with a handler. It is an [http.RoundTripper], and a client for generated Connect code.
type Transport struct {
	// Handler serves the requests. It sees them as HTTP/2, from the remote address "in-process", under the context of the
	// caller with all its values. It may keep neither the request nor the writer once it has returned.
	Handler http.Handler
	// Whole reports whether a request and its answer are one message each. The handler then runs on the goroutine of the
	// caller, where a panic reaches the caller as well. Nil stands for never.
	Whole func(*http.Request) bool
}

// RoundTrip returns when a whole exchange has ended, or the headers of a stream are there.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	served := serverRequest(r)
	if t.Whole != nil && t.Whole(served) {
		return t.serveWhole(r, served), nil
	}
	return t.serveStream(r, served)
}

// Do is RoundTrip. It saves a Connect client the redirects and cookies of an [http.Client].
func (t *Transport) Do(r *http.Request) (*http.Response, error) { return t.RoundTrip(r) }

// serverRequest is a request as its handler sees it. The handler may change the headers, the caller's must stay.
func serverRequest(r *http.Request) *http.Request {
	served := new(http.Request)
	*served = *r
	served.Header = r.Header.Clone()
	if served.Header == nil {
		served.Header = http.Header{}
	}
	if served.Body == nil {
		served.Body = http.NoBody
	}
	if served.Host == "" {
		served.Host = r.URL.Host
	}
	served.Proto, served.ProtoMajor, served.ProtoMinor = "HTTP/2.0", 2, 0
	served.RequestURI, served.RemoteAddr = r.URL.RequestURI(), "in-process"
	return served
}

func (t *Transport) serveWhole(r, served *http.Request) *http.Response {
	defer func() { _ = served.Body.Close() }() // as every RoundTripper does; nothing is left to read
	answer := &wholeAnswer{header: http.Header{}}
	t.Handler.ServeHTTP(answer, served)
	answer.WriteHeader(http.StatusOK)
	response := newResponse(r, answer.status, answer.sent)
	addTrailers(response.Trailer, answer.sent, answer.header)
	response.Body, response.ContentLength = io.NopCloser(&answer.body), int64(answer.body.Len())
	return response
}

type wholeAnswer struct {
	header http.Header
	// sent are the headers as they were when the status was written; nil before.
	sent   http.Header
	status int
	body   bytes.Buffer
}

// Header holds the headers, and in the end the trailers, of the answer.
func (a *wholeAnswer) Header() http.Header { return a.header }

// WriteHeader sends the headers; what is sent twice counts once.
func (a *wholeAnswer) WriteHeader(status int) {
	if a.sent == nil && status >= http.StatusOK {
		a.sent, a.status = a.header.Clone(), status
	}
}

// Write appends to the body.
func (a *wholeAnswer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// Flush does nothing: the caller sees the answer when it is complete.
func (a *wholeAnswer) Flush() {}

// newResponse takes the headers that were set when the handler began to answer.
func newResponse(to *http.Request, status int, header http.Header) *http.Response {
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: header, Trailer: http.Header{}, Request: to, ContentLength: -1,
	}
}

// addTrailers finds the trailers among the headers that a handler has set in the end: those that it declared at the
// beginning, and those that it marked with [http.TrailerPrefix].
func addTrailers(trailers, declared, final http.Header) {
	for _, names := range declared["Trailer"] {
		for name := range strings.SplitSeq(names, ",") {
			name = textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name))
			if values, set := final[name]; set {
				trailers[name] = values
			}
		}
	}
	for name, values := range final {
		if marked, found := strings.CutPrefix(name, http.TrailerPrefix); found {
			trailers[textproto.CanonicalMIMEHeaderKey(marked)] = values
		}
	}
}
