package state

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// Details are rare properties of allocations.
type Details struct {
	Principal quota.Principal
	Mode      quota.Mode
	// ReserveFor is the requested duration of a reservation; until is its end in ledger time, 0 once it is confirmed.
	ReserveFor quota.Span
	Until      quota.Instant
	Forced     bool
	// Preempted are who ended for it, and the leases that were revoked for it. room is their number and what they gave; it
	// is never changed in place.
	Preempted []quota.Preempted
	Room      *quota.MadeRoom
	// Displaced are the claims that a reservation moved, in that order. Cancel restores them.
	Displaced []Displacement
	// Undo is further state that the end of a reservation needs.
	Undo *UndoRecord
	// WaitFor, keep and priority are the queueing parameters of the request.
	WaitFor, Keep quota.Span
	Priority      int64
	// Waiting is the place in the queue; nil unless the request waits. It is never changed in place.
	Waiting *Waiting
	// Resize is the record in the queue of the Resize that waits for the allocation; nil for most.
	Resize *Allocation
	Lease  *Lease // nil for most
	// Declared is the time that the request declared, EndsAt the end of it; 0 if there is none, and EndsAt until the
	// allocation is held. A part that was split off has only the end.
	Declared quota.Span
	EndsAt   quota.Instant
	// Resized is nil unless the request had ranges, or the allocation was resized, transferred or split. It is never
	// changed in place.
	Resized *Resized
}

// Displacement is a claim that was moved, or an allocation that was preempted.
type Displacement struct {
	ID    string
	Claim int
	// From is the identity of the claim's former node, with its arrival number there. Home is that of the node that the
	// claim belongs to, 0 if it is the same. NewSeq is the new arrival number, 0 if the claim was preempted.
	From, Home      uint64
	FromSeq, NewSeq uint64
}

// Lease are the properties of allocations that have a TTL, carry user data or were renewed.
type Lease struct {
	// Asked is the TTL of the request, 0 for the default; ttl is the duration of a renewal, 0 if the allocation is not a
	// lease.
	Asked, TTL quota.Span
	// Expires is when the lease ends unless it is renewed; 0 while it is only reserved.
	Expires quota.Instant
	// RevokedBy is the id of the allocation that the lease is revoked for; then no renewal extends it.
	RevokedBy string
	// Reason says why it is revoked; nil unless it is.
	Reason *quota.Reason
	// Unclaimed is true until the caller claims what was granted from the queue: a lease, or an allocation without a TTL,
	// which has an end until then.
	Unclaimed bool
	// Touched is the time of the last renewal.
	Touched quota.Stamp
	// AskedData are the user data of the request, data the present ones. An ended allocation has neither.
	AskedData, Data []quota.Label
}

// Lease returns the properties of the lease; zero for most allocations.
func (a *Allocation) Lease() Lease {
	if a.More == nil || a.More.Lease == nil {
		return Lease{}
	}
	return *a.More.Lease
}

// Begin starts the TTL of a lease that is granted or confirmed.
func (b *Lease) Begin(now quota.Stamp) {
	if b.TTL > 0 {
		b.Expires = now.At + quota.Instant(b.TTL)
	}
}

// HoldsLease reports whether the allocation is held as a lease. What waits for its caller without a TTL is none.
func (a *Allocation) HoldsLease() bool {
	lease := a.Lease()
	return a.State() == quota.Held && lease.IsRevocable()
}

// IsRevocable reports whether a lease is held, and so ends with a grace span when it must make room. An allocation
// without a TTL has none, whether it was claimed or not.
func (b *Lease) IsRevocable() bool { return b.Expires != 0 && b.TTL > 0 }

// OverlayData merges a change into user data: an empty value removes a key.
func OverlayData(data, change []quota.Label) []quota.Label {
	if len(change) == 0 {
		return data
	}
	laid := slices.Clone(data)
	for _, pair := range change {
		i, known := slices.BinarySearchFunc(laid, pair.Key,
			func(l quota.Label, key string) int { return strings.Compare(l.Key, key) })
		switch {
		case known && pair.Value == "":
			laid = slices.Delete(laid, i, i+1)
		case known:
			laid[i].Value = pair.Value
		case pair.Value != "":
			laid = slices.Insert(laid, i, pair)
		}
	}
	return laid
}

// UndoRecord is what the end of a reservation needs, beside the displacements, to restore the state from before it. It
// is nil unless the allocation is reserved. Its size is bounded by what the reservation touched: an entry for each
// tree, for each item that changed hands, and for each dynamic node that lost a claim.
type UndoRecord struct {
	Trees []TreeVersion
	Nodes []DynamicNode // parents before children
	Items []ItemBefore
	// Arrival is the last number of the queue at the time of the reservation.
	Arrival uint64
	// LiveBytes is the size of the ledger, as bounded by LiveBytes, before the reservation.
	LiveBytes int64
}

// TreeVersion has the versions of a tree before and after a reservation.
type TreeVersion struct {
	Tree          string
	Before, After uint64
}

// DynamicNode is a dynamic node that lost a claim. It is removed if that was its last one.
type DynamicNode struct {
	Tree, Path string
	ID         uint64
}

