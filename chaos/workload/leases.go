package workload

import (
	"context"
	"fmt"
	"slices"

	"github.com/quorate/quorate/chaos/history"
)

// lease is one that a client holds, or believes to hold.
type lease struct {
	id    string
	fence uint64
	ttl   int64
	// renewed is when the last renewal that was answered was sent, in nanoseconds of the recorder.
	renewed int64
	// silent ones are never renewed.
	silent bool
}

// lessee holds leases, renews some in time, and falls silent about others.
type lessee struct {
	*caller

	held []*lease
	most int
}

// due is the lease that must be renewed now: the one whose third is over for the longest.
func (l *lessee) due() *lease {
	var found *lease
	for _, one := range l.held {
		if !one.silent && (found == nil || one.rest(l.config.Recorder.Now()) < found.rest(l.config.Recorder.Now())) {
			found = one
		}
	}
	if found == nil || found.rest(l.config.Recorder.Now()) > found.ttl*2/3 {
		return nil
	}
	return found
}

// rest is how many milliseconds a lease lasts for certain, as its holder counts.
func (l *lease) rest(now int64) int64 { return l.ttl - (now-l.renewed)/1e6 }

func (l *lessee) keep(ctx context.Context, one *lease) {
	o := l.renew(ctx, one.id, one.fence, 0)
	switch o.Outcome {
	case history.OK:
		one.renewed = o.Call
	case history.Refused:
		l.forget(one)
	case history.Failed, history.Unknown:
	}
}

func (l *lessee) forget(one *lease) {
	l.held = slices.DeleteFunc(l.held, func(o *lease) bool { return o == one })
}

// take asks for a lease and notes it if it may be held.
func (l *lessee) take(ctx context.Context, w want) history.Op {
	asked := l.config.Recorder.Now()
	o := l.insist(ctx, func() history.Op { return l.allocate(ctx, w) })
	if o.Outcome == history.OK && o.State == history.Held {
		l.held = append(l.held, &lease{id: w.id, fence: o.Fence, ttl: w.ttl, renewed: asked, silent: l.one(4)})
	}
	return o
}

// step renews what has to be renewed; if nothing has, it asks for more, gives one back or looks at one.
func (l *lessee) step(ctx context.Context, ask func() want) {
	if one := l.due(); one != nil {
		l.keep(ctx, one)
		return
	}
	switch dice := l.random.IntN(6); {
	case len(l.held) == 0 || dice < 3 && len(l.held) < l.most:
		l.take(ctx, ask())
	case dice < 4:
		one := l.held[l.random.IntN(len(l.held))]
		l.forget(one)
		if !one.silent {
			l.insist(ctx, func() history.Op { return l.release(ctx, one.id) })
		}
	default:
		l.look(ctx, l.held[l.random.IntN(len(l.held))].id, l.anyFreshness())
	}
}

func leaseTrees() []tree { return []tree{limits("lease", "", 12, "x", 8, "y", 8)} }

func startLease(c *caller) func(context.Context) {
	l := &lessee{caller: c, most: 4}
	return func(ctx context.Context) {
		l.step(ctx, func() want {
			node := []string{"x", "y"}[c.random.IntN(2)]
			return want{id: c.newID(), claims: []history.Claim{at("lease", node, 1+c.random.Int64N(3))}, ttl: 1500 + c.random.Int64N(3000)}
		})
	}
}

// Items that are fewer than the clients who want them.
func itemTrees() []tree {
	t := limits("items", "", history.Unlimited)
	t.items = map[string][]string{"car": {"ant", "bee", "cow", "dog"}}
	return []tree{t}
}

func startItems(c *caller) func(context.Context) {
	l := &lessee{caller: c, most: 2}
	return func(ctx context.Context) {
		l.step(ctx, func() want {
			return want{id: c.newID(), claims: []history.Claim{{Tree: "items", Pick: "car"}}, ttl: 1000 + c.random.Int64N(2500)}
		})
	}
}

// Reservations: confirmed, cancelled, or left to lapse.
func reserveTrees() []tree { return []tree{limits("reserve", "", 16, "x", 10, "y", 10)} }

func startReserve(c *caller) func(context.Context) {
	h := &holder{caller: c}
	return func(ctx context.Context) {
		if len(h.held) > 3 {
			h.give(ctx)
			return
		}
		node := []string{"x", "y"}[c.random.IntN(2)]
		w := want{id: c.newID(), claims: []history.Claim{at("reserve", node, 1+c.random.Int64N(4))}, mode: history.Reserve, ttl: 800 + c.random.Int64N(8000)}
		o := c.insist(ctx, func() history.Op { return c.allocate(ctx, w) })
		if o.Outcome == history.Refused {
			c.readUsage(ctx, "reserve", freshness{})
			return
		}
		c.pause(ctx, 4*c.config.Pause)
		switch c.random.IntN(5) {
		case 0: // left to lapse
		case 1:
			c.insist(ctx, func() history.Op { return c.cancel(ctx, w.id) })
		default:
			if o := c.insist(ctx, func() history.Op { return c.confirm(ctx, w.id) }); o.Outcome == history.OK {
				h.held = append(h.held, holding{id: w.id})
			}
		}
	}
}

// A queue that nobody may overtake in: two lines for the same kind of thing, and priorities.
func waitTrees() []tree {
	return []tree{limits("queue", "", history.Unlimited, "x", 3, "y", 2).strict()}
}

func startWait(c *caller) func(context.Context) {
	l := &lessee{caller: c, most: 2}
	var waits []want
	return func(ctx context.Context) {
		switch {
		case len(waits) > 0 && c.one(2):
			i := c.random.IntN(len(waits))
			w := waits[i]
			if o := l.take(ctx, w); o.Outcome == history.Refused || o.State == history.Held {
				waits = slices.Delete(waits, i, i+1)
			} else if c.one(8) {
				waits = slices.Delete(waits, i, i+1)
				c.insist(ctx, func() history.Op { return c.cancel(ctx, w.id) })
			}
		case len(waits)+len(l.held) < 4:
			waits = append(waits, c.waiting())
			l.take(ctx, waits[len(waits)-1])
		default:
			l.step(ctx, c.waiting)
		}
	}
}

// waiting is a request that waits if it must. All in a line want the same, so that nothing but the order decides.
func (c *caller) waiting() want {
	node := []string{"x", "y"}[c.random.IntN(2)]
	return want{
		id: c.newID(), claims: []history.Claim{at("queue", node, 1)}, mode: history.Wait, priority: c.random.Int64N(3),
		ttl: 1500 + c.random.Int64N(2000), poll: c.random.Int64N(600), keep: 20_000,
	}
}

// startTwins: the first client gives two trees the same limit in one change, again and again; the others look.
func startTwins(c *caller) func(context.Context) {
	return func(ctx context.Context) {
		if c.number > 0 || c.config.Clients == 1 && c.one(2) {
			c.readLimits(ctx, "twin-", c.anyFreshness())
			return
		}
		id, amount := c.newID(), 1+c.random.IntN(1000)
		c.insistLong(ctx, func() history.Op { return c.apply(ctx, id, twins(amount)) })
		c.pause(ctx, 4*c.config.Pause)
	}
}

func twinTrees() []tree { return twins(1) }

func twins(amount int) []tree {
	var all []tree
	for i := range 2 {
		all = append(all, limits(fmt.Sprintf("twin-%d", i), "", amount, "x", amount))
	}
	return all
}
