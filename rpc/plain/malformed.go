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

// CompleteErrors is a step that completes the errors of JSON requests: one of decoding gets the typed detail of all
// other errors, and the JSON of a detail has all fields, as answers have them, also those that are zero.
func CompleteErrors(x *pipeline.Exchange) bool {
	asQuery := x.Request.Method == http.MethodGet && x.Request.URL.Query().Get("encoding") == "json"
	if asQuery || strings.HasPrefix(x.Request.Header.Get(headerType), typeJSON) {
		w := &errorWriter{ResponseWriter: x.Writer}
		x.Writer = w
		x.AtEnd(w.finish)
	}
	return true
}

// errorWriter holds back errors, to complete them.
type errorWriter struct {
	http.ResponseWriter

	// held is the status of an error that is held back, or 0.
	held int
	body bytes.Buffer
}

// Unwrap is for http.ResponseController.
func (w *errorWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader holds an error back, unless its body is packed, which the library does not do.
func (w *errorWriter) WriteHeader(status int) {
	if status >= http.StatusBadRequest && w.Header().Get(headerType) == typeJSON && w.Header().Get(headerEncoding) == "" {
		w.held = status
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write keeps the body of an answer that is held back.
func (w *errorWriter) Write(data []byte) (int, error) {
	if w.held != 0 {
		return w.body.Write(data)
	}
	return w.ResponseWriter.Write(data)
}

// Flush sends what is not held back.
func (w *errorWriter) Flush() {
	if flusher, ok := w.ResponseWriter.(http.Flusher); ok && w.held == 0 {
		flusher.Flush()
	}
}

func (w *errorWriter) finish() {
	if w.held == 0 {
		return
	}
	var e answerError
	if json.Unmarshal(w.body.Bytes(), &e) == nil && (e.explain() || e.completeDetails()) {
		e.write(w.ResponseWriter, w.held)
		return
	}
	w.ResponseWriter.WriteHeader(w.held)
	_, _ = w.ResponseWriter.Write(w.body.Bytes()) // a caller that has gone needs no answer
}

// explain completes an error of decoding, and reports whether it is one.
func (e *answerError) explain() bool {
	text, isDecoding := strings.CutPrefix(e.Message, decodeError)
	if !isDecoding || len(e.Details) > 0 {
		return false
	}
	text = strings.ReplaceAll(text, "\u00a0", " ") // protobuf varies its blanks, to keep programs from comparing its texts
	text = strings.TrimPrefix(text, "proto: ")
	*e = invalidArgument(e.Code, "the body is not a request of this procedure: "+text, "")
	return true
}
