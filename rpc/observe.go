package rpc

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// callRecord is what the floors below note about one call for the log and the metrics.
type callRecord struct {
	// code is the answer's code: "ok" or a Connect code; empty if nobody decoded the request.
	code string
	// relayedTo is the id of the member that served it, if it was not this one.
	relayedTo string
	// requestID names the call in all logs; traceID is empty unless it is traced.
	requestID, traceID string
}

type callKey struct{}

// callOf finds the notes of a call; never nil.
func callOf(ctx context.Context) *callRecord {
	if c, ok := ctx.Value(callKey{}).(*callRecord); ok {
		return c
	}
	return &callRecord{}
}

// observer names, counts and logs calls, and answers their errors.
type observer struct {
	log        hclog.Logger
	metrics    *metrics
	failures   *failureLog
	errors     *connect.ErrorWriter
	procedures procedures
}

// observeCalls names every call, counts it, and logs it: at debug, and always if it failed because of the server.
func (o *observer) observeCalls(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, notes := time.Now(), &callRecord{}
		recorded := &recorder{ResponseWriter: w, status: http.StatusOK}
		notes.requestID = assignRequestID(w, r)
		procedure := o.procedures.metricName(r.URL.Path)
		open := o.metrics.open.WithLabelValues(procedure)
		open.Inc()
		defer func() {
			took, code := time.Since(began), recorded.answerCode(notes)
			open.Dec()
			o.metrics.calls.WithLabelValues(procedure, code).Inc()
			o.metrics.duration.WithLabelValues(procedure).Observe(took.Seconds())
			fields := notes.logFields(r, procedure, code, took)
			o.failures.logFailure(code, fields...)
			o.log.Debug("call", append(fields, "method", r.Method, "path", r.URL.Path, "protocol", r.Proto,
				"type", r.Header.Get("Content-Type"), "status", recorded.status, "bytes", recorded.bytes)...)
		}()
		next.ServeHTTP(recorded, r.WithContext(context.WithValue(r.Context(), callKey{}, notes)))
	})
}

// observeFrontEnd gives a call that a front end makes a record of its own, since its code is not that of the call which the
// front end serves. Both have the same request id and trace.
func observeFrontEnd(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		of := callOf(r.Context())
		if of.requestID != "" {
			r.Header.Set(requestIDHeader, of.requestID)
		}
		own := &callRecord{requestID: of.requestID, traceID: of.traceID}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callKey{}, own)))
	})
}

// recoverPanics answers a panic as internal and goes on serving.
func (o *observer) recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			cause := recover()
			if cause == nil {
				return
			}
			if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(cause) // net/http's own way to cut a connection
			}
			o.failures.logPanic(cause, "path", r.URL.Path, "request_id", callOf(r.Context()).requestID)
			o.writeError(w, r, newProblem(connect.CodeInternal, "this is a bug of the server; its log has the details",
				&quoratev1.Problem{Reason: reasonInternal}))
		}()
		next.ServeHTTP(w, r)
	})
}

// writeError answers an error in the caller's protocol.
func (o *observer) writeError(w http.ResponseWriter, r *http.Request, err error) {
	callOf(r.Context()).code = connect.CodeOf(err).String()
	if failed := o.errors.Write(w, r, boundText(r.Context(), err)); failed != nil {
		o.log.Debug("an answer did not reach its caller", "path", r.URL.Path, "error", failed)
	}
}

// recorder remembers what was answered.
type recorder struct {
	http.ResponseWriter

	status int
	bytes  int64
	// onAnswer, if set, is called before a part of the answer is sent.
	onAnswer func()
}

// OnAnswer has a function called before each part of the answer is sent.
func (r *recorder) OnAnswer(fn func()) { r.onAnswer = fn }

func (r *recorder) answering() {
	if r.onAnswer != nil {
		r.onAnswer()
	}
}

// WriteHeader remembers the status.
func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.answering()
	r.ResponseWriter.WriteHeader(status)
}

// Write counts.
func (r *recorder) Write(p []byte) (int, error) {
	r.answering()
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, err
}

// Flush sends what is there; streams need it.
func (r *recorder) Flush() {
	if flusher, ok := r.ResponseWriter.(http.Flusher); ok {
		flusher.Flush()
	}
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// answerCode is what was noted, or what the answer says if it failed before anybody could note anything.
func (r *recorder) answerCode(notes *callRecord) string {
	if notes.code != "" {
		return notes.code
	}
	for _, name := range []string{"Grpc-Status", http.TrailerPrefix + "Grpc-Status"} {
		if number, err := strconv.ParseUint(r.Header().Get(name), 10, 8); err == nil && number != 0 {
			return connect.Code(number).String()
		}
	}
	if r.status >= http.StatusBadRequest {
		return "http_" + strconv.Itoa(r.status)
	}
	return "ok"
}
