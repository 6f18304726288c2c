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

// keeper renews the leases of one client. It runs while there are any, and joins into one call what is due together.
type keeper struct {
	client *Client

	mu      sync.Mutex
	due     map[*Lease]time.Time // when each is to be renewed
	faults  int                  // attempts in a row that did not get through
	running bool
	wake    chan struct{} // has a token when due has changed
	lookout lookout
}

func newKeeper(c *Client) *keeper {
	k := &keeper{client: c, due: map[*Lease]time.Time{}, wake: make(chan struct{}, 1)}
	k.lookout = lookout{keeper: k, watched: map[string]*Lease{}}
	return k
}

// add begins to renew a lease that has a TTL.
func (k *keeper) add(l *Lease, due time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.due[l] = due
	k.lookout.add(l, l.ttl())
	if !k.running {
		k.running = true
		go k.run()
	}
	k.stir()
}

// drop forgets a lease.
func (k *keeper) drop(l *Lease) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.due, l)
	k.lookout.drop(l)
	k.stir()
}

// hurry renews a lease now, if it is kept.
func (k *keeper) hurry(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l, watched := k.lookout.watched[id]; watched {
		k.due[l] = time.Now()
		k.stir()
	}
}

// stir must be called with mu held.
func (k *keeper) stir() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// postpone sets when a lease is renewed next, unless it is over.
func (k *keeper) postpone(l *Lease, due time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, kept := k.due[l]; kept {
		k.due[l] = due
	}
}

// run renews until there is nothing left to renew.
func (k *keeper) run() {
	for {
		batch, pause := k.next(time.Now())
		switch {
		case len(batch) > 0:
			k.renew(batch)
		case pause > 0:
			k.sleep(pause)
		default:
			return
		}
	}
}

// next gives the leases to renew now, or else how long there is nothing to do; neither if there are none, and then the
// keeper runs no more.
func (k *keeper) next(now time.Time) (batch []*Lease, pause time.Duration) {
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
		if !due.Add(-l.ttl() / renewEarly).After(now) {
			soon = append(soon, l)
		}
	}
	if first.After(now) {
		return nil, first.Sub(now)
	}
	slices.SortFunc(soon, func(a, b *Lease) int { return cmp.Or(k.due[a].Compare(k.due[b]), cmp.Compare(a.id, b.id)) })
	return soon[:min(len(soon), mostRenewals)], 0
}

// sleep ends early when leases come or go.
func (k *keeper) sleep(pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-k.wake:
	}
}

// renew makes one attempt to renew leases in one call. What does not get through is tried again, at another server.
func (k *keeper) renew(batch []*Lease) {
	try := &attempts{only: k.patience(batch)}
	outcomes, err := k.client.renewAll(by(context.Background(), try), batch)
	if err != nil {
		k.tryAgain(batch, err)
		return
	}
	k.mu.Lock()
	k.faults = 0
	k.mu.Unlock()
	for i, l := range batch {
		if again := l.settle(outcomes[i], try.sent); again > 0 {
			k.postpone(l, time.Now().Add(again))
		} else {
			k.drop(l)
		}
	}
}

// patience is how long an attempt may take.
func (k *keeper) patience(batch []*Lease) time.Duration {
	patience := k.client.attemptTimeout
	for _, l := range batch {
		patience = min(patience, max(l.ttl()/attemptPart, shortestAttempt))
	}
	return patience
}

// tryAgain waits a moment, longer from time to time.
func (k *keeper) tryAgain(batch []*Lease, fault error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	pause := min(longestPause, firstPause<<min(k.faults, 10))
	if asked, found := RetryAfter(fault); found {
		pause = max(pause, asked)
	}
	k.faults++
	now := time.Now()
	for _, l := range batch {
		l.failed(fault)
		if _, kept := k.due[l]; kept {
			k.due[l] = now.Add(spread(min(pause, max(l.ttl()/attemptPart, firstPause))))
		}
	}
}

// spread changes a time by up to a tenth in either direction.
func spread(d time.Duration) time.Duration {
	tenth := int64(d) / renewSpread
	return d + time.Duration(rand.Int64N(2*tenth+1)-tenth)
}
