package ledger

import (
	"fmt"

	"github.com/quorate/quorate/quota"
)

// adoptAllocations gives an owner to allocations that have none. Nothing else of them changes, so it needs no journal
// entry and unblocks nobody.
func (g guard) adoptAllocations(c quota.AdoptAllocations, m mode) Outcome {
	if err := g.checkAdoption(c); err != nil {
		return Outcome{Refused: err}
	}
	var out Outcome
	seen := make(map[string]bool, len(c.IDs)) // look-ups only
	for _, id := range c.IDs {
		a := g.allocations.findByID(id)
		if a == nil || a.ended != nil || a.owner != "" || seen[id] {
			continue
		}
		seen[id] = true
		out.Adopted++
		if m == carryOut {
			g.setOwner(a, c.Owner)
			g.journal.changes = append(g.journal.changes, quota.Change{
				Kind: quota.Changed, Field: "owner of " + id, After: c.Owner,
			})
		}
	}
	out.Repeated = out.Adopted == 0
	return out
}

// setOwner replaces the record of an allocation or a waiting request by one with an owner.
func (g guard) setOwner(a *Allocation, owner string) {
	if a.isWaiting() {
		g.ownWaiter(g.queue.waiterOf(a), owner)
		return
	}
	is := *a
	is.owner = owner
	g.allocations.replaceRecord(&is)
	if resize := is.waitingResize(); resize != nil {
		g.ownWaiter(g.queue.waiterOf(resize), owner)
	}
}

// ownWaiter gives an owner to a waiter that has none.
func (g guard) ownWaiter(w *waiter, owner string) {
	g.queue.replaceWaiting(w, *w.record.more.waiting)
	w.record.owner = owner // no reader has the new record yet
	g.queue.countOwner(owner, 1)
}

func (g guard) checkAdoption(c quota.AdoptAllocations) *quota.Error {
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
	if err := g.env.book.CheckOwner(c.Owner); err != nil {
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
