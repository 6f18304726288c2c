package rpc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

// MaxBody is the largest request body in bytes, packed and unpacked.
const MaxBody = 4 << 20

// drained is how much of a body that is too large is read and thrown away, so that its sender gets to see the answer.
const drained = 16 << 20

// bodyPatience is how long a caller may take to send a body.
const bodyPatience = 30 * time.Second

// tooLarge is invalid_argument and not resource_exhausted, as elsewhere: here that word means quota.
func tooLarge(what string) *connect.Error {
	return problem(connect.CodeInvalidArgument,
		fmt.Sprintf("the %s is larger than %d bytes; split it into several calls", what, MaxBody),
		&quoratev1.Problem{Reason: quota.Invalid.String(), NotApplied: true})
}

// limitBody reads the body of a call with one request before anything else happens: too large a body is refused in the
// caller's protocol, and a relayed call can be sent again. Streams pass untouched; their messages are bounded one by one.
func (s *Server) limitBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.procedures.unary(r.URL.Path) {
			next.ServeHTTP(w, r)
			return
		}
		// A body of unknown length may become as large as any.
		size := min(r.ContentLength, MaxBody)
		if size < 0 {
			size = MaxBody
		}
		if err := s.gates.bodies.take(size); err != nil {
			s.fail(w, r, err)
			return
		}
		defer s.gates.bodies.inside.Add(-size)
		body, err := readBody(w, r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		r.ContentLength = int64(len(body))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	// Not every connection has deadlines (a recorded one in a test has none); the body is bounded anyway.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyPatience))
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	var body []byte
	var err error
	most := MaxBody
	if isGRPC(r) {
		most += envelope
	}
	if r.ContentLength <= int64(most) {
		body, err = io.ReadAll(io.LimitReader(r.Body, int64(most)+1))
	}
	switch {
	case r.ContentLength > int64(most), len(body) > most, isGRPC(r) && claimsTooMuch(body):
		// A caller that still sends does not listen, and would see nothing but a broken connection.
		_, _ = io.CopyN(io.Discard, r.Body, drained)
		return nil, tooLarge("request")
	case err != nil:
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("the request body could not be read: %w", err))
	}
	return body, nil
}

// envelope is the length of what gRPC puts before a message: a flag and the message's length.
const envelope = 5

func isGRPC(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc")
}

// claimsTooMuch tells whether a gRPC envelope announces more than may follow.
func claimsTooMuch(body []byte) bool {
	return len(body) >= envelope && binary.BigEndian.Uint32(body[1:envelope]) > MaxBody
}
