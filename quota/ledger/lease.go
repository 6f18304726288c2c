package ledger

import "github.com/quorate/quorate/quota"

// lease is what only allocations with a TTL have, and those that carry user data or are renewed.
type lease struct {
	// asked is the TTL of the request, 0 for the default; ttl is what a renewal extends it by, 0 if it is no lease.
	asked, ttl quota.Span
	// expires is when it ends unless it is renewed; 0 while it is only reserved.
	expires quota.Instant
	// revokedBy is the id of the allocation that it has to give way to: then nothing moves expires any more.
	revokedBy string
	// unclaimed is true until the caller comes for what the queue has granted.
	unclaimed bool
	// touched is when its holder renewed it last.
	touched quota.Stamp
	// askedData are the user data of the request, data those of now. An ended allocation has neither.
	askedData, data []quota.Label
}

// lease is what an allocation has of one; for most it is all zero.
func (a *Allocation) lease() lease {
	if a.more == nil || a.more.lease == nil {
		return lease{}
	}
	return *a.more.lease
}

// tended is an allocation in one piece of memory with all that a renewal makes anew.
type tended struct {
	Allocation
	more  particulars
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

// refile puts another record of a held allocation in the place of the one there is.
func (l *Ledger) refile(a *Allocation) *Allocation {
	l.allocations.put(a)
	l.deadlines.add(a)
	return a
}

// begin starts the time of a lease that is granted or confirmed.
func (b *lease) begin(now quota.Stamp) {
	if b.ttl > 0 {
		b.expires = now.At + quota.Instant(b.ttl)
	}
}

// checkLease refuses a TTL that cannot be, and user data.
func (e *environment) checkLease(request quota.Allocate) *quota.Error {
	if err := checkTTL(request.TTL); err != nil {
		return err
	}
	return e.checkData(request.Data, "user_data")
}

func checkTTL(ttl quota.Span) *quota.Error {
	if ttl < 0 || ttl > quota.MaxTTL {
		return quota.Errorf(quota.Invalid, "ttl_ms", "a lease lasts 1 to %d ms without a renewal, not %d; 0 leaves it to what is configured", quota.MaxTTL, ttl)
	}
	return nil
}

// settleLease works out the TTL of a request whose claims are placed: its own, or else the shortest default.
func (a *Allocation) settleLease(request quota.Allocate) *quota.Error {
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
		a.more = &particulars{}
	}
	a.more.lease = &lease{asked: request.TTL, ttl: ttl, askedData: request.Data, data: lay(nil, request.Data)}
	return nil
}

// checkMaxTTL refuses a TTL that is longer than a tree allows.
func (a *Allocation) checkMaxTTL(ttl quota.Span) *quota.Error {
	for i := range a.claims {
		if t := a.claims[i].at.tree; ttl > maxLeaseTTL(t.settings.Leases) {
			return quota.Errorf(quota.Invalid, "ttl_ms", "a lease in tree %s lasts at most %d ms without a renewal, not %d; name a shorter one and renew it", t.name, maxLeaseTTL(t.settings.Leases), ttl)
		}
	}
	return nil
}

// maxLeaseTTL is the longest TTL that may be named.
func maxLeaseTTL(s quota.LeaseSettings) quota.Span {
	if s.Max == 0 {
		return quota.MaxTTL
	}
	return s.Max
}

// defaultTTL is the shortest default of the items, or else of the trees, but no longer than any of them allows; 0 is none.
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

// shorter is the shorter of two spans of which 0 is none.
func shorter(a, b quota.Span) quota.Span {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
