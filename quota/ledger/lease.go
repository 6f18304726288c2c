package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// IsLease reports whether the allocation is or was a lease. It may be called at any time, on any goroutine.
func (a *Allocation) IsLease() bool { return a.lease().ttl > 0 }

// tended is an allocation in one piece of memory with all parts that a renewal replaces.
type tended struct {
	Allocation
	more  details
	lease lease
}

// withLease is a copy of the record with another lease.
func (a *Allocation) withLease(is lease) *Allocation {
	t := &tended{Allocation: *a, lease: is}
	if a.more != nil {
		t.more = *a.more
	}
	t.more.lease, t.Allocation.more = &t.lease, &t.more
	return &t.Allocation
}

// replaceLease replaces the record of a held allocation.
func (l *Ledger) replaceLease(a *Allocation) *Allocation {
	l.allocations.replaceRecord(a)
	l.deadlines.add(a)
	return a
}

// checkLease refuses an invalid TTL or invalid user data.
func (e *environment) checkLease(request *quota.Allocate) *quota.Error {
	if err := checkTTL(request.TTL); err != nil {
		return err
	}
	return e.checkData(request.Data, "user_data")
}

func checkTTL(ttl quota.Span) *quota.Error {
	if ttl < 0 || ttl > quota.MaxTTL {
		return quota.Errorf(quota.Invalid, "ttl_ms",
			"a lease lasts 1 to %d ms without a renewal, not %d; 0 leaves it to what is configured", quota.MaxTTL, ttl)
	}
	return nil
}

// claim records that the caller knows of the grant: a lease lasts its whole TTL from now on, and an allocation without
// a TTL until it is released. A revocation keeps its end.
func (b *lease) claim(now quota.Stamp) {
	if b.unclaimed && b.ttl == 0 {
		b.expires = 0
	}
	b.unclaimed = false
	if b.revokedBy == "" {
		b.begin(now)
	}
}

// initLease determines the TTL of a request whose claims are placed: its own, or else the shortest default.
func (a *Allocation) initLease(request *quota.Allocate) *quota.Error {
	if err := a.checkMaxTTL(request.TTL); err != nil {
		return err
	}
	ttl := request.TTL
	if ttl == 0 {
		ttl = a.defaultTTL()
	}
	if ttl == 0 && len(request.Data) == 0 {
		return nil
	}
	if a.more == nil {
		a.more = &details{}
	}
	a.more.lease = &lease{asked: request.TTL, ttl: ttl, askedData: request.Data, data: overlayData(nil, request.Data)}
	return nil
}

// checkMaxTTL refuses a TTL that is longer than a tree allows.
func (a *Allocation) checkMaxTTL(ttl quota.Span) *quota.Error {
	for i := range a.claims {
		if t := a.claims[i].at.tree; ttl > maxLeaseTTL(t.settings.Leases) {
			return quota.Errorf(quota.Invalid, "ttl_ms",
				"a lease in tree %s lasts at most %d ms without a renewal, not %d; name a shorter one and renew it",
				t.name, maxLeaseTTL(t.settings.Leases), ttl)
		}
	}
	return nil
}

// maxLeaseTTL is the longest TTL that the settings allow.
func maxLeaseTTL(s quota.LeaseSettings) quota.Span {
	if s.Max == 0 {
		return quota.MaxTTL
	}
	return s.Max
}

// defaultTTL is the shortest default of the items, or else of the trees, bounded by the maximum of each tree; 0 is
// none.
func (a *Allocation) defaultTTL() quota.Span {
	least, ofItems, most := quota.Span(0), quota.Span(0), quota.MaxTTL
	for i := range a.claims {
		s := a.claims[i].at.tree.settings.Leases
		least, most = shorter(least, s.Default), min(most, maxLeaseTTL(s))
		for _, p := range a.claims[i].picks() {
			ofItems = shorter(ofItems, a.claims[i].at.tree.resource(p.Resource).Items.TTL)
		}
	}
	if ofItems > 0 {
		return min(ofItems, most)
	}
	return min(least, most)
}

