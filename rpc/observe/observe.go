// Package observe names calls, counts and logs them, traces them, and answers their errors.
//
// [Observer.ObserveCall] gives each call a record, which later stages complete ([CallOf]): its request id, its code,
// the member that it was relayed to. Failures that are the server's own are always logged, but only so many a second
// (failurelog.go).
package observe

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/rpc/pipeline"
	"github.com/quorate/quorate/rpc/procedures"
	"github.com/quorate/quorate/rpc/wire"
)

// Call is what log and metrics say about one call. Later stages complete it.
type Call struct {
	// Code is the answer's code: "ok" or a Connect code; empty if the request was not decoded.
	Code string
	// RelayedTo is the id of the member that served it, if it was not this one.
	RelayedTo string
	// ReadsData is true if the answer has user data that is not the caller's own.
	ReadsData bool
	// Procedure is the name of the method in metrics and logs.
	Procedure string
	// RequestID names the call in all logs; traceID is empty unless it is traced.
	RequestID, traceID string
}

type callKey struct{}

// CallOf finds the notes of a call; never nil.
func CallOf(ctx context.Context) *Call {
	if c, ok := ctx.Value(callKey{}).(*Call); ok {
		return c
	}
	return &Call{}
}

// Observer assigns request ids, counts and logs calls, and writes their errors.
type Observer struct {
	Log      hclog.Logger
	Metrics  *Metrics
	Failures *FailureLog
	// Refusals are the lines on what a guarded cluster would refuse. They have a bound of their own, so that neither these
	// nor those of failed calls push the others out.
	Refusals *FailureLog
	Errors   *connect.ErrorWriter
	Table    procedures.Table
	// AfterCall, if not nil, is called when a call of a caller has ended, with its code: "ok", a Connect code, or
	// http_STATUS.
	AfterCall func(r *http.Request, call *Call, code string)
}

// ObserveCall names a call, counts it, and logs it: at debug, and always if it failed because of the server.
func (o *Observer) ObserveCall(x *pipeline.Exchange) bool {
	w, r := x.Writer, x.Request
	began, notes := time.Now(), &Call{RequestID: assignRequestID(w, r)}
	recorded := &recorder{ResponseWriter: w, status: http.StatusOK}
	procedure := o.Table.MetricName(r.URL.Path)
	notes.Procedure = procedure
	counts := o.Metrics.ofProcedure(procedure)
	counts.open.Inc()
	x.AtEnd(func() {
		took, code := time.Since(began), recorded.answerCode(notes)
		counts.open.Dec()
		counts.duration.Observe(took.Seconds())
		counts.countAnswer(code)
		o.logCall(r, recorded, notes, procedure, code, took)
		if o.AfterCall != nil {
			o.AfterCall(r, notes, code)
		}
	})
	x.Writer = recorded
	x.Attach(callKey{}, notes)
	return true
}

// logCall logs a call. Its fields are collected only for a line that is written: few calls have one.
func (o *Observer) logCall(
	r *http.Request, answer *recorder, notes *Call, procedure, code string, took time.Duration,
) {
	if isServerFault(code) {
		o.Failures.LogFailure(code, notes.logFields(r, procedure, code, took)...)
	}
	if o.Log.IsDebug() {
		o.Log.Debug("call", append(notes.logFields(r, procedure, code, took), "method", r.Method, "path", r.URL.Path,
			"protocol", r.Proto, "type", r.Header.Get("Content-Type"), "status", answer.status, "bytes", answer.bytes)...)
	}
}

// ShareRecord gives a call that a front end makes a record of its own, since its code is not that of the call which the
// front end serves. Both have the same request id and trace.
func ShareRecord(x *pipeline.Exchange) bool {
	served := CallOf(x.Request.Context())
	if served.RequestID != "" {
		x.Request.Header.Set(RequestIDHeader, served.RequestID)
	}
	x.Attach(callKey{}, &Call{Procedure: x.Request.URL.Path, RequestID: served.RequestID, traceID: served.traceID})
	return true
}

// AnswerPanic turns a panic into an internal error, so that the server continues.
func (o *Observer) AnswerPanic(x *pipeline.Exchange, cause any) {
	ctx := x.Request.Context()
	o.Failures.logPanic(cause, "path", x.Request.URL.Path, "request_id", CallOf(ctx).RequestID)
	o.WriteError(x.Writer, x.Request, wire.NewProblem(connect.CodeInternal,
		"this is a bug of the server; its log has the details", &quoratev1.Problem{Reason: wire.ReasonInternal}))
}

// WriteError writes an error in the caller's protocol.
func (o *Observer) WriteError(w http.ResponseWriter, r *http.Request, err error) {
	CallOf(r.Context()).Code = connect.CodeOf(err).String()
	encoding := r.Header.Get("Content-Type")
	overGRPC := strings.HasPrefix(encoding, "application/grpc") && !strings.HasPrefix(encoding, "application/grpc-web")
	if failed := o.Errors.Write(w, r, wire.FitError(err, overGRPC)); failed != nil {
		o.Log.Debug("an answer did not reach its caller", "path", r.URL.Path, "error", failed)
	}
}

type recorder struct {
	http.ResponseWriter

	status int
	bytes  int64
	// onAnswer, if set, is called before a part of the answer is sent.
	onAnswer func()
}

// OnAnswer has a function called before each part of the answer is sent.
func (r *recorder) OnAnswer(fn func()) { r.onAnswer = fn }

func (r *recorder) beginAnswer() {
	if r.onAnswer != nil {
		r.onAnswer()
	}
}

// WriteHeader remembers the status.
func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.beginAnswer()
	r.ResponseWriter.WriteHeader(status)
}

// Write counts.
func (r *recorder) Write(p []byte) (int, error) {
	r.beginAnswer()
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

// answerCode is the code that was noted, or that of the answer if the call failed before a code could be noted.
func (r *recorder) answerCode(notes *Call) string {
	if notes.Code != "" {
		return notes.Code
	}
	for _, name := range []string{"Grpc-Status", http.TrailerPrefix + "Grpc-Status"} {
		if r.Header().Get(name) == "" {
			continue
		}
		if number, err := strconv.ParseUint(r.Header().Get(name), 10, 8); err == nil && number != 0 {
			return connect.Code(number).String()
		}
	}
	if r.status >= http.StatusBadRequest {
		return "http_" + strconv.Itoa(r.status)
	}
	return CodeOK
}

// RequestIDHeader is the header with the id of a call, which is in the logs of all nodes that it passes. A caller may
// choose it; the answer repeats it.
const RequestIDHeader = "X-Request-Id"

// RequestIDPattern describes the ids that are taken from callers: short, and nothing that could break a line of a log.
var RequestIDPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/+=@-]{0,127}$`)
})

func assignRequestID(w http.ResponseWriter, r *http.Request) string {
	id := r.Header.Get(RequestIDHeader)
	if id == "" || !RequestIDPattern().MatchString(id) {
		id = uuid.NewString()
	}
	r.Header.Set(RequestIDHeader, id)
	w.Header().Set(RequestIDHeader, id)
	return id
}
