package cluster

import (
	"time"

	"github.com/quorate/quorate/quota"
)

const (
	// expiryBatch bounds what one entry ends or changes, so that requests behind it do not wait long.
	expiryBatch = 512
	// expiryRetry is the pause after an expiry entry that could not be written.
	expiryRetry = 100 * time.Millisecond
)

// runExpiry proposes an Expire entry whenever something is due in the ledger, for as long as the leadership lasts
// (docs/adr/0003): reservations and leases end, waiting requests leave the queue, items change their state or are
// deleted. It sleeps until the next instant that the ledger reports; one entry is in flight at a time.
func (l *leadership) runExpiry() {
	for l.ctx.Err() == nil {
		at, waits, changed := l.node.ledger.NextDue()
		if waits && l.clock.timeUntil(at) <= 0 {
			l.proposeExpiry()
			continue
		}
		l.awaitDue(at, waits, changed)
	}
}

// awaitDue waits until the given instant, if there is one, or until an earlier one may exist.
func (l *leadership) awaitDue(at quota.Instant, waits bool, changed <-chan struct{}) {
	var due <-chan time.Time
	if waits {
		timer := time.NewTimer(l.clock.timeUntil(at))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
	case <-changed:
	case <-l.clockMoved:
	case <-l.ctx.Done():
	}
}

func (l *leadership) proposeExpiry() {
	_, _, err := l.propose(WithSystemCaller(l.ctx), []quota.Command{quota.Expire{Most: expiryBatch}}, false)
	if err == nil || l.ctx.Err() != nil {
		return
	}
	l.node.log.Warn("cannot propose the expiry, trying again", "error", err)
	sleepContext(l.ctx, expiryRetry)
}