// shorter is the shorter of two spans, of which 0 means none.
func shorter(a, b quota.Span) quota.Span {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// renewLease extends a lease, counted from now, and changes its user data. For a waiting request it is a heartbeat.
func (l *Ledger) renewLease(c quota.Renew, m mode) Outcome {
	a, refused := l.checkRenewal(c)
	if refused != nil {
		return Outcome{Refused: refused}
	}
	if m == dryRun {
		return Outcome{Allocation: a}
	}
	if a.isWaiting() {
		w := l.queue.waiterOf(a)
		l.queue.touch(w)
		return Outcome{Allocation: w.record}
	}
	return Outcome{Allocation: l.recheckResize(l.replaceLease(l.applyRenewal(a, c)))}
}

// checkRenewal returns the allocation to renew, and refuses an invalid renewal; it changes nothing.
func (l *Ledger) checkRenewal(c quota.Renew) (*Allocation, *quota.Error) {
	out := l.allocations.findToRelease(c.ID)
	if out.Refused != nil {
		return nil, out.Refused
	}
	a := out.Allocation
	switch {
	case a.ended != nil:
		return nil, quota.Errorf(quota.Ended, "id",
			"allocation %q has ended%s and holds nothing any more; ask again under another id", a.id, a.describeEnd())
	case c.Fence != 0 && c.Fence != a.fence:
		return nil, a.otherFence(c.Fence)
	case a.isWaiting() && (c.TTL != 0 || len(c.Data)+len(c.Items) > 0):
		return nil, quota.Errorf(quota.Invalid, "id",
			"request %q waits and holds nothing yet: a renewal keeps it in the queue; leave TTL, data and items out",
			a.id)
	case a.isWaiting():
		return a, nil
	case a.State() == quota.Reserved:
		return nil, quota.Errorf(quota.InUse, "id",
			"allocation %q is a reservation, which ends at %d ms of ledger time whatever is renewed; confirm it first",
			a.id, a.more.until)
	case c.TTL != 0 && a.lease().ttl == 0:
		return nil, quota.Errorf(quota.Invalid, "ttl_ms",
			"allocation %q is not a lease: it is held until it is released; leave the TTL out", a.id)
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
			return nil, quota.Errorf(quota.NotFound, field,
				"allocation %q does not hold item %s, or not any more; stop using it", a.id, it.name)
		}
		return it, err
	})
	if err != nil {
		return nil, err
	}
	return a, l.checkDataGrowth(l.dataGrowth(a, c.Data)+l.itemGrowth(list, c.Items), "user_data")
}

// applyRenewal is the record after a renewal. A renewal is accepted after the deadline if no Expire has been applied
// yet, but it does not extend a lease under revocation.
func (l *Ledger) applyRenewal(a *Allocation, c quota.Renew) *Allocation {
	is := a.lease()
	if c.TTL != 0 {
		is.ttl = c.TTL
	}
	is.claim(l.now)
	if is.data = overlayData(is.data, c.Data); is.touched.At < l.now.At {
		is.touched = l.now
	}
	renewed := a.withLease(is)
	renewed.updateAddresses()
	l.inventory.updateHeld(renewed, c.Items)
	return renewed
}

// updateHeld changes items of a new record.
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
		held := slices.Clone(c.heldItems())
		for j := range held {
			held[j].is = held[j].is.stock.byName[held[j].name]
		}
		if len(held) > 0 {
			c.setItems(c.picks(), held)
		}
	}
}

// takeOverLease records that the caller has claimed a grant from the queue by repeating the request.
func (l *Ledger) takeOverLease(a *Allocation) *Allocation {
	is := a.lease()
	if a.ended != nil || !is.unclaimed {
		return a
	}
	is.claim(l.now)
	return l.replaceLease(a.withLease(is))
}

// checkData refuses invalid user data. A refusal never contains values, which may be secret.
func (e *environment) checkData(data []quota.Label, field string) *quota.Error {
	if len(data) > e.bounds.Data {
		return quota.Errorf(quota.Invalid, field, "there are %d pairs of user data; at most %d are allowed",
			len(data), e.bounds.Data)
	}
	size := 0
	for i, pair := range data {
		size += len(pair.Key) + len(pair.Value)
		switch {
		case pair.Key == "":
			return quota.Errorf(quota.Invalid, field, "a key of user data is empty; name it")
		case i > 0 && data[i-1].Key >= pair.Key:
			return quota.Errorf(quota.Invalid, field, "user data %q is not in order, or there twice",
				quota.Clip(pair.Key))
		}
	}
	if size > quota.MaxData {
		return quota.Errorf(quota.Invalid, field, "the user data have %d bytes; at most %d are allowed",
			size, quota.MaxData)
	}
	return nil
}

// checkLaid refuses a change of user data that is invalid or would exceed the bounds.
func (e *environment) checkLaid(data, change []quota.Label, field string) *quota.Error {
	if err := e.checkData(change, field); err != nil || len(change) == 0 {
		return err
	}
	return e.checkData(overlayData(data, change), field)
}
