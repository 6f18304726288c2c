package client

import (
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v5"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
)

// longestHint is how long a server may tell a caller to stay away.
const longestHint = time.Minute

// RetryAfter is how long to wait before a call is repeated, as the server said that failed it because it has too much
// to do, at most a minute. It answers false if nobody said so. The client keeps to it by itself wherever it repeats
// calls.
func RetryAfter(err error) (time.Duration, bool) {
	info, found := detailOf[*errdetails.RetryInfo](err)
	return min(max(info.GetRetryDelay().AsDuration(), 0), longestHint), found
}

// hinted are pauses that are no shorter than what the last failure asked for.
type hinted struct {
	backoff.BackOff

	last error
}

// NextBackOff spreads what a server asked for upwards by half, so that those whom it sent away do not come back
// together.
func (h *hinted) NextBackOff() time.Duration {
	pause := h.BackOff.NextBackOff()
	if asked, found := RetryAfter(h.last); found && asked > 0 {
		return max(pause, asked+rand.N(asked/2+1))
	}
	return pause
}
