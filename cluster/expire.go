package cluster

import (
	"time"

	"github.com/quorate/quorate/quota"
)

const (
	// expiryBatch bounds what one entry ends or changes, so that nobody who is behind it waits for long.
	expiryBatch = 512
	// expiryRetry is the pause after an expiry that could not be written.
	expiryRetry = 100 * time.Millisecond
)

// expire carries out what is due for as long as the leadership lasts (docs/adr/0003): reservations and leases end, waiting
// requests leave the queue, items change their state or go. It sleeps until the next instant that the ledger names; one
// entry is under way at a time.
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
	case <-l.moved:
	case <-l.ctx.Done():
	}
}

func (l *life) expireOnce() {
	_, _, err := l.propose(l.ctx, []quota.Command{quota.Expire{Most: expiryBatch}}, false)
	if err == nil || l.ctx.Err() != nil {
		return
	}
	l.node.log.Warn("what is due could not be carried out, trying again", "error", err)
	after(l.ctx, expiryRetry)
}
