package rpc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"connectrpc.com/connect"
	"github.com/prometheus/client_golang/prometheus"

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
	// decodedSize is how much memory the request takes when it is decoded, in bytes, by estimate.
	decodedSize int64
	// caller is who holds what the call takes; nil if the server does not tell callers apart. places are where it takes it.
	caller   *caller
	limiters *callLimiters
	slot     slot
	// received is when the request was there as a whole, prepared how long it took to decode and check it.
	received time.Time
	prepared time.Duration
	// servedFor are the notes of the call that a front end serves by making this one; nil for calls of callers.
	servedFor *callRecord
	// turn is that of an expensive read, decoding that of a large request.
	turn, decoding heldTurn
}

type callKey struct{}

// callOf finds the notes of a call; never nil.
func callOf(ctx context.Context) *callRecord {
	if c, ok := ctx.Value(callKey{}).(*callRecord); ok {
		return c
	}
	return &callRecord{}
}

// releaseSlot is for a call that begins to wait elsewhere. One of a front end has the place of the call that it is for.
func (c *callRecord) releaseSlot() {
	if c.servedFor != nil {
		c = c.servedFor
	}
	c.slot.releaseSlot()
}

// metrics count calls.
type metrics struct {
	calls    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	open     *prometheus.GaugeVec
	relayed  prometheus.Counter
	unsent   *prometheus.CounterVec
	// refusedHeaders counts requests of clients with headers that only nodes may set.
	refusedHeaders prometheus.Counter
}

// Why a relay failed: nothing was done, and it is tried again, or nobody knows.
const (
	notDone = "not_sent"
	unknown = "lost"
)

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quorate_rpc_calls_total", Help: "Calls by procedure and code.",
		}, []string{"procedure", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "quorate_rpc_duration_seconds", Help: "Time from the request's headers to the end of the answer.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15),
		}, []string{"procedure"}),
		relayed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "quorate_rpc_relayed_total", Help: "Calls that this node relayed to the leader.",
		}),
		open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "quorate_rpc_open", Help: "Calls and streams that go on now, by procedure.",
		}, []string{"procedure"}),
		unsent: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "quorate_rpc_relay_failures_total", Help: "Attempts to relay a call that failed: not_sent (nothing was done) or lost (nobody knows).",
		}, []string{"outcome"}),
	}
	m.refusedHeaders = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "quorate_rpc_refused_headers_total", Help: "Requests of clients that were refused because they carry a header that only nodes may set.",
	})
	for _, outcome := range []string{notDone, unknown} {
		m.unsent.WithLabelValues(outcome)
	}
	for _, c := range []prometheus.Collector{m.calls, m.duration, m.relayed, m.open, m.unsent, m.refusedHeaders} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("registering the metrics of the API: %w", err)
		}
	}
	return m, nil
}

// observeCalls names every call, counts it, and logs it: at debug, and those that failed for a reason of ours always.
func (s *Server) observeCalls(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, notes := time.Now(), s.newCallRecord(r)
		recorded := &recorder{ResponseWriter: w, status: http.StatusOK, begins: notes.turn.endTurn}
		defer notes.turn.endTurn()
		defer notes.decoding.endTurn()
		notes.requestID = assignRequestID(w, r)
		procedure := s.procedures.metricName(r.URL.Path)
		open := s.metrics.open.WithLabelValues(procedure)
		open.Inc()
		defer func() {
			took, code := time.Since(began), recorded.answerCode(notes)
			open.Dec()
			s.metrics.calls.WithLabelValues(procedure, code).Inc()
			s.metrics.duration.WithLabelValues(procedure).Observe(took.Seconds())
			about := notes.logFields(r, procedure, code, took)
			s.failures.logFailure(code, about...)
			s.log.Debug("call", append(about, "method", r.Method, "path", r.URL.Path, "protocol", r.Proto,
				"type", r.Header.Get("Content-Type"), "status", recorded.status, "bytes", recorded.bytes)...)
		}()
		next.ServeHTTP(recorded, r.WithContext(context.WithValue(r.Context(), callKey{}, notes)))
	})
}

// newCallRecord are the first notes of a call.
func (s *Server) newCallRecord(r *http.Request) *callRecord {
	notes := &callRecord{limiters: &s.limiters.clients}
	if s.relayedByMember(r) {
		notes.limiters = &s.limiters.members
	}
	if c := connectionOf(r.Context()); c != nil {
		notes.caller = c.caller
	}
	return notes
}

// relayedByMember tells whether another member relays the call. In plain text everyone may be a member.
func (s *Server) relayedByMember(r *http.Request) bool {
	if nodeCallOf(r.Context()).internal {
		return true
	}
	if r.Header.Get(relayedByHeader) == "" {
		return false
	}
	if s.peers.security.NodeOf == nil {
		return true
	}
	_, err := s.peers.security.NodeOf(r.TLS)
	return err == nil
}

// recoverPanics answers a panic as internal and goes on serving.
func (s *Server) recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			cause := recover()
			if cause == nil {
				return
			}
			if err, ok := cause.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(cause) // net/http's own way to cut a connection
			}
			s.failures.logPanic(cause, "path", r.URL.Path, "request_id", callOf(r.Context()).requestID)
			s.writeError(w, r, newProblem(connect.CodeInternal, "this is a bug of the server; its log has the details", &quoratev1.Problem{Reason: reasonInternal}))
		}()
		next.ServeHTTP(w, r)
	})
}

// writeError answers an error in the caller's protocol.
func (s *Server) writeError(w http.ResponseWriter, r *http.Request, err error) {
	callOf(r.Context()).code = connect.CodeOf(err).String()
	if failed := s.errors.Write(w, r, boundText(r.Context(), err)); failed != nil {
		s.log.Debug("an answer did not reach its caller", "path", r.URL.Path, "error", failed)
	}
}

// recorder remembers what was answered.
type recorder struct {
	http.ResponseWriter

	status int
	bytes  int64
	// begins is called before a part of the answer is sent.
	begins func()
}

// WriteHeader remembers the status.
func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.begins()
	r.ResponseWriter.WriteHeader(status)
}

// Write counts.
func (r *recorder) Write(p []byte) (int, error) {
	r.begins()
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
