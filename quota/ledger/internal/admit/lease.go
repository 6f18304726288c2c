package admit

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// ReplaceLease replaces the record of a held allocation.
func ReplaceLease(s *state.State, a *state.Allocation) *state.Allocation {
	s.Allocations.ReplaceRecord(a)
	s.Deadlines.Add(a)
	return a
}

func checkLease(e *state.Environment, request *quota.Allocate) *quota.Error {
	if err := checkTTL(request.TTL); err != nil {
		return err
	}
	return CheckData(e, request.Data, "user_data")
}

func checkTTL(ttl quota.Span) *quota.Error {
	if ttl < 0 || ttl > quota.MaxTTL {
		return quota.Errorf(quota.Invalid, "ttl_ms",
			"a lease lasts 1 to %d ms without a renewal, not %d; 0 leaves it to what is configured", quota.MaxTTL, ttl)
	}
	return nil
}

// claimLease records that the caller knows of the grant: a lease lasts its whole TTL from now on, and an allocation
// without a TTL until it is released. A revocation keeps its end.
func claimLease(b *state.Lease, now quota.Stamp) {
	if b.Unclaimed && b.TTL == 0 {
		b.Expires = 0
	}
	b.Unclaimed = false
	if b.RevokedBy == "" {
		b.Begin(now)
	}
}

// initLease determines the TTL of a request whose claims are placed: its own, or else the shortest default.
func initLease(a *state.Allocation, request *quota.Allocate) *quota.Error {
	if err := checkMaxTTL(a, request.TTL); err != nil {
		return err
	}
	ttl := request.TTL
	if ttl == 0 {
		ttl = defaultTTL(a)
	}
	if ttl == 0 && len(request.Data) == 0 {
		return nil
	}
	if a.More == nil {
		a.More = &state.Details{}
	}
	a.More.Lease = &state.Lease{
		Asked: request.TTL, TTL: ttl, AskedData: request.Data, Data: state.OverlayData(nil, request.Data),
	}
	return nil
}

// checkMaxTTL refuses a TTL that is longer than a tree allows.
func checkMaxTTL(a *state.Allocation, ttl quota.Span) *quota.Error {
	for i := range a.Claims {
		if t := a.Claims[i].At.Tree; ttl > MaxLeaseTTL(t.Settings.Leases) {
			return quota.Errorf(quota.Invalid, "ttl_ms",
				"a lease in tree %s lasts at most %d ms without a renewal, not %d; name a shorter one and renew it",
				t.Name, MaxLeaseTTL(t.Settings.Leases), ttl)
		}
	}
	return nil
}

// MaxLeaseTTL is the longest TTL that the settings allow.
func MaxLeaseTTL(s quota.LeaseSettings) quota.Span {
	if s.Max == 0 {
		return quota.MaxTTL
	}
	return s.Max
}

