package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/rpc/wire"
)

// MaxBody is the largest request body in bytes, packed and unpacked.
const MaxBody = 4 << 20

// tooLargeError is invalid_argument and not resource_exhausted, as elsewhere: here that word means quota.
func tooLargeError(what string) *connect.Error { return LargerThanError(what, MaxBody) }

// LargerThanError refuses a request, or a part of it, with more bytes than allowed.
func LargerThanError(what string, most int) *connect.Error {
	return wire.NewProblem(connect.CodeInvalidArgument,
		fmt.Sprintf("the %s is larger than %d bytes; split it into several calls", what, most),
		&quoratev1.Problem{Reason: quota.Invalid.String(), NotApplied: true})
}

// Envelope is the length of what gRPC puts before a message, and Connect in streams: a flag and the message's length.
const Envelope = 5

// IsEnveloped reports whether a body is an envelope with a message in it.
func IsEnveloped(r *http.Request) bool {
	kind := r.Header.Get("Content-Type")
	return strings.HasPrefix(kind, "application/grpc") || strings.HasPrefix(kind, "application/connect+")
}

// ReceivedBody is the body of a request that was received completely. [BytesOf] gives its content without a copy.
type ReceivedBody struct {
	bytes.Reader

	content []byte
}

// NewReceivedBody makes a body to read from its beginning. Nothing may change the content while it is in use.
func NewReceivedBody(content []byte) *ReceivedBody {
	b := &ReceivedBody{content: content}
	b.Reset(content)
	return b
}

// Close does nothing.
func (b *ReceivedBody) Close() error { return nil }

// SetBody makes content that was received the body of a request.
func SetBody(r *http.Request, content []byte) {
	r.ContentLength = int64(len(content))
	r.GetBody = func() (io.ReadCloser, error) { return NewReceivedBody(content), nil }
	r.Body = NewReceivedBody(content)
}

// BytesOf returns the whole body of a request that was received, however much of it was read; nil if it was not.
func BytesOf(r *http.Request) []byte {
	if body, ok := r.Body.(*ReceivedBody); ok {
		return body.content
	}
	return nil
}

// AnnouncesTooMuch reports whether an envelope announces more than may follow.
func AnnouncesTooMuch(body []byte) bool {
	return len(body) >= Envelope && binary.BigEndian.Uint32(body[1:Envelope]) > MaxBody
}
