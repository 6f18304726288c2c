package admission

import (
	"net/http"
	"strconv"
	"time"

	"github.com/quorate/quorate/rpc/pipeline"
)

const (
	// DefaultDeadline is for callers that name none.
	DefaultDeadline = 15 * time.Second
	// LongestDeadline is for callers that name a longer one.
	LongestDeadline = time.Minute
	// AnswerMargin is kept from the caller's deadline at most, so that the reason still reaches the caller.
	AnswerMargin = 300 * time.Millisecond
)

// LimitTime gives every call with one request a deadline shortly before the caller's own.
func (a *Controller) LimitTime(x *pipeline.Exchange) bool {
	if !a.procedures.IsUnary(x.Request.URL.Path) {
		return true
	}
	timeout := DefaultDeadline
	if asked, named := callerTimeout(x.Request.Header); named {
		timeout = min(asked-min(asked/5, AnswerMargin), LongestDeadline)
	}
	x.LimitTime(timeout)
	return true
}

// TakeTimeout removes Connect's timeout from a call that LimitTime has given an earlier deadline, before the handler of
// the protocol makes another context and timer of it. What cannot be read stays for that handler to refuse.
func (a *Controller) TakeTimeout(r *http.Request) {
	const longest = 10 // digits; the protocol refuses more
	if _, named := connectTimeout(r.Header); named && len(r.Header.Get(timeoutHeader)) <= longest &&
		a.procedures.IsUnary(r.URL.Path) {
		r.Header.Del(timeoutHeader)
	}
}

// callerTimeout reads the timeout of either protocol. A malformed one is left to the protocol's own handler to refuse.
func callerTimeout(h http.Header) (time.Duration, bool) {
	if timeout, named := connectTimeout(h); named {
		return timeout, true
	}
	return grpcTimeout(h.Get("Grpc-Timeout"))
}

const timeoutHeader = "Connect-Timeout-Ms"

func connectTimeout(h http.Header) (time.Duration, bool) {
	text := h.Get(timeoutHeader)
	if text == "" {
		return 0, false
	}
	ms, err := strconv.ParseInt(text, 10, 40)
	return time.Duration(ms) * time.Millisecond, err == nil && ms >= 0
}

// grpcUnits are the units that may follow the digits of a gRPC timeout.
var grpcUnits = map[byte]time.Duration{
	'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond, 'u': time.Microsecond,
	'n': time.Nanosecond,
}

func grpcTimeout(text string) (time.Duration, bool) {
	if len(text) < 2 || len(text) > 9 {
		return 0, false
	}
	unit, known := grpcUnits[text[len(text)-1]]
	count, err := strconv.ParseUint(text[:len(text)-1], 10, 32)
	if !known || err != nil {
		return 0, false
	}
	// Beyond the longest deadline the exact value does not matter, and hours would overflow.
	return unit * time.Duration(min(count, uint64(time.Hour/unit))), true
}