// ItemBefore is an item that a reservation has changed.
type ItemBefore struct {
	Name quota.ItemName
	// Was is the item before the reservation; nil if there was none. Its stock is not used, because the record may have
	// been restored from a snapshot.
	Was *Item
	// StateSeq is that of the item after the reservation; 0 if it was removed.
	StateSeq uint64
}

// ItemTrace records the items that one command changes, in the order of their first changes.
type ItemTrace struct {
	List  []ItemBefore
	Index map[quota.ItemName]int
	Now   []*Item // the last records of the listed items
	// LiveBytes is the size of the ledger when the trace begins.
	LiveBytes int64
}

// Resized is what an allocation remembers of its request if it may hold something else: because the request had ranges
// or alternatives, or because what it holds was changed.
type Resized struct {
	// Generation is that of the last change that named one.
	Generation uint64
	// First are the claims of the request, by which a repetition of it is known; nil if they are the present ones. If the
	// request had alternatives, they are those of the given one.
	First []quota.Claim
	// AnyOf are the alternatives of the request; nil for most. Given is the number of the one that the record has.
	AnyOf [][]quota.Claim
	Given int
	// SplitFrom is the id of the allocation that this one was a part of; empty for most.
	SplitFrom string
	// Dropped is the highest generation of a resize that waited and was not carried out.
	Dropped uint64
	// Change is the digest of the last change, by which its repetition is known, see the digest of admit's wantedHolding;
	// else 0.
	Change uint64
}

// AnyOf are the alternatives of the request; nil if it had none.
func (a *Allocation) AnyOf() [][]quota.Claim {
	if a.More == nil || a.More.Resized == nil {
		return nil
	}
	return a.More.Resized.AnyOf
}

// Generation is that of the last change that named one.
func (a *Allocation) Generation() uint64 {
	if a.More == nil || a.More.Resized == nil {
		return 0
	}
	return a.More.Resized.Generation
}

// Given is the number of the alternative that the allocation was granted; 0 if its request had none, or holds nothing.
func (a *Allocation) Given() int {
	if a.fence == 0 || a.More == nil || a.More.Resized == nil {
		return 0
	}
	return a.More.Resized.Given
}

// rangesAt are the ranges that the request asked for at a node, with their least amounts.
func (a *Allocation) rangesAt(tree, node string) []quota.RangeInfo {
	if !a.HasRanges() {
		return nil
	}
	first := a.More.Resized.First
	i := slices.IndexFunc(first, func(c quota.Claim) bool { return c.Tree == tree && c.Node == node })
	if i < 0 {
		return nil
	}
	var list []quota.RangeInfo
	for _, r := range first[i].Ranges {
		list = append(list, quota.RangeInfo{AmountRange: r, Least: AmountIn(first[i].Amounts, r.Resource)})
	}
	return list
}

// resizeInfo is what readers see of a waiting resize.
func (a *Allocation) resizeInfo() *quota.WaitingResize {
	info := a.Info()
	for i := range info.Claims {
		info.Claims[i].Ranges = nil
	}
	return &quota.WaitingResize{Generation: info.Generation, Claims: info.Claims, Waiting: *info.Waiting}
}

// SplitFrom is the id of the allocation that this one was split from; empty for most.
func (a *Allocation) SplitFrom() string {
	if a.More == nil || a.More.Resized == nil {
		return ""
	}
	return a.More.Resized.SplitFrom
}

// HasRanges is true if the request of the allocation had ranges.
func (a *Allocation) HasRanges() bool {
	return a.More != nil && a.More.Resized != nil && AsksForRanges(a.More.Resized.First)
}

// AmountIn is the amount of a resource; 0 if it is not there.
func AmountIn(v quota.Vector, resource string) quota.Amount {
	if i, found := FindIn(v, resource); found {
		return v[i].Amount
	}
	return 0
}

func AsksForRanges(claims []quota.Claim) bool {
	for i := range claims {
		if len(claims[i].Ranges) > 0 {
			return true
		}
	}
	return false
}

// FindIn returns where a resource is in a vector, or would be.
func FindIn(v quota.Vector, resource string) (int, bool) {
	return slices.BinarySearchFunc(v, resource, func(c quota.Component, name string) int {
		return strings.Compare(c.Resource, name)
	})
}

// IsLease reports whether the allocation is or was a lease. It may be called at any time, on any goroutine.
func (a *Allocation) IsLease() bool { return a.Lease().TTL > 0 }

// WithLease is a copy of the record with another lease.
func (a *Allocation) WithLease(lease Lease) *Allocation {
	t := &tended{Allocation: *a, lease: lease}
	if a.More != nil {
		t.more = *a.More
	}
	t.more.Lease, t.More = &t.lease, &t.more
	return &t.Allocation
}

// WaitingResize is the record in the queue of the resize that waits for the allocation; nil if none does.
func (a *Allocation) WaitingResize() *Allocation {
	if a.More == nil {
		return nil
	}
	return a.More.Resize
}

// tended is an allocation in one piece of memory with all parts that a renewal replaces.
type tended struct {
	Allocation
	more  Details
	lease Lease
}
