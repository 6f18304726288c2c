package ledger

import (
	"fmt"

	"github.com/quorate/quorate/quota"
)

// adoptAllocations gives an owner to allocations that have none. Nothing else of them changes, so it needs no journal
// entry and unblocks nobody.
func (l guard) adoptAllocations(c quota.AdoptAllocations, m mode) Outcome {
	if err := l.checkAdoption(c); err != nil {
		return Outcome{Refused: err}
	}
	var out Outcome
	seen := make(map[string]bool, len(c.IDs)) // look-ups only
	for _, id := range c.IDs {
		a := l.allocations.findByID(id)
		if a == nil || a.ended != nil || a.owner != "" || seen[id] {
			continue
		}
		seen[id] = true
		out.Adopted++
		if m == carryOut {
			l.setOwner(a, c.Owner)
			l.journal.changes = append(l.journal.changes, quota.Change{
				Kind: quota.Changed, Field: "owner of " + id, After: c.Owner,
			})
		}
	}
	out.Repeated = out.Adopted == 0
	return out
}

// setOwner replaces the record of an allocation or a waiting request by one with an owner.
func (l guard) setOwner(a *Allocation, owner string) {
	if a.isWaiting() {
		l.ownWaiter(l.queue.waiterOf(a), owner)
		return
	}
	is := *a
	is.owner = owner
	l.allocations.replaceRecord(&is)
	if resize := is.waitingResize(); resize != nil {
		l.ownWaiter(l.queue.waiterOf(resize), owner)
	}
}

// ownWaiter gives an owner to a waiter that has none.
func (l guard) ownWaiter(w *waiter, owner string) {
	l.queue.replaceWaiting(w, *w.record.more.waiting)
	w.record.owner = owner // no reader has the new record yet
	l.queue.countOwner(owner, 1)
}

func (l guard) checkAdoption(c quota.AdoptAllocations) *quota.Error {
	if n := len(c.Reason); n > quota.MaxReason {
		return quota.Errorf(quota.Invalid, "reason", "the reason has %d bytes; at most %d are allowed", n, quota.MaxReason)
	}
	if n := len(c.IDs); n < 1 || n > quota.MaxAdopted {
		return quota.Errorf(quota.Invalid, "ids", "%d ids are named; 1 to %d are allowed", n, quota.MaxAdopted)
	}
	for i, id := range c.IDs {
		if err := checkID(id); err != nil {
			err.Field = fmt.Sprintf("ids[%d]", i)
			return err
		}
	}
	if err := l.book.CheckOwner(c.Owner); err != nil {
		return accessRefusal(err)
	}
	return nil
}

// UnownedPage has ids in the order of their fences.
type UnownedPage struct {
	IDs []string
	// Next is the fence to continue after; 0 on the last page.
	Next uint64
}
