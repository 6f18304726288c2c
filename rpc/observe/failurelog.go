package observe

import (
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/rpc/wire"
)

// MaxFailureLines is how many failed calls are logged in a second; an overload must not fill the log as well.
const MaxFailureLines = 10

// FailureLog logs calls that failed because of the server, or would be refused if the cluster were guarded, at a
// limited rate. It reports the number of lines that it left out.
type FailureLog struct {
	Log hclog.Logger
	Now func() time.Time

	mu      sync.Mutex
	since   time.Time
	logged  int
	leftOut int
}

func isServerFault(code string) bool {
	return code != "ok" && slices.Contains(serverFaults, code)
}

var serverFaults = []string{
	connect.CodeInternal.String(), connect.CodeUnknown.String(), connect.CodeDataLoss.String(),
	connect.CodeUnavailable.String(), "http_502", "http_500",
}

// LogFailure logs a failed call, unless there were too many in this second.
func (f *FailureLog) LogFailure(code string, about ...any) {
	if !isServerFault(code) {
		return
	}
	leftOut, allowed := f.allowLine()
	if !allowed {
		return
	}
	if leftOut > 0 {
		about = append(about, "left_out", leftOut)
	}
	if code == connect.CodeUnavailable.String() {
		f.Log.Info("a call found no leader or no capacity", about...)
		return
	}
	f.Log.Warn("a call failed", about...)
}

// LogWouldRefuse logs what a guarded cluster would have refused, unless there were too many lines in this second. An
// empty place is the cluster.
func (f *FailureLog) LogWouldRefuse(call *Call, user, verb, place string) {
	leftOut, allowed := f.allowLine()
	if !allowed {
		return
	}
	if user == "" {
		user = "anonymous"
	}
	if place == "" {
		place = "the cluster"
	}
	about := []any{
		"user", user, "verb", verb, "node", place, "procedure", call.Procedure, "request_id", call.RequestID,
	}
	if leftOut > 0 {
		about = append(about, "left_out", leftOut)
	}
	f.Log.Info("a guarded cluster would refuse this call", about...)
}

// maxStack is how much of a stack trace is logged, in bytes.
const maxStack = 8 << 10

// logPanic logs the panic of a call, unless there were too many failures in this second: a caller that can cause a
// panic must not fill the disk of the log.
func (f *FailureLog) logPanic(cause any, about ...any) {
	leftOut, allowed := f.allowLine()
	if !allowed {
		return
	}
	if leftOut > 0 {
		about = append(about, "left_out", leftOut)
	}
	stack := debug.Stack()
	f.Log.Error("a call panicked", append(about, "panic", cause, "stack", string(stack[:min(len(stack), maxStack)]))...)
}

func (f *FailureLog) allowLine() (leftOut int, allowed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.Now(); now.Sub(f.since) >= time.Second {
		f.since, f.logged = now, 0
	}
	if f.logged == MaxFailureLines {
		f.leftOut++
		return 0, false
	}
	f.logged++
	leftOut, f.leftOut = f.leftOut, 0
	return leftOut, true
}

func (c *Call) logFields(r *http.Request, procedure, code string, took time.Duration) []any {
	about := []any{"procedure", procedure, "code", code, "took", took, "from", r.RemoteAddr, "request_id", c.RequestID}
	if c.traceID != "" {
		about = append(about, "trace_id", c.traceID)
	}
	if c.RelayedTo != "" {
		about = append(about, "relayed_to", c.RelayedTo)
	}
	if relay := r.Header.Get(wire.RelayedByHeader); relay != "" {
		about = append(about, "relayed_by", relay)
	}
	return about
}
