package workload

import (
	"context"
	"fmt"
	"slices"

	"github.com/quorate/quorate/chaos/history"
)

// heldLease is a lease that a client holds, or may hold.
type heldLease struct {
	id    string
	fence uint64
	ttl   int64
	// renewed is when the last answered renewal was sent, in nanoseconds of the recorder.
	renewed int64
	// silent leases are never renewed.
	silent bool
}

// leaseHolder holds leases, renews most of them in time, and lets the others expire.
type leaseHolder struct {
	*caller

	held    []*heldLease
	maxHeld int
}

// dueLease returns the lease that is overdue for renewal most, once a third of its TTL is over; nil if there is none.
func (l *leaseHolder) dueLease() *heldLease {
	var found *heldLease
	for _, one := range l.held {
		if !one.silent && (found == nil ||
			one.remainingMillis(l.config.Recorder.Now()) < found.remainingMillis(l.config.Recorder.Now())) {
			found = one
		}
	}
	if found == nil || found.remainingMillis(l.config.Recorder.Now()) > found.ttl*2/3 {
		return nil
	}
	return found
}

// remainingMillis returns how long the lease certainly lasts by the clock of its holder.
func (l *heldLease) remainingMillis(now int64) int64 { return l.ttl - (now-l.renewed)/1e6 }

func (l *leaseHolder) renewLease(ctx context.Context, one *heldLease) {
	o := l.callRenew(ctx, one.id, one.fence, 0)
	switch o.Outcome {
	case history.OK:
		one.renewed = o.Call
	case history.Refused:
		l.dropLease(one)
	case history.Failed, history.Unknown:
	}
}

func (l *leaseHolder) dropLease(one *heldLease) {
	l.held = slices.DeleteFunc(l.held, func(o *heldLease) bool { return o == one })
}

func (l *leaseHolder) acquireLease(ctx context.Context, w requestSpec) history.Op {
	sent := l.config.Recorder.Now()
	o := l.retryUntilDecided(ctx, func() history.Op { return l.callAllocate(ctx, w) })
	if o.Outcome == history.OK && o.State == history.Held {
		l.held = append(l.held, &heldLease{id: w.id, fence: o.Fence, ttl: w.ttl, renewed: sent, silent: l.oneIn(4)})
	}
	return o
}

// nextStep prefers to renew a due lease, and otherwise makes a random call.
func (l *leaseHolder) nextStep(ctx context.Context, ask func() requestSpec) {
	if one := l.dueLease(); one != nil {
		l.renewLease(ctx, one)
		return
	}
	switch dice := l.random.IntN(6); {
	case len(l.held) == 0 || dice < 3 && len(l.held) < l.maxHeld:
		l.acquireLease(ctx, ask())
	case dice < 4:
		one := l.held[l.random.IntN(len(l.held))]
		l.dropLease(one)
		if !one.silent {
			l.retryUntilDecided(ctx, func() history.Op { return l.callRelease(ctx, one.id) })
		}
	default:
		l.readAllocation(ctx, l.held[l.random.IntN(len(l.held))].id, l.randomReadMode())
	}
}

func leaseTrees() []treeSpec { return []treeSpec{newTreeSpec("lease", "", 12, "x", 8, "y", 8)} }

func startLease(c *caller) func(context.Context) {
	l := &leaseHolder{caller: c, maxHeld: 4}
	return func(ctx context.Context) {
		l.nextStep(ctx, func() requestSpec {
			node := []string{"x", "y"}[c.random.IntN(2)]
			return requestSpec{
				id: c.newName(), claims: []history.Claim{claimAt("lease", node, 1+c.random.Int64N(3))},
				ttl: 1500 + c.random.Int64N(3000),
			}
		})
	}
}

// itemTrees returns a tree with fewer items than clients.
func itemTrees() []treeSpec {
	t := newTreeSpec("items", "", history.Unlimited)
	t.items = map[string][]string{"car": {"ant", "bee", "cow", "dog"}}
	return []treeSpec{t}
}

func startItems(c *caller) func(context.Context) {
	l := &leaseHolder{caller: c, maxHeld: 2}
	return func(ctx context.Context) {
		l.nextStep(ctx, func() requestSpec {
			return requestSpec{
				id: c.newName(), claims: []history.Claim{{Tree: "items", Pick: "car"}},
				ttl: 1000 + c.random.Int64N(2500),
			}
		})
	}
}

