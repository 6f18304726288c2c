package client

import (
	"context"
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

const (
	// watchedTTL is the TTL above which leases are watched. Shorter ones learn of a revocation by their next renewal soon
	// enough.
	watchedTTL = 10 * time.Second
	// mostWatched is the most ids that a stream can be limited to. With more leases the stream is not limited.
	mostWatched = 1000
	// restartPause lets leases that are added one after the other share one new stream.
	restartPause = time.Second
	// refusedPause is the pause after a stream that was refused.
	refusedPause = 10 * time.Second
)

// revocationWatcher follows a stream of the revocations and ends of long leases. An event only makes the renewer renew
// the lease, and the answer to that counts. The next renewal therefore learns what a broken stream missed, and errors
// of the stream are not reported.
type revocationWatcher struct {
	renewer *renewer

	// renewer.mu guards these.
	watched       map[allocationName]*Lease
	running       bool
	restartStream context.CancelFunc // ends the current stream
	restartTimer  *time.Timer        // calls restartStream
}

// addLease watches a lease if its TTL is long; renewer.mu is held.
func (o *revocationWatcher) addLease(l *Lease, ttl time.Duration) {
	if ttl <= watchedTTL {
		return
	}
	o.watched[l.name] = l
	switch {
	case !o.running:
		o.running = true
		go o.watchLoop()
	case o.restartTimer == nil && o.restartStream != nil:
		o.restartTimer = time.AfterFunc(restartPause, o.restartStream)
	}
}

// dropLease stops watching a lease; renewer.mu is held. The stream continues with more ids than necessary, and ends
// with the last lease.
func (o *revocationWatcher) dropLease(l *Lease) {
	delete(o.watched, l.name)
	if len(o.watched) == 0 && o.restartStream != nil {
		o.restartStream()
	}
}

func (o *revocationWatcher) watchLoop() {
	w := newWatch(o.renewer.client, &quoratev1.WatchEventsRequest{}, o.handleChange, func(error) {})
	for {
		ctx, more := o.nextRequest(w.from)
		if !more {
			return
		}
		_ = w.readStreams(ctx)
		if ctx.Err() == nil { // the stream was refused, perhaps because the servers forgot its position
			w.from.AfterIndex, w.from.AfterNumber = 0, 0
			_ = sleepContext(ctx, refusedPause) // it ends early when other leases are to be watched
		}
	}
}

// nextRequest completes the request for the leases of now; false if there are none.
func (o *revocationWatcher) nextRequest(request *quoratev1.WatchEventsRequest) (context.Context, bool) {
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
	request.Allocations = nil
	for name := range o.watched {
		if len(o.watched) <= mostWatched {
			request.Allocations = append(
				request.Allocations, &quoratev1.AllocationRef{Namespace: name.namespace, Id: name.id})
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	o.restartStream = cancel
	return ctx, true
}

// handleChange makes the renewer renew a lease that was revoked, shrunk, resized or ended.
func (o *revocationWatcher) handleChange(m *quoratev1.WatchEventsResponse) error {
	switch m.GetChange().GetKind() {
	case quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_REVOKED,
		quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_ENDED,
		quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_SHRUNK,
		quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_RESIZED,
		quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_RESIZE_WAITING,
		quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_RESIZE_DROPPED:
		o.renewer.renewNow(nameOf(m.GetChange().GetAllocation()))
	case quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_UNSPECIFIED,
		quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_WAITING,
		quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_GRANTED,
		quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_CONFIRMED,
		quoratev1.AllocationChangeKind_ALLOCATION_CHANGE_KIND_RESTORED:
	}
	return nil
}
