package cluster

import (
	"time"

	"github.com/quorate/quorate/quota"
)

// clock gives ledger time during one leadership: it goes on from where the ledger stood when the leadership began, by
// this machine's monotonic clock. What the wall clock does moves nothing, and the time without a leader does not count.
type clock struct {
	base  quota.Instant
	start time.Time
}

func startClock(base quota.Instant) clock { return clock{base: base, start: time.Now()} }

// until is how long it takes until an entry would be stamped with an instant or a later one.
func (c clock) until(at quota.Instant) time.Duration {
	return time.Until(c.start.Add(time.Duration(at-c.base) * time.Millisecond))
}

// stamp is the time of an entry made now. Wall is for people only.
func (c clock) stamp() quota.Stamp {
	now := time.Now()
	return quota.Stamp{At: c.base + quota.Instant(now.Sub(c.start).Milliseconds()), Wall: now.UnixMilli()}
}
