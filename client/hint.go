package client

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"connectrpc.com/connect"
	"github.com/cenkalti/backoff/v5"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
)

// longestHint is how long a server may tell a caller to stay away.
const longestHint = time.Minute

// RetryAfter is how long to wait before a call is repeated, as the server said that failed it because it has too much to do:
// in a detail of the error, or in the header Retry-After of whoever stands before it. It answers false if nobody said so.
// The client keeps to it by itself wherever it repeats calls.
func RetryAfter(err error) (time.Duration, bool) {
	if info, found := detailOf[*errdetails.RetryInfo](err); found {
		return clamp(info.GetRetryDelay().AsDuration()), true
	}
	var failure *connect.Error
	if !errors.As(err, &failure) {
		return 0, false
	}
	seconds, malformed := strconv.ParseUint(failure.Meta().Get("Retry-After"), 10, 31)
	if malformed != nil { // none, or a date, which no server of ours sends
		return 0, false
	}
	return clamp(time.Duration(seconds) * time.Second), true
}

func clamp(d time.Duration) time.Duration { return min(max(d, 0), longestHint) }

// hinted are pauses that are no shorter than what the last failure asked for.
type hinted struct {
	backoff.BackOff

	last error
}

// NextBackOff spreads what a server asked for upwards by half, so that those whom it sent away do not come back together.
func (h *hinted) NextBackOff() time.Duration {
	pause := h.BackOff.NextBackOff()
	if asked, found := RetryAfter(h.last); found && asked > 0 {
		return max(pause, asked+rand.N(asked/2+1)) //nolint:gosec // chance is enough
	}
	return pause
}
