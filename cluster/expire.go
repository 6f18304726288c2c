package cluster

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/fsm"
	"github.com/quorate/quorate/quota"
)

const (
	// tickInterval is how long a leader writes nothing while something is timed. A leader that crashes loses what its
	// clock has measured since the last entry: everything that ends by itself ends later by that.
	tickInterval = time.Second
	// lastTickTimeout bounds the last tick of a leadership. A leader whose disk hangs hands over without one.
	lastTickTimeout = 500 * time.Millisecond
	// expiryBatch bounds what one entry ends or changes, so that requests behind it do not wait long.
	expiryBatch = 512
	// expiryRetry is the pause after an expiry entry that could not be written.
	expiryRetry = 100 * time.Millisecond
)

// expiry writes what is due, and ledger time, during one leadership.
type expiry struct {
	timeouts timeoutScale
	log      hclog.Logger
	ctx      context.Context //nolint:containedctx // that of the leadership
	service  *service
	ledger   *fsm.FSM
	clock    *ledgerClock
	// clockMoved receives a value when the clock was moved forward.
	clockMoved chan struct{}
	commit     *groupCommit
}

// run proposes an Expire entry whenever something is due in the ledger, for as long as the leadership lasts
// (docs/adr/0003): reservations and leases end, waiting requests leave the queue, items change their state or are
// deleted. It sleeps until the next instant that the ledger reports; one entry is in flight at a time. As long as there
// is such an instant it also proposes one, a tick, when nothing was written for tickInterval: nothing ends by it, but
// the next leader continues from its stamp (docs/adr/0116).
func (e *expiry) run() {
	for e.ctx.Err() == nil {
		at, waits, changed := e.ledger.NextDue()
		wait := min(e.clock.timeUntil(at), e.untilTick())
		if waits && wait <= 0 {
			e.propose()
			continue
		}
		e.awaitDue(wait, waits, changed)
	}
}

// awaitDue also returns when an earlier instant may exist.
func (e *expiry) awaitDue(wait time.Duration, waits bool, changed <-chan struct{}) {
	var due <-chan time.Time
	if waits {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-due:
	case <-changed:
	case <-e.clockMoved:
	case <-e.ctx.Done():
	}
}

func (e *expiry) write(ctx context.Context) error {
	_, _, err := e.commit.propose(WithSystemCaller(ctx), []quota.Command{quota.Expire{Most: expiryBatch}}, false)
	return err
}

func (e *expiry) propose() {
	err := e.write(e.ctx)
	if err == nil || e.ctx.Err() != nil {
		return
	}
	e.log.Warn("cannot propose the expiry, trying again", "error", err)
	sleepContext(e.ctx, expiryRetry)
}

// unrecordedTime is by the clock of the leadership.
func (e *expiry) unrecordedTime() time.Duration {
	at, _ := e.clock.read()
	return max(0, spanDuration(quota.Span(at-e.ledger.Now())))
}

// untilTick is how long the leader may still be silent while something is timed.
func (e *expiry) untilTick() time.Duration {
	return e.timeouts.scale(tickInterval) - e.unrecordedTime()
}

// writeLastTick writes ledger time before this node hands the leadership over, so that the next leader continues from
// there. It works without: the next leader then continues from the last entry.
func (e *expiry) writeLastTick(ctx context.Context) {
	if e.ctx.Err() != nil || e.service.fault() != nil {
		return
	}
	if _, timed, _ := e.ledger.NextDue(); !timed || e.unrecordedTime() == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, e.timeouts.scale(lastTickTimeout))
	defer cancel()
	if err := e.write(ctx); err != nil {
		e.log.Warn("ledger time was not written before the leadership is handed over", "error", err)
	}
}

// advanceClock also looks again what is due.
func (e *expiry) advanceClock(at quota.Instant) {
	e.clock.advanceTo(at)
	select {
	case e.clockMoved <- struct{}{}:
	default:
	}
}
