package ledger

import (
	"strings"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/rankqueue"
)

// Unowned selects allocations and waiting requests without an owner.
type Unowned struct {
	// Prefix is the beginning of their ids; empty selects all.
	Prefix string
	// Tree, if not empty, selects those with a claim in that tree.
	Tree string
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
	for fence, a := range r.ledger.allocations.held.From(after + 1) {
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
	for w := range r.ledger.queue.all.From(from) {
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

// TreesWithAdmins are the trees that name admins, by name.
func (r Reader) TreesWithAdmins() []TreeAdmins {
	var list []TreeAdmins
	for _, name := range r.ledger.forest.governedTrees() {
		list = append(list, TreeAdmins{name, r.ledger.forest.trees[name].allAdmins()})
	}
	return list
}

// CountUnowned counts held allocations, reservations and waiting requests without an owner. It visits all of them, up
// to a bound; more is true if there were more than it looked at.
func (r Reader) CountUnowned(most int) (count int, more bool) {
	looked := 0
	for _, a := range r.ledger.allocations.held.From(0) {
		if looked++; looked > most {
			return count, true
		}
		if a.owner == "" {
			count++
		}
	}
	for w := range r.ledger.queue.all.From(rankqueue.First()) {
		if looked++; looked > most {
			return count, true
		}
		if w.record.owner == "" && !w.isResize() {
			count++
		}
	}
	return count, false
}
