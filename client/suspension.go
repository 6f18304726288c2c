package client

import (
	"maps"
	"slices"
	"time"
)

const (
	// suspensionCheck is how often a client with leases looks whether the machine was suspended. Timers do not notice.
	suspensionCheck = time.Second
	// suspensionStep is the unit in which suspended time is counted: its two clocks are not read at the same moment.
	suspensionStep = 100 * time.Millisecond
)

// leaseTime is the time by which leases end for their holders: the monotonic clock of [time.Now] and, where the system
// tells it (Linux), the time in which the machine was suspended, which that clock leaves out and the servers do not.
type leaseTime struct {
	// suspended is for how long the machine was suspended since it was started.
	suspended func() time.Duration
}

func (c leaseTime) now() time.Time                   { return time.Now().Add(c.suspended()) }
func (c leaseTime) since(at time.Time) time.Duration { return c.now().Sub(at) }
func (c leaseTime) until(at time.Time) time.Duration { return at.Sub(c.now()) }

// public is the time of [time.Now] at which it will be at, unless the machine is suspended before.
func (c leaseTime) public(at time.Time) time.Time { return at.Add(-c.suspended()) }

// suspensionWatcher makes leases end in time after the machine was suspended. It runs while there are any.
type suspensionWatcher struct {
	clock leaseTime
	// leases are those that have a TTL and have not ended.
	leases map[*Lease]struct{}
	stop   chan struct{} // nil if it does not run
}

func (w *suspensionWatcher) addLease(r *renewer, l *Lease) {
	w.leases[l] = struct{}{}
	if w.stop == nil {
		w.stop = make(chan struct{})
		go r.watchSuspensions(w.clock.suspended(), w.stop)
	}
}

func (w *suspensionWatcher) dropLease(l *Lease) {
	if delete(w.leases, l); len(w.leases) == 0 && w.stop != nil {
		close(w.stop)
		w.stop = nil
	}
}

// watchSuspensions resets the timers of all leases, and makes the loop read its clock, when the machine has been
// suspended.
func (r *renewer) watchSuspensions(known time.Duration, stop <-chan struct{}) {
	ticker := time.NewTicker(suspensionCheck)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		now := r.client.clock.suspended()
		if now == known {
			continue
		}
		known = now
		for _, l := range r.timedLeases() {
			l.resetTimer()
		}
		r.notifyLoop()
	}
}

func (r *renewer) timedLeases() []*Lease {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.suspensions.leases))
}

// resetTimer is for a clock that has jumped.
func (l *Lease) resetTimer() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over && l.timer != nil {
		l.timer.Reset(l.client.clock.until(l.safe))
	}
}
