package cluster

import (
	"time"

	"github.com/quorate/quorate/quota"
)

const (
	// expiryBatch bounds what one entry ends, so that nobody who is behind it waits for long.
	expiryBatch = 512
	// expiryRetry is the pause after an expiry that could not be written.
	expiryRetry = 100 * time.Millisecond
)

// expire ends reservations when their time is over, for as long as the leadership lasts (docs/adr/0003). It sleeps until
// the next instant that the ledger names; one entry is under way at a time.
func (l *life) expire() {
	for l.ctx.Err() == nil {
		at, waits, changed := l.node.ledger.NextDue()
		if waits && l.clock.until(at) <= 0 {
			l.expireOnce()
			continue
		}
		l.sleep(at, waits, changed)
	}
}

// sleep waits until an instant, if there is one, or until there may be an earlier one.
func (l *life) sleep(at quota.Instant, waits bool, changed <-chan struct{}) {
	var due <-chan time.Time
	if waits {
		timer := time.NewTimer(l.clock.until(at))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
	case <-changed:
	case <-l.ctx.Done():
	}
}

func (l *life) expireOnce() {
	_, _, err := l.propose(l.ctx, []quota.Command{quota.Expire{Most: expiryBatch}})
	if err == nil || l.ctx.Err() != nil {
		return
	}
	l.node.log.Warn("reservations that are due could not be ended, trying again", "error", err)
	after(l.ctx, expiryRetry)
}
