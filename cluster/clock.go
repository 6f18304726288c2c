package cluster

import (
	"sync"
	"time"

	"github.com/quorate/quorate/quota"
)

// ledgerClock gives ledger time during one leadership: it goes on from where the ledger stood when the leadership began, by
// this machine's monotonic clock. What the wall clock does moves nothing, and the time without a leader does not count.
type ledgerClock struct {
	mu    sync.Mutex // protects the fields below
	base  quota.Instant
	start time.Time
}

func startClock(base quota.Instant) *ledgerClock { return &ledgerClock{base: base, start: time.Now()} }

// advanceTo moves the clock on to an instant that the ledger has come to without it.
func (c *ledgerClock) advanceTo(at quota.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.base+quota.Instant(now.Sub(c.start).Milliseconds()) < at {
		c.base, c.start = at, now
	}
}

// timeUntil is how long it takes until an entry would be stamped with an instant or a later one.
func (c *ledgerClock) timeUntil(at quota.Instant) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Until(c.start.Add(time.Duration(at-c.base) * time.Millisecond))
}

// nextStamp is the time of an entry made now. Wall is for people only.
func (c *ledgerClock) nextStamp() quota.Stamp {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	return quota.Stamp{At: c.base + quota.Instant(now.Sub(c.start).Milliseconds()), Wall: now.UnixMilli()}
}
