package ledger

import (
	"cmp"
	"container/heap"
	"fmt"

	"github.com/quorate/quorate/quota"
)

// deadlines is what happens at an instant of ledger time, the next first. It follows from the rest of the state.
type deadlines struct {
	queue dueQueue
}

// dueKind says what a number in a dueKey is.
type dueKind uint8

// The closed list. What is due at one instant happens in this order.
const (
	// dueAllocation has the fence of a reservation that lapses or a lease that ends.
	dueAllocation dueKind = 1
	// dueWaiter has the arrival of a waiting request that leaves the queue.
	dueWaiter dueKind = 2
	// dueItem has the turn of an item that changes its state or goes.
	dueItem dueKind = 3
)

// dueKey is who or what waits for an instant.
type dueKey struct {
	kind   dueKind
	number uint64
}

// deadline is an instant, and who waits for it.
type deadline struct {
	at quota.Instant
	dueKey
	// lease is true for the end of a lease, which comes unless it is renewed.
	lease bool
}

// before orders by time, then by kind, then by number, so that all replicas do the same first.
func (d deadline) before(other deadline) bool {
	return cmp.Or(cmp.Compare(d.at, other.at), cmp.Compare(d.kind, other.kind), cmp.Compare(d.number, other.number)) < 0
}

// dueQueue is a heap that knows where each key is, so that what does not wait any more leaves no trace.
type dueQueue struct {
	list []deadline
	at   map[dueKey]int
	// leases counts those in the list.
	leases int
}

// Len, Less, Swap, Push and Pop make it a heap.
func (q *dueQueue) Len() int { return len(q.list) }

// Less is the order of the queue.
func (q *dueQueue) Less(i, j int) bool { return q.list[i].before(q.list[j]) }

// Swap keeps track of both places.
func (q *dueQueue) Swap(i, j int) {
	q.list[i], q.list[j] = q.list[j], q.list[i]
	q.at[q.list[i].dueKey], q.at[q.list[j].dueKey] = i, j
}

// Push is for the heap only.
func (q *dueQueue) Push(x any) {
	next, _ := x.(deadline)
	q.at[next.dueKey] = len(q.list)
	q.list = append(q.list, next)
}

// Pop is for the heap only.
func (q *dueQueue) Pop() any {
	last := q.list[len(q.list)-1]
	q.list = q.list[:len(q.list)-1]
	delete(q.at, last.dueKey)
	if last.lease {
		q.leases--
	}
	return last
}

// set makes a key wait for an instant, instead of the one that it waits for; 0 is none.
func (d *deadlines) set(key dueKey, at quota.Instant) {
	i, waits := d.queue.at[key]
	switch {
	case at == 0:
		d.drop(key)
	case waits && d.queue.list[i].at == at:
	case waits:
		d.queue.list[i].at = at
		heap.Fix(&d.queue, i)
	default:
		if d.queue.at == nil {
			d.queue.at = map[dueKey]int{}
		}
		heap.Push(&d.queue, deadline{at: at, dueKey: key})
	}
}

// drop forgets a key, if it waits.
func (d *deadlines) drop(key dueKey) {
	if i, waits := d.queue.at[key]; waits {
		heap.Remove(&d.queue, i)
	}
}

// add notes a held allocation if it ends by itself.
func (d *deadlines) add(a *Allocation) {
	key := dueKey{dueAllocation, a.fence}
	d.set(key, a.endsAt())
	if i, waits := d.queue.at[key]; waits && a.state() == quota.Held && !d.queue.list[i].lease {
		d.queue.list[i].lease = true
		d.queue.leases++
	}
}

// next is what is due first.
func (d *deadlines) next() (deadline, bool) {
	if len(d.queue.list) == 0 {
		return deadline{}, false
	}
	return d.queue.list[0], true
}

// endsAt is when a held allocation ends by itself; 0 if it does not.
func (a *Allocation) endsAt() quota.Instant {
	switch {
	case a.more == nil:
		return 0
	case a.more.until != 0:
		return a.more.until
	case a.more.lease == nil:
		return 0
	}
	return a.more.lease.expires
}

// NextDue is when the ledger needs its next Expire, perhaps in the past; false if it needs none.
func (v View) NextDue() (quota.Instant, bool) {
	next, ok := v.ledger.deadlines.next()
	return next.at, ok
}

// checkDue verifies that everything waits for exactly the instant that it should.
func (v verifier) checkDue() error {
	expected, leases := 0, 0
	for fence, a := range v.allocations.held.All() {
		if a.state() != quota.Reserved && a.more != nil && (len(a.more.displaced) > 0 || a.more.undo != nil) {
			return fmt.Errorf("allocation %q is held for good, but remembers whom it displaced", a.id)
		}
		if a.state() == quota.Held && a.lease().expires != 0 {
			leases++
		}
		at := a.endsAt()
		if at == 0 {
			continue
		}
		expected++
		if i, waits := v.deadlines.queue.at[dueKey{dueAllocation, fence}]; !waits || v.deadlines.queue.list[i].at != at {
			return fmt.Errorf("allocation %q ends at %d, but nobody waits for that", a.id, at)
		}
	}
	for turn, it := range v.inventory.items.All() {
		at := it.dueAt()
		if at == 0 {
			continue
		}
		expected++
		if i, waits := v.deadlines.queue.at[dueKey{dueItem, turn}]; !waits || v.deadlines.queue.list[i].at != at {
			return fmt.Errorf("item %s changes at %d, but nobody waits for that", it.name, at)
		}
	}
	for w := range v.queue.all.from(firstTurn) {
		expected++
		place := w.record.more.waiting
		if i, waits := v.deadlines.queue.at[dueKey{dueWaiter, place.arrival}]; !waits || v.deadlines.queue.list[i].at != place.endsAt() {
			return fmt.Errorf("request %q leaves the queue at %d, but nobody waits for that", w.record.id, place.endsAt())
		}
	}
	if counted := v.deadlines.queue.leases; counted != leases {
		return fmt.Errorf("%d leases are held, but %d are counted", leases, counted)
	}
	if waiting := v.deadlines.queue.Len(); waiting != expected || len(v.deadlines.queue.at) != expected {
		return fmt.Errorf("%d instants are to be waited for, but %d are", expected, waiting)
	}
	return nil
}