// defaultTTL is the shortest default of the items, or else of the trees, bounded by the maximum of each tree; 0 is
// none.
func defaultTTL(a *state.Allocation) quota.Span {
	least, ofItems, most := quota.Span(0), quota.Span(0), quota.MaxTTL
	for i := range a.Claims {
		s := a.Claims[i].At.Tree.Settings.Leases
		least, most = shorter(least, s.Default), min(most, MaxLeaseTTL(s))
		for _, p := range a.Claims[i].Picks() {
			ofItems = shorter(ofItems, a.Claims[i].At.Tree.Resource(p.Resource).Items.TTL)
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

// Renew extends a lease, counted from now, and changes its user data. For a waiting request it is a heartbeat.
func Renew(s *state.State, c quota.Renew, m state.Mode) state.Outcome {
	a, refused := checkRenewal(s, c)
	if refused != nil {
		return state.Outcome{Refused: refused}
	}
	if m == state.DryRun {
		return state.Outcome{Allocation: a}
	}
	if a.IsWaiting() {
		w := s.Queue.WaiterOf(a)
		Touch(&s.Queue, w)
		return state.Outcome{Allocation: w.Record}
	}
	return state.Outcome{Allocation: recheckResize(s, ReplaceLease(s, applyRenewal(s, a, c)))}
}

// checkRenewal finds the allocation and changes nothing.
func checkRenewal(s *state.State, c quota.Renew) (*state.Allocation, *quota.Error) {
	out := FindToRelease(&s.Allocations, c.ID)
	if out.Refused != nil {
		return nil, out.Refused
	}
	a := out.Allocation
	switch {
	case a.Ended != nil:
		return nil, quota.Errorf(quota.Ended, "id",
			"allocation %q has ended%s and holds nothing any more; ask again under another id", a.ID(), describeEnd(a))
	case c.Fence != 0 && c.Fence != a.Fence():
		return nil, otherFence(a, c.Fence)
	case a.IsWaiting() && (c.TTL != 0 || len(c.Data)+len(c.Items) > 0):
		return nil, quota.Errorf(quota.Invalid, "id",
			"request %q waits and holds nothing yet: a renewal keeps it in the queue; leave TTL, data and items out",
			a.ID())
	case a.IsWaiting():
		return a, nil
	case a.State() == quota.Reserved:
		return nil, quota.Errorf(quota.InUse, "id",
			"allocation %q is a reservation, which ends at %d ms of ledger time whatever is renewed; confirm it first",
			a.ID(), a.More.Until)
	case c.TTL != 0 && a.Lease().TTL == 0:
		return nil, quota.Errorf(quota.Invalid, "ttl_ms",
			"allocation %q is not a lease: it is held until it is released; leave the TTL out", a.ID())
	}
	if err := checkTTL(c.TTL); err != nil {
		return nil, err
	}
	if err := checkMaxTTL(a, c.TTL); err != nil {
		return nil, err
	}
	if err := checkLaid(&s.Environment, a.Lease().Data, c.Data, "user_data"); err != nil {
		return nil, err
	}
	find := func(name quota.ItemName, field string) (*state.Item, *quota.Error) {
		it, err := findItem(&s.Forest, name, field)
		if err == nil && it.Owner != a.Fence() {
			return nil, quota.Errorf(quota.NotFound, field,
				"allocation %q does not hold item %s, or not any more; stop using it", a.ID(), it.Name)
		}
		return it, err
	}
	list, err := checkUpdates(&s.Environment, c.Items, "items", find)
	if err != nil {
		return nil, err
	}
	return a, s.CheckDataGrowth(s.DataGrowth(a, c.Data)+s.ItemGrowth(list, c.Items), "user_data")
}

// applyRenewal is the record after a renewal. A renewal is accepted after the deadline if no Expire has been applied
// yet, but it does not extend a lease under revocation.
func applyRenewal(s *state.State, a *state.Allocation, c quota.Renew) *state.Allocation {
	lease := a.Lease()
	if c.TTL != 0 {
		lease.TTL = c.TTL
	}
	claimLease(&lease, s.Now)
	if lease.Data = state.OverlayData(lease.Data, c.Data); lease.Touched.At < s.Now.At {
		lease.Touched = s.Now
	}
	renewed := a.WithLease(lease)
	updateAddresses(renewed)
	updateHeld(&s.Inventory, renewed, c.Items)
	return renewed
}

func updateHeld(inv *state.Inventory, a *state.Allocation, updates []quota.ItemUpdate) {
	if len(updates) == 0 {
		return
	}
	for _, u := range updates {
		updateItem(inv, inv.Forest.Trees[u.Item.Tree].Resource(u.Item.Resource).Stock.ByName[u.Item.Name], u)
	}
	a.Claims = slices.Clone(a.Claims)
	for i := range a.Claims {
		c := &a.Claims[i]
		held := slices.Clone(c.HeldItems())
		for j := range held {
			held[j].Is = held[j].Is.Stock.ByName[held[j].Name]
		}
		if len(held) > 0 {
			c.SetItems(c.Picks(), held)
		}
	}
}

// takeOverLease records that the caller has claimed a grant from the queue by repeating the request.
func takeOverLease(s *state.State, a *state.Allocation) *state.Allocation {
	lease := a.Lease()
	if a.Ended != nil || !lease.Unclaimed {
		return a
	}
	claimLease(&lease, s.Now)
	return ReplaceLease(s, a.WithLease(lease))
}

// CheckData refuses invalid user data. A refusal never contains values, which may be secret.
func CheckData(e *state.Environment, data []quota.Label, field string) *quota.Error {
	if len(data) > e.Bounds.Data {
		return quota.Errorf(quota.Invalid, field, "there are %d pairs of user data; at most %d are allowed",
			len(data), e.Bounds.Data)
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

func checkLaid(e *state.Environment, data, change []quota.Label, field string) *quota.Error {
	if err := CheckData(e, change, field); err != nil || len(change) == 0 {
		return err
	}
	return CheckData(e, state.OverlayData(data, change), field)
}
