package ledger

import (
	"fmt"
	"strings"

	"github.com/quorate/quorate/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/rankqueue"
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

// Unowned selects allocations and waiting requests without an owner.
type Unowned struct {
	// Prefix is the beginning of their ids; empty selects all.
	Prefix string
	// Tree, if not empty, selects those with a claim in that tree.
	Tree string
}

// UnownedPage has ids in the order of their fences.
type UnownedPage struct {
	IDs []string
	// Next is the fence to continue after; 0 on the last page.
	Next uint64
}

func (f *Unowned) matches(a *Allocation) bool {
	return a.owner == "" && strings.HasPrefix(a.id, f.Prefix) && matchesPlace(quota.AllocationFilter{Tree: f.Tree}, a)
}

// UnownedHeld returns up to max ids of held allocations without an owner, after a fence. A page may be short although
// more follow. It needs the right to manage access.
func (r Reader) UnownedHeld(f Unowned, after uint64, max int) (UnownedPage, *quota.Error) {
	if err := r.needOnCluster(access.AccessManage); err != nil {
		return UnownedPage{}, err
	}
	var page UnownedPage
	looked := 0
	for fence, a := range r.view.ledger.allocations.held.From(after + 1) {
		if len(page.IDs) == max || looked == scanned {
			return page, nil
		}
		looked++
		page.Next = fence
		if f.matches(a) {
			page.IDs = append(page.IDs, a.id)
		}
	}
	page.Next = 0
	return page, nil
}

// UnownedWaiting returns up to max ids of waiting requests without an owner, in the order of the queue, after a turn
// (nil: from the first); next is nil on the last page. It needs the right to manage access.
func (r Reader) UnownedWaiting(
	f Unowned, after *quota.QueueTurn, max int,
) (ids []string, next *quota.QueueTurn, refused *quota.Error) {
	if err := r.needOnCluster(access.AccessManage); err != nil {
		return nil, nil, err
	}
	from := rankqueue.First()
	if after != nil {
		from = rankqueue.Rank(*after).Next()
	}
	looked, last := 0, quota.QueueTurn(from)
	for w := range r.view.ledger.queue.all.From(from) {
		if len(ids) == max || looked == scanned {
			return ids, &last, nil
		}
		looked, last = looked+1, quota.QueueTurn(w.turn)
		if !w.isResize() && f.matches(w.record) {
			ids = append(ids, w.record.id)
		}
	}
	return ids, nil, nil
}

// CountUnowned counts held allocations, reservations and waiting requests without an owner. It visits all of them, up
// to a bound; more is true if there were more than it looked at.
func (v View) CountUnowned(most int) (count int, more bool) {
	looked := 0
	for _, a := range v.ledger.allocations.held.From(0) {
		if looked++; looked > most {
			return count, true
		}
		if a.owner == "" {
			count++
		}
	}
	for w := range v.ledger.queue.all.From(rankqueue.First()) {
		if looked++; looked > most {
			return count, true
		}
		if w.record.owner == "" && !w.isResize() {
			count++
		}
	}
	return count, false
}

// TreesWithAdmins are the trees that name admins, by name.
func (r Reader) TreesWithAdmins() []TreeAdmins { return r.view.TreesWithAdmins() }

// CountUnowned counts held allocations, reservations and waiting requests without an owner, see [View.CountUnowned].
func (r Reader) CountUnowned(most int) (count int, more bool) { return r.view.CountUnowned(most) }
