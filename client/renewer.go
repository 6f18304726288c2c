package client

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

const (
	// mostRenewals is the most renewals in one call.
	mostRenewals = 1000
	// A lease is renewed when a third of its TTL is over, randomized by a tenth of that, and up to a sixth of its TTL
	// earlier if a call is made for another lease anyway.
	renewPart, renewSpread, renewEarly = 3, 10, 6
	// An attempt to renew may take a sixth of the shortest TTL in it, so that several fit before the lease ends for its
	// holder, but at least shortestAttempt.
	attemptPart     = 6
	shortestAttempt = 50 * time.Millisecond
)

// renewer renews the leases of one client. It runs while there are any, and renews leases that are due together in one
// call.
type renewer struct {
	client *Client

	mu          sync.Mutex
	due         map[*Lease]time.Time // when each lease is renewed next
	failures    int                  // attempts in a row that were not answered
	running     bool
	changed     chan struct{} // has a token after due has changed
	revocations revocationWatcher
	suspensions suspensionWatcher
}

func newRenewer(c *Client) *renewer {
	r := &renewer{client: c, due: map[*Lease]time.Time{}, changed: make(chan struct{}, 1)}
	r.revocations = revocationWatcher{renewer: r, watched: map[allocationName]*Lease{}}
	r.suspensions = suspensionWatcher{clock: c.clock, leases: map[*Lease]struct{}{}}
	return r
}

func (r *renewer) addLease(l *Lease, due time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.isOver() {
		return
	}
	r.due[l] = due
	r.revocations.addLease(l, l.currentTTL())
	r.suspensions.addLease(r, l)
	if !r.running {
		r.running = true
		go r.renewLoop()
	}
	r.notifyLoop()
}

// dropLease forgets a lease that has ended.
func (r *renewer) dropLease(l *Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.suspensions.dropLease(l)
	r.dropDue(l)
}

// stopRenewing does not renew a lease any more, which may last for a while yet.
func (r *renewer) stopRenewing(l *Lease) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropDue(l)
}

// dropDue is stopRenewing for callers that hold mu.
func (r *renewer) dropDue(l *Lease) {
	delete(r.due, l)
	r.revocations.dropLease(l)
	r.notifyLoop()
}

// renewNow makes a lease due now, if it is one that the watcher follows.
func (r *renewer) renewNow(name allocationName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l, watched := r.revocations.watched[name]; watched {
		r.due[l] = r.client.clock.now()
		r.notifyLoop()
	}
}

// notifyLoop makes the loop read due again; mu is held.
func (r *renewer) notifyLoop() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// setDue sets when a lease is renewed next, unless it has ended.
func (r *renewer) setDue(l *Lease, due time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, kept := r.due[l]; kept {
		r.due[l] = due
	}
}

// renewLoop renews until there are no leases.
func (r *renewer) renewLoop() {
	for {
		batch, pause := r.nextBatch(r.client.clock.now())
		switch {
		case len(batch) > 0:
			r.renewBatch(batch)
		case pause > 0:
			r.sleepUntilChange(pause)
		default:
			return
		}
	}
}

// nextBatch returns the leases to renew now, or else the time until the next one is due. It returns neither if there
// are no leases; the loop then ends.
func (r *renewer) nextBatch(now time.Time) (batch []*Lease, pause time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.due) == 0 {
		r.running = false
		return nil, 0
	}
	var soon []*Lease
	first := time.Time{}
	for l, due := range r.due {
		if first.IsZero() || due.Before(first) {
			first = due
		}
		if !due.Add(-l.currentTTL() / renewEarly).After(now) {
			soon = append(soon, l)
		}
	}
	if first.After(now) {
		return nil, first.Sub(now)
	}
	slices.SortFunc(soon, func(a, b *Lease) int {
		return cmp.Or(r.due[a].Compare(r.due[b]), cmp.Compare(a.name.id,
			b.name.id))
	})
	return soon[:min(len(soon), mostRenewals)], 0
}

func (r *renewer) sleepUntilChange(pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.changed:
	}
}

// renewBatch makes one attempt to renew leases in one call. A batch that was not answered is retried at another server.
func (r *renewer) renewBatch(batch []*Lease) {
	try := &attemptControl{timeout: r.attemptLimit(batch)}
	outcomes, err := r.client.renewAll(withAttempts(context.Background(), try), batch)
	if err != nil {
		r.retryLater(batch, err)
		return
	}
	r.mu.Lock()
	r.failures = 0
	r.mu.Unlock()
	for i, l := range batch {
		if again := l.applyOutcome(outcomes[i], try.sentAt); again > 0 {
			r.setDue(l, r.client.clock.now().Add(again))
		} else {
			r.stopRenewing(l)
		}
	}
}

func (r *renewer) attemptLimit(batch []*Lease) time.Duration {
	patience := r.client.attemptTimeout
	for _, l := range batch {
		patience = min(patience, max(l.currentTTL()/attemptPart, shortestAttempt))
	}
	return patience
}

// retryLater makes the pause grow with the failures in a row.
func (r *renewer) retryLater(batch []*Lease, fault error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pause := min(longestPause, firstPause<<min(r.failures, 10))
	if asked, found := RetryAfter(fault); found {
		pause = max(pause, asked)
	}
	r.failures++
	now := r.client.clock.now()
	for _, l := range batch {
		l.noteFailure(fault)
		if _, kept := r.due[l]; kept {
			r.due[l] = now.Add(spreadTime(min(pause, max(l.currentTTL()/attemptPart, firstPause))))
		}
	}
}

func spreadTime(d time.Duration) time.Duration {
	tenth := int64(d) / renewSpread
	return d + time.Duration(rand.Int64N(2*tenth+1)-tenth)
}
