package read

import (
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/rankqueue"
	"github.com/quorate/quorate/quota/ledger/internal/permit"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// Unowned selects allocations and waiting requests without an owner.
type Unowned struct {
	// Namespace is theirs, and Prefix the beginning of their ids there; empty ones select all.
	Namespace, Prefix string
	// Tree, if not empty, selects those with a claim in that tree.
	Tree string
}

func (f *Unowned) matches(a *state.Allocation) bool {
	return a.Owner == "" && matchesName(f.Namespace, f.Prefix, a.ID()) &&
		matchesPlace(quota.AllocationFilter{Tree: f.Tree}, a)
}

// UnownedHeld returns up to max ids of held allocations without an owner, after a fence. A page may be short although
// more follow. It needs the right to manage access.
func (r Reader) UnownedHeld(f Unowned, after uint64, max int) (permit.UnownedPage, *quota.Error) {
	if err := r.needOnCluster(access.AccessManage); err != nil {
		return permit.UnownedPage{}, err
	}
	var page permit.UnownedPage
	looked := 0
	for fence, a := range r.state.Allocations.Held.From(after + 1) {
		if len(page.IDs) == max || looked == Scanned {
			return page, nil
		}
		looked++
		page.Next = fence
		if f.matches(a) {
			page.IDs = append(page.IDs, a.ID())
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
	for w := range r.state.Queue.All.From(from) {
		if len(ids) == max || looked == Scanned {
			return ids, &last, nil
		}
		looked, last = looked+1, quota.QueueTurn(w.Turn)
		if !w.IsResize() && f.matches(w.Record) {
			ids = append(ids, w.Record.ID())
		}
	}
	return ids, nil, nil
}

// TreesWithAdmins are the trees that name admins, by name.
func (r Reader) TreesWithAdmins() []permit.TreeAdmins {
	var list []permit.TreeAdmins
	for _, name := range permit.GovernedTrees(&r.state.Forest) {
		list = append(list, permit.TreeAdmins{Tree: name, Admins: permit.AllAdmins(r.state.Forest.Trees[name])})
	}
	return list
}

// CountUnowned counts held allocations, reservations and waiting requests without an owner. It visits all of them, up
// to a bound; more is true if there were more than it looked at.
func (r Reader) CountUnowned(most int) (count int, more bool) {
	looked := 0
	for _, a := range r.state.Allocations.Held.From(0) {
		if looked++; looked > most {
			return count, true
		}
		if a.Owner == "" {
			count++
		}
	}
	for w := range r.state.Queue.All.From(rankqueue.First()) {
		if looked++; looked > most {
			return count, true
		}
		if w.Record.Owner == "" && !w.IsResize() {
			count++
		}
	}
	return count, false
}
