package cluster

import (
	"context"
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
// deleted. It sleeps until the next instant that the ledger reports; one entry is in flight at a time. As long as there
// is such an instant it also proposes one, a tick, when nothing was written for tickInterval: nothing ends by it, but
// the next leader continues from its stamp (docs/adr/0116).
func (l *leadership) runExpiry() {
	for l.ctx.Err() == nil {
		at, waits, changed := l.node.ledger.NextDue()
		wait := min(l.clock.timeUntil(at), l.untilTick())
		if waits && wait <= 0 {
			l.proposeExpiry()
			continue
		}
		l.awaitDue(wait, waits, changed)
	}
}

// awaitDue waits for a while, if there is anything to wait for, or until an earlier instant may exist.
func (l *leadership) awaitDue(wait time.Duration, waits bool, changed <-chan struct{}) {
	var due <-chan time.Time
	if waits {
		timer := time.NewTimer(wait)
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

func (l *leadership) writeExpiry(ctx context.Context) error {
	_, _, err := l.propose(WithSystemCaller(ctx), []quota.Command{quota.Expire{Most: expiryBatch}}, false)
	return err
}

func (l *leadership) proposeExpiry() {
	err := l.writeExpiry(l.ctx)
	if err == nil || l.ctx.Err() != nil {
		return
	}
	l.node.log.Warn("cannot propose the expiry, trying again", "error", err)
	sleepContext(l.ctx, expiryRetry)
}
