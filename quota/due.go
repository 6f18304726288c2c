package quota

import (
	"container/heap"
	"fmt"
)

// due is when each reservation lapses, the next one first. It follows from the held allocations.
type due struct {
	queue dueQueue
}

// lapse is one reservation and when it lapses.
type lapse struct {
	until Instant
	fence uint64
}

// dueQueue is a heap that knows where each fence is, so that confirmed and cancelled reservations leave no trace.
type dueQueue struct {
	list []lapse
	at   map[uint64]int
}

// Len, Less, Swap, Push and Pop make it a heap.
func (q *dueQueue) Len() int { return len(q.list) }

// Less orders by time, and within one instant by age, so that all replicas end the same ones first.
func (q *dueQueue) Less(i, j int) bool {
	a, b := q.list[i], q.list[j]
	return a.until < b.until || a.until == b.until && a.fence < b.fence
}

// Swap keeps track of both places.
func (q *dueQueue) Swap(i, j int) {
	q.list[i], q.list[j] = q.list[j], q.list[i]
	q.at[q.list[i].fence], q.at[q.list[j].fence] = i, j
}

// Push is for the heap only.
func (q *dueQueue) Push(x any) {
	next, _ := x.(lapse)
	q.at[next.fence] = len(q.list)
	q.list = append(q.list, next)
}

// Pop is for the heap only.
func (q *dueQueue) Pop() any {
	last := q.list[len(q.list)-1]
	q.list = q.list[:len(q.list)-1]
	delete(q.at, last.fence)
	return last
}

// add notes a held allocation if it is a reservation.
func (d *due) add(a *Allocation) {
	if a.state() != Reserved {
		return
	}
	if d.queue.at == nil {
		d.queue.at = map[uint64]int{}
	}
	heap.Push(&d.queue, lapse{until: a.more.until, fence: a.fence})
}

// drop forgets an allocation, if it is there.
func (d *due) drop(a *Allocation) {
	if i, waits := d.queue.at[a.fence]; waits {
		heap.Remove(&d.queue, i)
	}
}

// next is the reservation that lapses first.
func (d *due) next() (lapse, bool) {
	if len(d.queue.list) == 0 {
		return lapse{}, false
	}
	return d.queue.list[0], true
}

// NextDue is when the next reservation lapses, perhaps in the past; false if there is none.
func (v View) NextDue() (Instant, bool) {
	next, ok := v.ledger.due.next()
	return next.until, ok
}

// checkDue verifies that exactly the reservations wait for their end, and that nobody else remembers whom it displaced.
func (l *Ledger) checkDue() error {
	reserved := 0
	for fence, a := range l.held.All() {
		if a.state() != Reserved {
			if a.more != nil && len(a.more.displaced) > 0 {
				return fmt.Errorf("allocation %q is held for good, but remembers whom it displaced", a.id)
			}
			continue
		}
		reserved++
		if i, waits := l.due.queue.at[fence]; !waits || l.due.queue.list[i] != (lapse{a.more.until, fence}) {
			return fmt.Errorf("reservation %q lapses at %d, but nobody waits for that", a.id, a.more.until)
		}
	}
	if waiting := l.due.queue.Len(); waiting != reserved || len(l.due.queue.at) != reserved {
		return fmt.Errorf("%d reservations are held, but %d are waited for", reserved, waiting)
	}
	return nil
}
