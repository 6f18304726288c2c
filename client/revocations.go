package client

import (
	"context"
	"time"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

const (
	// watchedTTL is from where on leases are watched: the next renewal of shorter ones is not far.
	watchedTTL = 10 * time.Second
	// mostWatched is how many ids a stream can be asked for; for more it is asked for all.
	mostWatched = 1000
	// restartPause joins leases that come one after the other into one new stream.
	restartPause = time.Second
	// refusedPause is kept after a stream that was refused.
	refusedPause = 10 * time.Second
)

// revocationWatcher lets the servers tell at once when a long lease has to give way or has ended. What it hears only makes the
// keeper renew the lease, which tells the truth; so the next renewal learns what a broken stream missed,
// and errors of the stream are not reported.
type revocationWatcher struct {
	renewer *renewer

	// The keeper's lock guards these.
	watched       map[string]*Lease
	running       bool
	restartStream context.CancelFunc // ends the present stream
	restartTimer  *time.Timer        // will call regroup
}

// addLease is called by the keeper, with its lock held.
func (o *revocationWatcher) addLease(l *Lease, ttl time.Duration) {
	if ttl <= watchedTTL {
		return
	}
	o.watched[l.id] = l
	switch {
	case !o.running:
		o.running = true
		go o.watchLoop()
	case o.restartTimer == nil && o.restartStream != nil:
		o.restartTimer = time.AfterFunc(restartPause, o.restartStream)
	}
}

// dropLease is called by the keeper, with its lock held. A stream may name more than is needed, but ends with the last
// lease.
func (o *revocationWatcher) dropLease(l *Lease) {
	delete(o.watched, l.id)
	if len(o.watched) == 0 && o.restartStream != nil {
		o.restartStream()
	}
}

// watchLoop follows the leases until there are none.
func (o *revocationWatcher) watchLoop() {
	w := &watch{client: o.renewer.client, from: &quoratev1.WatchAllocationsRequest{}, report: o.handleChange, notice: func(error) {}}
	for {
		ctx, more := o.nextRequest(w.from)
		if !more {
			return
		}
		_ = w.readStreams(ctx)
		if ctx.Err() == nil { // it was refused, perhaps because it is too long ago
			w.from.AfterIndex, w.from.AfterNumber = 0, 0
			_ = sleepContext(ctx, refusedPause) // it ends when there is another group to watch
		}
	}
}

// nextRequest makes the question for the leases of now; false if there are none.
func (o *revocationWatcher) nextRequest(request *quoratev1.WatchAllocationsRequest) (context.Context, bool) {
	o.renewer.mu.Lock()
	defer o.renewer.mu.Unlock()
	if o.restartStream != nil {
		o.restartStream()
	}
	if o.restartTimer != nil {
		o.restartTimer.Stop()
	}
	o.restartStream, o.restartTimer = nil, nil
	if len(o.watched) == 0 {
		o.running = false
		return nil, false
	}
	request.Ids = nil
	for id := range o.watched {
		if len(o.watched) <= mostWatched {
			request.Ids = append(request.Ids, id)
		}
	}
	ctx, regroup := context.WithCancel(context.Background())
	o.restartStream = regroup
	return ctx, true
}

// handleChange makes the keeper look after a lease now.
func (o *revocationWatcher) handleChange(m *quoratev1.WatchAllocationsResponse) error {
	switch m.GetChange() {
	case quoratev1.AllocationChange_ALLOCATION_CHANGE_REVOKED, quoratev1.AllocationChange_ALLOCATION_CHANGE_ENDED,
		quoratev1.AllocationChange_ALLOCATION_CHANGE_SHRUNK:
		o.renewer.renewNow(m.GetAllocation().GetId())
	case quoratev1.AllocationChange_ALLOCATION_CHANGE_UNSPECIFIED, quoratev1.AllocationChange_ALLOCATION_CHANGE_WAITING,
		quoratev1.AllocationChange_ALLOCATION_CHANGE_GRANTED, quoratev1.AllocationChange_ALLOCATION_CHANGE_CONFIRMED,
		quoratev1.AllocationChange_ALLOCATION_CHANGE_RESTORED:
	}
	return nil
}
