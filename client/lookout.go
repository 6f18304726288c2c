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
	// regroupPause joins leases that come one after the other into one new stream.
	regroupPause = time.Second
	// lookoutPause is kept after a stream that was refused.
	lookoutPause = 10 * time.Second
)

// lookout lets the servers tell at once when a long lease has to give way or has ended. What it hears only makes the
// keeper renew the lease, which tells the truth; so whatever it misses is learned by the next renewal, and nobody
// need know of its troubles.
type lookout struct {
	keeper *keeper

	// The keeper's lock guards these.
	watched map[string]*Lease
	running bool
	regroup context.CancelFunc // ends the present stream
	timer   *time.Timer        // will call regroup
}

// add is called by the keeper, with its lock held.
func (o *lookout) add(l *Lease, ttl time.Duration) {
	if ttl <= watchedTTL {
		return
	}
	o.watched[l.id] = l
	switch {
	case !o.running:
		o.running = true
		go o.run()
	case o.timer == nil && o.regroup != nil:
		o.timer = time.AfterFunc(regroupPause, o.regroup)
	}
}

// drop is called by the keeper, with its lock held. A stream may name more than is needed, but ends with the last
// lease.
func (o *lookout) drop(l *Lease) {
	delete(o.watched, l.id)
	if len(o.watched) == 0 && o.regroup != nil {
		o.regroup()
	}
}

// run follows the leases until there are none.
func (o *lookout) run() {
	w := &watch{client: o.keeper.client, from: &quoratev1.WatchAllocationsRequest{}, report: o.heard, notice: func(error) {}}
	for {
		ctx, more := o.begin(w.from)
		if !more {
			return
		}
		_ = w.follow(ctx)
		if ctx.Err() == nil { // it was refused, perhaps because it is too long ago
			w.from.AfterIndex, w.from.AfterNumber = 0, 0
			_ = rest(ctx, lookoutPause) // it ends when there is another group to watch
		}
	}
}

// begin makes the question for the leases of now; false if there are none.
func (o *lookout) begin(request *quoratev1.WatchAllocationsRequest) (context.Context, bool) {
	o.keeper.mu.Lock()
	defer o.keeper.mu.Unlock()
	if o.regroup != nil {
		o.regroup()
	}
	if o.timer != nil {
		o.timer.Stop()
	}
	o.regroup, o.timer = nil, nil
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
	o.regroup = regroup
	return ctx, true
}

// heard makes the keeper look after a lease now.
func (o *lookout) heard(m *quoratev1.WatchAllocationsResponse) error {
	switch m.GetChange() {
	case quoratev1.AllocationChange_ALLOCATION_CHANGE_REVOKED, quoratev1.AllocationChange_ALLOCATION_CHANGE_ENDED,
		quoratev1.AllocationChange_ALLOCATION_CHANGE_SHRUNK:
		o.keeper.hurry(m.GetAllocation().GetId())
	case quoratev1.AllocationChange_ALLOCATION_CHANGE_UNSPECIFIED, quoratev1.AllocationChange_ALLOCATION_CHANGE_WAITING,
		quoratev1.AllocationChange_ALLOCATION_CHANGE_GRANTED, quoratev1.AllocationChange_ALLOCATION_CHANGE_CONFIRMED,
		quoratev1.AllocationChange_ALLOCATION_CHANGE_RESTORED:
	}
	return nil
}
