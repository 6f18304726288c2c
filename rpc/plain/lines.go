package plain

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/quorate/quorate/rpc/pipeline"
	"github.com/quorate/quorate/rpc/procedures"
)

const (
	// mostRequest bounds the request of a stream in bytes.
	mostRequest = 64 << 10
	// envelopeBytes is the length of what stands before each message of a stream: flags, and the length of the message.
	envelopeBytes = 5
	// endFlag marks the last envelope of a stream, which has its error.
	endFlag = 2
)

// StreamLines returns a step that serves a stream of answers to a caller that sends an ordinary JSON request. Each
// message is a line of JSON. An error before the first message is answered as that of any call, a later one is a last
// line {"error": ...}; a stream that ends without one has ended well.
func StreamLines(table procedures.Table) pipeline.Step {
	return func(x *pipeline.Exchange) bool {
		r := x.Request
		known := table[r.URL.Path]
		if !known.Streams || known.Uploads || r.Method != http.MethodPost ||
			!strings.HasPrefix(r.Header.Get(headerType), typeJSON) {
			return true
		}
		if r.ContentLength < 0 || r.ContentLength > mostRequest {
			status, text := http.StatusLengthRequired, "the request needs the header Content-Length"
			if r.ContentLength > mostRequest {
				status, text = http.StatusRequestEntityTooLarge, "the request of a stream has more than 65,536 bytes"
			}
			refuse(x, status, "invalid_argument", headerLength, text)
			return false
		}
		envelope := make([]byte, envelopeBytes)
		binary.BigEndian.PutUint32(envelope[1:], uint32(r.ContentLength))
		r.Body = &envelopedBody{io.MultiReader(bytes.NewReader(envelope), r.Body), r.Body}
		r.ContentLength += envelopeBytes
		r.Header.Set(headerType, typeConnect)
		r.Header.Set("Connect-Protocol-Version", "1")
		r.Header.Del("Connect-Accept-Encoding")
		r.Header.Del("Connect-Content-Encoding")
		w := &lineWriter{ResponseWriter: x.Writer}
		x.Writer = w
		x.AtEnd(w.finish)
		return true
	}
}

type envelopedBody struct {
	io.Reader
	io.Closer
}

type lineWriter struct {
	http.ResponseWriter

	// pending is the beginning of an envelope that is not complete.
	pending []byte
	// isOther is true if the answer is not a stream, and passes unchanged.
	isOther, hasBegun bool
}

// Unwrap is for http.ResponseController.
func (w *lineWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader waits for the first envelope, which may be an error with another status.
func (w *lineWriter) WriteHeader(status int) {
	if status != http.StatusOK || w.Header().Get(headerType) != typeConnect {
		w.isOther = true
		w.ResponseWriter.WriteHeader(status)
	}
}

// Write takes a part of the stream.
func (w *lineWriter) Write(data []byte) (int, error) {
	if w.isOther || w.Header().Get(headerType) != typeConnect && !w.hasBegun {
		return w.ResponseWriter.Write(data)
	}
	w.pending = append(w.pending, data...)
	for len(w.pending) >= envelopeBytes {
		length := int(binary.BigEndian.Uint32(w.pending[1:]))
		if len(w.pending)-envelopeBytes < length {
			break
		}
		flags, message := w.pending[0], w.pending[envelopeBytes:envelopeBytes+length]
		if err := w.writeMessage(flags, message); err != nil {
			return 0, err
		}
		w.pending = w.pending[envelopeBytes+length:]
	}
	return len(data), nil
}

func (w *lineWriter) writeMessage(flags byte, message []byte) error {
	if flags&endFlag == 0 {
		return w.writeLine(message)
	}
	var end struct {
		Error *answerError `json:"error"`
	}
	if err := json.Unmarshal(message, &end); err != nil {
		return err
	}
	switch {
	case end.Error == nil:
		w.begin()
		return nil
	case !w.hasBegun:
		w.hasBegun = true
		if !end.Error.explain() {
			end.Error.completeDetails()
		}
		end.Error.write(w.ResponseWriter, statusOf(end.Error.Code))
		return nil
	}
	end.Error.completeDetails()
	line, err := json.Marshal(end)
	if err != nil {
		return err
	}
	return w.writeLine(line)
}

func (w *lineWriter) begin() {
	if !w.hasBegun {
		w.hasBegun = true
		w.Header().Set(headerType, typeLines)
		w.ResponseWriter.WriteHeader(http.StatusOK)
	}
}

func (w *lineWriter) writeLine(message []byte) error {
	w.begin()
	if _, err := w.ResponseWriter.Write(append(bytes.Clone(message), '\n')); err != nil {
		return err
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Flush sends the lines that are complete.
func (w *lineWriter) Flush() {
	if flusher, ok := w.ResponseWriter.(http.Flusher); ok && (w.hasBegun || w.isOther) {
		flusher.Flush()
	}
}

// finish begins an answer to which nothing was written.
func (w *lineWriter) finish() {
	if !w.isOther {
		w.begin()
	}
}

func statusOf(code string) int {
	switch code {
	case "canceled":
		return 499
	case "invalid_argument", "failed_precondition", "out_of_range":
		return http.StatusBadRequest
	case "deadline_exceeded":
		return http.StatusGatewayTimeout
	case "not_found":
		return http.StatusNotFound
	case "already_exists", "aborted":
		return http.StatusConflict
	case "permission_denied":
		return http.StatusForbidden
	case "resource_exhausted":
		return http.StatusTooManyRequests
	case "unimplemented":
		return http.StatusNotImplemented
	case "unavailable":
		return http.StatusServiceUnavailable
	case "unauthenticated":
		return http.StatusUnauthorized
	}
	return http.StatusInternalServerError
}
