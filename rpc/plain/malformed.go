package plain

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/quorate/quorate/rpc/pipeline"
)

// decodeError begins the texts of errors with which the library for Connect answers a message that it cannot decode. It
// decodes before any interceptor sees the call, so that only the answer shows it.
const decodeError = "unmarshal message: "

// ExplainMalformed is a step that gives an error of decoding a JSON request the typed detail of all other errors.
func ExplainMalformed(x *pipeline.Exchange) bool {
	if strings.HasPrefix(x.Request.Header.Get(headerType), typeJSON) {
		w := &malformedWriter{ResponseWriter: x.Writer}
		x.Writer = w
		x.AtEnd(w.finish)
	}
	return true
}

// malformedWriter holds back answers with status 400, to complete them.
type malformedWriter struct {
	http.ResponseWriter

	isHeld bool
	body   bytes.Buffer
}

// Unwrap is for http.ResponseController.
func (w *malformedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader holds an error of the request back. Its body may be packed, and is not complete then for us.
func (w *malformedWriter) WriteHeader(status int) {
	if status == http.StatusBadRequest && w.Header().Get(headerEncoding) == "" {
		w.isHeld = true
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write keeps the body of an answer that is held back.
func (w *malformedWriter) Write(data []byte) (int, error) {
	if w.isHeld {
		return w.body.Write(data)
	}
	return w.ResponseWriter.Write(data)
}

// Flush sends what is not held back.
func (w *malformedWriter) Flush() {
	if flusher, is := w.ResponseWriter.(http.Flusher); is && !w.isHeld {
		flusher.Flush()
	}
}

func (w *malformedWriter) finish() {
	if !w.isHeld {
		return
	}
	var e answerError
	if json.Unmarshal(w.body.Bytes(), &e) == nil && e.explain() {
		e.write(w.ResponseWriter, http.StatusBadRequest)
		return
	}
	w.ResponseWriter.WriteHeader(http.StatusBadRequest)
	_, _ = w.ResponseWriter.Write(w.body.Bytes()) // a caller that has gone needs no answer
}

// explain completes an error of decoding, and reports whether it is one.
func (e *answerError) explain() bool {
	text, isDecoding := strings.CutPrefix(e.Message, decodeError)
	if !isDecoding || len(e.Details) > 0 {
		return false
	}
	text = strings.ReplaceAll(text, "\u00a0", " ") // protobuf varies its blanks, so that nobody compares its texts
	text = strings.TrimPrefix(text, "proto: ")
	*e = invalidArgument(e.Code, "the body is not a request of this procedure: "+text, "")
	return true
}
