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
	// mostRenewals is how many go into one call.
	mostRenewals = 1000
	// A lease is renewed when a third of its TTL is over, spread by a tenth of that, and up to a sixth of its TTL before
	// if another one is renewed anyway.
	renewPart, renewSpread, renewEarly = 3, 10, 6
	// An attempt to renew takes no longer than a sixth of the shortest TTL in it, so that several fit before a safe
	// moment; but so long it may take.
	attemptPart     = 6
	shortestAttempt = 50 * time.Millisecond
)

// renewer renews the leases of one client. It runs while there are any, and joins into one call what is due together.
type renewer struct {
	client *Client

	mu          sync.Mutex
	due         map[*Lease]time.Time // when each is to be renewed
	failures    int                  // attempts in a row that did not get through
	running     bool
	changed     chan struct{} // has a token when due has changed
	revocations revocationWatcher
}

func newRenewer(c *Client) *renewer {
	k := &renewer{client: c, due: map[*Lease]time.Time{}, changed: make(chan struct{}, 1)}
	k.revocations = revocationWatcher{renewer: k, watched: map[string]*Lease{}}
	return k
}

// addLease begins to renew a lease that has a TTL.
func (k *renewer) addLease(l *Lease, due time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.due[l] = due
	k.revocations.addLease(l, l.currentTTL())
	if !k.running {
		k.running = true
		go k.renewLoop()
	}
	k.notifyLoop()
}

// dropLease forgets a lease.
func (k *renewer) dropLease(l *Lease) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.due, l)
	k.revocations.dropLease(l)
	k.notifyLoop()
}

// renewNow renews a lease now, if it is kept.
func (k *renewer) renewNow(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l, watched := k.revocations.watched[id]; watched {
		k.due[l] = time.Now()
		k.notifyLoop()
	}
}

// notifyLoop must be called with mu held.
func (k *renewer) notifyLoop() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// setDue sets when a lease is renewed next, unless it is over.
func (k *renewer) setDue(l *Lease, due time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, kept := k.due[l]; kept {
		k.due[l] = due
	}
}

// renewLoop renews until there is nothing left to renew.
func (k *renewer) renewLoop() {
	for {
		batch, pause := k.nextBatch(time.Now())
		switch {
		case len(batch) > 0:
			k.renewBatch(batch)
		case pause > 0:
			k.sleepUntilChange(pause)
		default:
			return
		}
	}
}

// nextBatch gives the leases to renew now, or else how long there is nothing to do; neither if there are none, and then the
// keeper runs no more.
func (k *renewer) nextBatch(now time.Time) (batch []*Lease, pause time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.due) == 0 {
		k.running = false
		return nil, 0
	}
	var soon []*Lease
	first := time.Time{}
	for l, due := range k.due {
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
	slices.SortFunc(soon, func(a, b *Lease) int { return cmp.Or(k.due[a].Compare(k.due[b]), cmp.Compare(a.id, b.id)) })
	return soon[:min(len(soon), mostRenewals)], 0
}

// sleepUntilChange ends early when leases come or go.
func (k *renewer) sleepUntilChange(pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-k.changed:
	}
}

// renewBatch makes one attempt to renew leases in one call. What does not get through is tried again, at another server.
func (k *renewer) renewBatch(batch []*Lease) {
	try := &attemptControl{timeout: k.attemptLimit(batch)}
	outcomes, err := k.client.renewAll(withAttempts(context.Background(), try), batch)
	if err != nil {
		k.retryLater(batch, err)
		return
	}
	k.mu.Lock()
	k.failures = 0
	k.mu.Unlock()
	for i, l := range batch {
		if again := l.applyOutcome(outcomes[i], try.sentAt); again > 0 {
			k.setDue(l, time.Now().Add(again))
		} else {
			k.dropLease(l)
		}
	}
}

// attemptLimit is how long an attempt may take.
func (k *renewer) attemptLimit(batch []*Lease) time.Duration {
	patience := k.client.attemptTimeout
	for _, l := range batch {
		patience = min(patience, max(l.currentTTL()/attemptPart, shortestAttempt))
	}
	return patience
}

// retryLater waits a moment, longer from time to time.
func (k *renewer) retryLater(batch []*Lease, fault error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	pause := min(longestPause, firstPause<<min(k.failures, 10))
	if asked, found := RetryAfter(fault); found {
		pause = max(pause, asked)
	}
	k.failures++
	now := time.Now()
	for _, l := range batch {
		l.noteFailure(fault)
		if _, kept := k.due[l]; kept {
			k.due[l] = now.Add(spreadTime(min(pause, max(l.currentTTL()/attemptPart, firstPause))))
		}
	}
}

// spreadTime changes a time by up to a tenth in either direction.
func spreadTime(d time.Duration) time.Duration {
	tenth := int64(d) / renewSpread
	return d + time.Duration(rand.Int64N(2*tenth+1)-tenth)
}
