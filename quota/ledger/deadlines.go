package ledger

import (
	"cmp"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/heap"
)

// deadlines are future changes at instants of ledger time, the earliest first. They are derived from the rest of the
// state.
type deadlines struct {
	order *heap.Heap[*deadline]
	byKey map[dueKey]*deadline
	// leases counts those that are ends of leases.
	leases int
}

func newDeadlines() deadlines {
	return deadlines{
		order: heap.New((*deadline).before, func(d *deadline) *int { return &d.place }),
		byKey: map[dueKey]*deadline{},
	}
}

// dueKind is the kind of the number in a dueKey.
type dueKind uint8

// The closed list of kinds. At one instant, deadlines fire in this order.
const (
	// dueAllocation has the fence of a reservation or lease that ends.
	dueAllocation dueKind = 1
	// dueWaiter has the arrival number of a waiting request that leaves the queue.
	dueWaiter dueKind = 2
	// dueItem has the stateSeq of an item that changes its state or is removed.
	dueItem dueKind = 3
	// dueRequest has the number of an open request for limits that expires.
	dueRequest dueKind = 4
	// dueHold and dueDrain have the identity of a node whose hold ends, or whose drain goes on.
	dueHold  dueKind = 21
	dueDrain dueKind = 22
	// dueSchedule has the number of a scheduled limit, in the heap of the calendar.
	dueSchedule dueKind = 5
)

// dueKey identifies what has a deadline.
type dueKey struct {
	kind   dueKind
	number uint64
}

// deadline is an instant with its key.
type deadline struct {
	at quota.Instant
	dueKey
	// lease is true for the end of a lease, which a renewal moves.
	lease bool
	place int // in the heap
}

// before orders by time, then by kind, then by number, so that all replicas fire deadlines in the same order.
func (d *deadline) before(other *deadline) bool {
	return cmp.Or(cmp.Compare(d.at, other.at), cmp.Compare(d.kind, other.kind), cmp.Compare(d.number, other.number)) < 0
}

// set replaces the deadline of a key; 0 removes it.
func (d *deadlines) set(key dueKey, at quota.Instant) {
	known := d.byKey[key]
	switch {
	case at == 0:
		d.drop(key)
	case known != nil:
		known.at = at
		d.order.Push(known)
	default:
		added := &deadline{at: at, dueKey: key}
		d.byKey[key] = added
		d.order.Push(added)
	}
}

// drop removes the deadline of a key, if it has one.
func (d *deadlines) drop(key dueKey) {
	known := d.byKey[key]
	if known == nil {
		return
	}
	d.order.Remove(known)
	delete(d.byKey, key)
	if known.lease {
		d.leases--
	}
}

// add sets the deadline of a held allocation if it ends by itself.
func (d *deadlines) add(a *Allocation) {
	key := dueKey{dueAllocation, a.fence}
	d.set(key, a.endsAt())
	if known := d.byKey[key]; known != nil && a.holdsLease() && !known.lease {
		known.lease = true
		d.leases++
	}
}

// next is the earliest deadline; false if there is none.
func (d *deadlines) next() (deadline, bool) {
	if d.order.Len() == 0 {
		return deadline{}, false
	}
	return *d.order.First(), true
}

// endsAt is when a held allocation ends by itself; 0 for never.
func (a *Allocation) endsAt() quota.Instant {
	switch {
	case a.more == nil:
		return 0
	case a.more.until != 0:
		return a.more.until
	}
	expires, end := a.lease().expires, a.more.endsAt
	if expires == 0 || end == 0 {
		return max(expires, end)
	}
	return min(expires, end)
}
