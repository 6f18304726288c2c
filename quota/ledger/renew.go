package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// renew extends a lease from now on, and changes its user data; it keeps a request in the queue.
func (l *Ledger) renew(c quota.Renew, m mode) Outcome {
	a, refused := l.renewable(c)
	if refused != nil {
		return Outcome{Refused: refused}
	}
	if m == dryRun {
		return Outcome{Allocation: a}
	}
	if a.waits() {
		w := l.queue.waiterOf(a)
		l.queue.sign(w)
		return Outcome{Allocation: w.record}
	}
	return Outcome{Allocation: l.refile(l.renewed(a, c))}
}

// renewable finds what a renewal is about, and refuses what cannot be; it changes nothing.
func (l *Ledger) renewable(c quota.Renew) (*Allocation, *quota.Error) {
	out := l.allocations.releasable(c.ID)
	if out.Refused != nil {
		return nil, out.Refused
	}
	a := out.Allocation
	switch {
	case a.ended != nil:
		return nil, quota.Errorf(quota.Ended, "id", "allocation %q has ended%s and holds nothing any more; ask again under another id", a.id, a.how())
	case c.Fence != 0 && c.Fence != a.fence:
		return nil, quota.Errorf(quota.FenceMismatch, "fence", "allocation %q has fence %d, not %d: another grant took the place of that one; stop using what it held", a.id, a.fence, c.Fence)
	case a.waits() && (c.TTL != 0 || len(c.Data)+len(c.Items) > 0):
		return nil, quota.Errorf(quota.Invalid, "id", "request %q waits and holds nothing yet: a renewal keeps it in the queue; leave TTL, data and items out", a.id)
	case a.waits():
		return a, nil
	case a.state() == quota.Reserved:
		return nil, quota.Errorf(quota.InUse, "id", "allocation %q is a reservation, which ends at %d ms of ledger time whatever is renewed; confirm it first", a.id, a.more.until)
	case c.TTL != 0 && a.lease().ttl == 0:
		return nil, quota.Errorf(quota.Invalid, "ttl_ms", "allocation %q is no lease: it is held until it is released; leave the TTL out", a.id)
	}
	if err := checkTTL(c.TTL); err != nil {
		return nil, err
	}
	if err := a.checkMaxTTL(c.TTL); err != nil {
		return nil, err
	}
	if err := l.checkLaid(a.lease().data, c.Data, "user_data"); err != nil {
		return nil, err
	}
	list, err := l.checkUpdates(c.Items, "items", func(name quota.ItemName, field string) (*item, *quota.Error) {
		it, err := l.forest.findItem(name, field)
		if err == nil && it.owner != a.fence {
			return nil, quota.Errorf(quota.NotFound, field, "allocation %q does not hold item %s, or not any more; stop using it", a.id, it.name)
		}
		return it, err
	})
	if err != nil {
		return nil, err
	}
	return a, l.checkDataGrowth(l.dataGrowth(a, c.Data)+l.itemGrowth(list, c.Items), "user_data")
}

// renewed is the record after a renewal, which wins over an end that no log entry has brought yet, but not over those who
// have been promised the room.
func (l *Ledger) renewed(a *Allocation, c quota.Renew) *Allocation {
	is := a.lease()
	if c.TTL != 0 {
		is.ttl = c.TTL
	}
	if is.revokedBy == "" {
		is.begin(l.now)
	}
	if is.unclaimed, is.data = false, lay(is.data, c.Data); is.touched.At < l.now.At {
		is.touched = l.now
	}
	renewed := a.withLease(is)
	renewed.settleAddresses()
	l.inventory.updateHeld(renewed, c.Items)
	return renewed
}

// updateHeld changes items of a fresh record.
func (inv *inventory) updateHeld(a *Allocation, updates []quota.ItemUpdate) {
	if len(updates) == 0 {
		return
	}
	for _, u := range updates {
		inv.updateItem(inv.forest.trees[u.Item.Tree].resource(u.Item.Resource).stock.byName[u.Item.Name], u)
	}
	a.claims = slices.Clone(a.claims)
	for i := range a.claims {
		c := &a.claims[i]
		held := slices.Clone(c.held())
		for j := range held {
			held[j].is = held[j].is.stock.byName[held[j].name]
		}
		if len(held) > 0 {
			c.setItems(c.picks(), held)
		}
	}
}

// claim is what the caller of a lease from the queue does by asking for it again: it lasts its whole time from now on.
func (l *Ledger) claim(a *Allocation) *Allocation {
	is := a.lease()
	if a.ended != nil || !is.unclaimed {
		return a
	}
	is.unclaimed = false
	if is.revokedBy == "" {
		is.begin(l.now)
	}
	return l.refile(a.withLease(is))
}
