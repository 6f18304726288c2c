package cluster

import (
	"sync"
	"time"

	"github.com/quorate/quorate/quota"
)

// ledgerClock provides ledger time during one leadership: it starts at the ledger time at which the leadership began
// and advances with the monotonic clock of this machine. Changes of the wall clock do not affect it, and time without a
// leader does not count.
type ledgerClock struct {
	mu    sync.Mutex // protects the fields below
	base  quota.Instant
	start time.Time
}

func startClock(base quota.Instant) *ledgerClock { return &ledgerClock{base: base, start: time.Now()} }

// advanceTo is for an instant that the ledger has reached by other means than this clock, such as a restore.
func (c *ledgerClock) advanceTo(at quota.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.base+quota.Instant(now.Sub(c.start).Milliseconds()) < at {
		c.base, c.start = at, now
	}
}

func (c *ledgerClock) timeUntil(at quota.Instant) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Until(c.start.Add(time.Duration(at-c.base) * time.Millisecond))
}

// read returns ledger time and the instant of this machine's clock that it is read at.
func (c *ledgerClock) read() (quota.Instant, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	return c.base + quota.Instant(now.Sub(c.start).Milliseconds()), now
}

// nextStamp returns the stamp of an entry created now. Wall is only informational.
func (c *ledgerClock) nextStamp() quota.Stamp {
	at, now := c.read()
	return quota.Stamp{At: at, Wall: now.UnixMilli()}
}
