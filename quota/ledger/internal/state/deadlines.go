package state

import (
	"cmp"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/heap"
)

// deadlines are future changes at instants of ledger time, the earliest first. They are derived from the rest of the
// state.
type deadlines struct {
	Order *heap.Heap[*Deadline]
	ByKey map[DueKey]*Deadline
	// Leases counts those that are ends of leases.
	Leases int
}

func newDeadlines() deadlines {
	return deadlines{
		Order: heap.New((*Deadline).before, func(d *Deadline) *int { return &d.place }),
		ByKey: map[DueKey]*Deadline{},
	}
}

// DueKind is the kind of the number in a DueKey.
type DueKind uint8

// The closed list of kinds. At one instant, deadlines fire in this order.
const (
	// DueAllocation has the fence of a reservation or lease that ends.
	DueAllocation DueKind = 1
	// DueWaiter has the arrival number of a waiting request that leaves the queue.
	DueWaiter DueKind = 2
	// DueItem has the StateSeq of an item that changes its state or is removed.
	DueItem DueKind = 3
	// DueRequest has the number of an open request for limits that expires.
	DueRequest DueKind = 4
	// DueHold and DueDrain have the identity of a node whose hold ends, or whose drain goes on.
	DueHold  DueKind = 21
	DueDrain DueKind = 22
	// DueSchedule has the number of a scheduled limit, in the heap of the calendar.
	DueSchedule DueKind = 5
)

// DueKey identifies what has a deadline.
type DueKey struct {
	Kind   DueKind
	Number uint64
}

// Deadline is an instant with its key.
type Deadline struct {
	At quota.Instant
	DueKey
	// lease is true for the end of a lease, which a renewal moves.
	lease bool
	place int // in the heap
}

// before orders by time, then by kind, then by number, so that all replicas fire deadlines in the same order.
func (d *Deadline) before(other *Deadline) bool {
	return cmp.Or(cmp.Compare(d.At, other.At), cmp.Compare(d.Kind, other.Kind), cmp.Compare(d.Number, other.Number)) < 0
}

// Set replaces the deadline of a key; 0 removes it.
func (d *deadlines) Set(key DueKey, at quota.Instant) {
	known := d.ByKey[key]
	switch {
	case at == 0:
		d.Drop(key)
	case known != nil:
		known.At = at
		d.Order.Push(known)
	default:
		added := &Deadline{At: at, DueKey: key}
		d.ByKey[key] = added
		d.Order.Push(added)
	}
}

// Drop removes the deadline of a key, if it has one.
func (d *deadlines) Drop(key DueKey) {
	known := d.ByKey[key]
	if known == nil {
		return
	}
	d.Order.Remove(known)
	delete(d.ByKey, key)
	if known.lease {
		d.Leases--
	}
}

// Add sets the deadline of a held allocation if it ends by itself.
func (d *deadlines) Add(a *Allocation) {
	key := DueKey{DueAllocation, a.fence}
	d.Set(key, a.EndsAt())
	if known := d.ByKey[key]; known != nil && a.HoldsLease() && !known.lease {
		known.lease = true
		d.Leases++
	}
}

// Next is the earliest deadline; false if there is none.
func (d *deadlines) Next() (Deadline, bool) {
	if d.Order.Len() == 0 {
		return Deadline{}, false
	}
	return *d.Order.First(), true
}

// EndsAt is when a held allocation ends by itself; 0 for never.
func (a *Allocation) EndsAt() quota.Instant {
	switch {
	case a.More == nil:
		return 0
	case a.More.Until != 0:
		return a.More.Until
	}
	expires, end := a.Lease().Expires, a.More.EndsAt
	if expires == 0 || end == 0 {
		return max(expires, end)
	}
	return min(expires, end)
}