// reserveTrees is for reservations that are confirmed, cancelled, or left to expire.
func reserveTrees() []treeSpec { return []treeSpec{newTreeSpec("reserve", "", 16, "x", 10, "y", 10)} }

func startReserve(c *caller) func(context.Context) {
	h := &holder{caller: c}
	return func(ctx context.Context) {
		if len(h.held) > 3 {
			h.releaseOne(ctx)
			return
		}
		node := []string{"x", "y"}[c.random.IntN(2)]
		w := requestSpec{
			id: c.newName(), claims: []history.Claim{claimAt("reserve", node, 1+c.random.Int64N(4))},
			mode: history.Reserve, ttl: 800 + c.random.Int64N(8000),
		}
		o := c.retryUntilDecided(ctx, func() history.Op { return c.callAllocate(ctx, w) })
		if o.Outcome == history.Refused {
			c.readUsage(ctx, "reserve", readMode{})
			return
		}
		c.pauseAbout(ctx, 4*c.config.Pause)
		switch c.random.IntN(5) {
		case 0: // left to expire
		case 1:
			c.retryUntilDecided(ctx, func() history.Op { return c.callCancel(ctx, w.id) })
		default:
			if o := c.retryUntilDecided(ctx,
				func() history.Op { return c.callConfirm(ctx, w.id) }); o.Outcome == history.OK {
				h.held = append(h.held, holding{id: w.id})
			}
		}
	}
}

// waitTrees returns a tree with a strict queue: two nodes, small limits, and requests with priorities. The first client
// puts nodes on hold for a while.
func waitTrees() []treeSpec {
	return []treeSpec{newTreeSpec("queue", "", history.Unlimited, "x", 3, "y", 2).withStrictQueue()}
}

func startWait(c *caller) func(context.Context) {
	l := &leaseHolder{caller: c, maxHeld: 2}
	var waits []requestSpec
	return func(ctx context.Context) {
		switch {
		case c.number == 0 && c.oneIn(12):
			c.holdForAWhile(ctx, "queue", []string{"x", "y"}[c.random.IntN(2)])
		case len(waits) > 0 && c.oneIn(2):
			i := c.random.IntN(len(waits))
			w := waits[i]
			if o := l.acquireLease(ctx, w); o.Outcome == history.Refused || o.State == history.Held {
				waits = slices.Delete(waits, i, i+1)
			} else if c.oneIn(8) {
				waits = slices.Delete(waits, i, i+1)
				c.retryUntilDecided(ctx, func() history.Op { return c.callCancel(ctx, w.id) })
			}
		case len(waits)+len(l.held) < 4:
			waits = append(waits, c.newWaitRequest())
			l.acquireLease(ctx, waits[len(waits)-1])
		default:
			l.nextStep(ctx, c.newWaitRequest)
		}
	}
}

// newWaitRequest returns a request that may wait. All requests for a node have the same amount, so that only the queue
// order decides.
func (c *caller) newWaitRequest() requestSpec {
	node := []string{"x", "y"}[c.random.IntN(2)]
	return requestSpec{
		id: c.newName(), claims: []history.Claim{claimAt("queue", node, 1)}, mode: history.Wait,
		priority: c.random.Int64N(3),
		ttl:      1500 + c.random.Int64N(2000), poll: c.random.Int64N(600), keep: 20_000,
	}
}

// startTwins sets the same limit of two trees in one change, again and again, from the first client. The others read.
func startTwins(c *caller) func(context.Context) {
	return func(ctx context.Context) {
		if c.number > 0 || c.config.Clients == 1 && c.oneIn(2) {
			c.readLimits(ctx, "twin-", c.randomReadMode())
			return
		}
		id, amount := c.newID(), 1+c.random.IntN(1000)
		c.retryForever(ctx, func() history.Op { return c.callApplyTrees(ctx, id, twinSpecs(amount)) })
		c.pauseAbout(ctx, 4*c.config.Pause)
	}
}

func twinTrees() []treeSpec { return twinSpecs(1) }

func twinSpecs(amount int) []treeSpec {
	var all []treeSpec
	for i := range 2 {
		all = append(all, newTreeSpec(fmt.Sprintf("twin-%d", i), "", amount, "x", amount))
	}
	return all
}
