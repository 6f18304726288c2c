package oracle

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// release ends an allocation, or gives back some of its items.
func (o *oracle) release(c quota.Release) verdict {
	a, refused := o.findKnown(c.ID)
	switch {
	case a == nil:
		return refused
	case c.Fence != 0 && c.Fence != a.fence:
		return refusal(quota.FenceMismatch, "fence")
	case a.ended != nil:
		return verdict{repeated: true, fence: a.fence}
	case a.state == quota.Waiting:
		o.drop(a.waiter, quota.Cancelled)
		return verdict{}
	case len(c.Items) > 0:
		return o.releaseItems(a, c)
	}
	a.rememberItems(o.heldBy(a))
	for _, it := range o.heldBy(a) {
		if c.ItemState != "" {
			o.returnItem(it, c.ItemState)
		}
	}
	o.end(a, quota.Released)
	return verdict{fence: a.fence}
}

func (o *oracle) end(a *allocation, state quota.State) {
	at := o.now
	a.ended, a.state = &at, state
	o.ends = append(o.ends, a)
	if waits := o.resizeOf(a); waits != nil {
		o.leave(waits.waiter)
	}
	if a.until != 0 && state != quota.Released && o.restoreExactly(a) {
		return
	}
	for i, c := range a.request.Claims {
		o.markChanged(c.Tree)
		o.reclaim(c.Tree, a.placed[i])
	}
	o.returnItems(a, state)
}

func (o *oracle) confirm(c quota.Confirm) verdict {
	a, refused := o.findKnown(c.ID)
	switch {
	case a == nil:
		return refused
	case c.Fence != 0 && c.Fence != a.fence:
		return refusal(quota.FenceMismatch, "fence")
	case a.state == quota.Held:
		return verdict{repeated: true, fence: a.fence}
	case a.ended != nil || a.until <= o.now.At:
		return refusal(quota.Ended, "id")
	}
	a.state, a.until = quota.Held, 0
	a.begin(o.now)
	return verdict{fence: a.fence}
}

func (o *oracle) cancel(c quota.Cancel) verdict {
	a, refused := o.findKnown(c.ID)
	switch {
	case a == nil:
		return refused
	case c.Fence != 0 && c.Fence != a.fence:
		return refusal(quota.FenceMismatch, "fence")
	case a.ended != nil:
		return verdict{repeated: true, fence: a.fence}
	case a.state == quota.Held:
		return refusal(quota.InUse, "id")
	case a.state == quota.Waiting:
		o.drop(a.waiter, quota.Cancelled)
		return verdict{}
	}
	o.end(a, quota.Cancelled)
	return verdict{fence: a.fence}
}

func (o *oracle) expire(c quota.Expire) verdict {
	if c.Most < 1 || c.Most > 1024 {
		return refusal(quota.Invalid, "most")
	}
	expired := 0
	last := quota.Instant(0) // what became free then is given away before the next instant
	for expired < c.Most {
		at := o.nextInstant()
		if last > 0 && at > last {
			o.settle()
			last = 0
			continue
		}
		if !o.expireOne() {
			break
		}
		last = at
		expired++
	}
	return verdict{expired: expired}
}

// nextInstant is when something is due next; 0 if nothing is.
func (o *oracle) nextInstant() quota.Instant {
	switch a, it := o.nextDue(); {
	case a != nil:
		return a.endsAt()
	case it != nil:
		return it.dueAt(o)
	}
	return 0
}

// expireOne does what is due first; false if nothing is.
func (o *oracle) expireOne() bool {
	a, it := o.nextDue()
	switch {
	case a != nil && a.endsAt() <= o.now.At && a.waiter != nil:
		o.dropOverdue(a.waiter)
	case a != nil && a.endsAt() <= o.now.At:
		o.end(a, quota.Expired)
		o.recordEvent(quota.Event{Kind: quota.EventExpired, ID: a.request.ID})
	case it != nil && it.dueAt(o) <= o.now.At:
		o.applyTransition(it)
	default:
		return false
	}
	return true
}

// nextDue is what ends or changes first: of allocations the oldest if several do, of items the one that changed first.
// The other one is nil.
func (o *oracle) nextDue() (*allocation, *item) {
	var first *allocation
	for _, a := range slices.Concat(o.held(), o.byTurn()) {
		if at := a.endsAt(); at != 0 && (first == nil || at < first.endsAt()) {
			first = a
		}
	}
	var earliest *item
	for _, it := range o.items {
		at := it.dueAt(o)
		if at != 0 && (earliest == nil || at < earliest.dueAt(o) ||
			at == earliest.dueAt(o) && it.stateSeq < earliest.stateSeq) {
			earliest = it
		}
	}
	if first != nil && (earliest == nil || first.endsAt() <= earliest.dueAt(o)) {
		return first, nil
	}
	return nil, earliest
}
