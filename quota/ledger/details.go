package ledger

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// details are rare properties of allocations.
type details struct {
	principal quota.Principal
	mode      quota.Mode
	// reserveFor is the requested duration of a reservation; until is its end in ledger time, 0 once it is confirmed.
	reserveFor quota.Span
	until      quota.Instant
	forced     bool
	// preempted are who ended for it, and the leases that were revoked for it. room is their number and what they gave; it
	// is never changed in place.
	preempted []quota.Preempted
	room      *quota.MadeRoom
	// displaced are the claims that a reservation moved, in that order. Cancel restores them.
	displaced []displacement
	// undo is further state that the end of a reservation needs.
	undo *undoRecord
	// waitFor, keep and priority are the queueing parameters of the request.
	waitFor, keep quota.Span
	priority      int64
	// waiting is the place in the queue; nil unless the request waits. It is never changed in place.
	waiting *waiting
	// resize is the record in the queue of the Resize that waits for the allocation; nil for most.
	resize *Allocation
	lease  *lease // nil for most
	// declared is the time that the request declared, endsAt the end of it; 0 if there is none, and endsAt until the
	// allocation is held. A part that was split off has only the end.
	declared quota.Span
	endsAt   quota.Instant
	// resized is nil unless the request had ranges, or the allocation was resized, transferred or split. It is never
	// changed in place.
	resized *resized
}

// displacement is a claim that was moved, or an allocation that was preempted.
type displacement struct {
	id    string
	claim int
	// from is the identity of the claim's former node, with its arrival number there. home is that of the node that the
	// claim belongs to, 0 if it is the same. seat is the new arrival number, 0 if the claim was preempted.
	from, home      uint64
	fromSeq, newSeq uint64
}

// lease are the properties of allocations that have a TTL, carry user data or were renewed.
type lease struct {
	// asked is the TTL of the request, 0 for the default; ttl is the duration of a renewal, 0 if the allocation is not a
	// lease.
	asked, ttl quota.Span
	// expires is when the lease ends unless it is renewed; 0 while it is only reserved.
	expires quota.Instant
	// revokedBy is the id of the allocation that the lease is revoked for; then no renewal extends it.
	revokedBy string
	// reason says why it is revoked; nil unless it is.
	reason *quota.Reason
	// unclaimed is true until the caller claims what was granted from the queue: a lease, or an allocation without a TTL,
	// which has an end until then.
	unclaimed bool
	// touched is the time of the last renewal.
	touched quota.Stamp
	// askedData are the user data of the request, data the present ones. An ended allocation has neither.
	askedData, data []quota.Label
}

// lease returns the properties of the lease; zero for most allocations.
func (a *Allocation) lease() lease {
	if a.more == nil || a.more.lease == nil {
		return lease{}
	}
	return *a.more.lease
}

// begin starts the TTL of a lease that is granted or confirmed.
func (b *lease) begin(now quota.Stamp) {
	if b.ttl > 0 {
		b.expires = now.At + quota.Instant(b.ttl)
	}
}

// holdsLease reports whether the allocation is held as a lease. What waits for its caller without a TTL is none.
func (a *Allocation) holdsLease() bool {
	is := a.lease()
	return a.State() == quota.Held && is.isRevocable()
}

// isRevocable reports whether a lease is held, and so ends with a grace span when it must make room. An allocation
// without a TTL has none, whether it was claimed or not.
func (b *lease) isRevocable() bool { return b.expires != 0 && b.ttl > 0 }

// overlayData merges a change into user data: an empty value removes a key.
func overlayData(data, change []quota.Label) []quota.Label {
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

// undoRecord is what the end of a reservation needs, beside the displacements, to restore the state from before it. It
// is nil unless the allocation is reserved. Its size is bounded by what the reservation touched: an entry for each
// tree, for each item that changed hands, and for each dynamic node that lost a claim.
type undoRecord struct {
	trees []treeVersion
	nodes []dynamicNode // parents before children
	items []itemBefore
	// arrival is the last number of the queue at the time of the reservation.
	arrival uint64
	// liveBytes is the size of the ledger, as bounded by LiveBytes, before the reservation.
	liveBytes int64
}

// treeVersion has the versions of a tree before and after a reservation.
type treeVersion struct {
	tree          string
	before, after uint64
}

// dynamicNode is a dynamic node that lost a claim. It is removed if that was its last one.
type dynamicNode struct {
	tree, path string
	id         uint64
}

// itemBefore is an item that a reservation has changed.
type itemBefore struct {
	name quota.ItemName
	// was is the item before the reservation; nil if there was none. Its stock is not used, because the record may have
	// been restored from a snapshot.
	was *item
	// turn is the stateSeq that the item got; 0 if it was removed.
	turn uint64
}

// itemTrace records the items that one command changes, in the order of their first changes.
type itemTrace struct {
	list  []itemBefore
	index map[quota.ItemName]int
	now   []*item // the last records of the listed items
	// liveBytes is the size of the ledger when the trace begins.
	liveBytes int64
}

// resized is what an allocation remembers of its request if it may hold something else: because the request had ranges
// or alternatives, or because what it holds was changed.
type resized struct {
	// generation is that of the last change that named one.
	generation uint64
	// first are the claims of the request, by which a repetition of it is known; nil if they are the present ones. If the
	// request had alternatives, they are those of the given one.
	first []quota.Claim
	// anyOf are the alternatives of the request; nil for most. given is the number of the one that the record has.
	anyOf [][]quota.Claim
	given int
	// splitFrom is the id of the allocation that this one was a part of; empty for most.
	splitFrom string
	// dropped is the highest generation of a resize that waited and was not carried out.
	dropped uint64
	// change is the digest of the last change, by which its repetition is known, see wantedHolding.digest; else 0.
	change uint64
}

// anyOf are the alternatives of the request; nil if it had none.
func (a *Allocation) anyOf() [][]quota.Claim {
	if a.more == nil || a.more.resized == nil {
		return nil
	}
	return a.more.resized.anyOf
}

// generation is that of the last change that named one.
func (a *Allocation) generation() uint64 {
	if a.more == nil || a.more.resized == nil {
		return 0
	}
	return a.more.resized.generation
}

// given is the number of the alternative that the allocation was granted; 0 if its request had none, or holds nothing.
func (a *Allocation) given() int {
	if a.fence == 0 || a.more == nil || a.more.resized == nil {
		return 0
	}
	return a.more.resized.given
}

// rangesAt are the ranges that the request asked for at a node, with their least amounts.
func (a *Allocation) rangesAt(tree, node string) []quota.RangeInfo {
	if !a.hasRanges() {
		return nil
	}
	first := a.more.resized.first
	i := slices.IndexFunc(first, func(c quota.Claim) bool { return c.Tree == tree && c.Node == node })
	if i < 0 {
		return nil
	}
	var list []quota.RangeInfo
	for _, r := range first[i].Ranges {
		list = append(list, quota.RangeInfo{AmountRange: r, Least: amountIn(first[i].Amounts, r.Resource)})
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

// splitFrom is the id of the allocation that this one was split from; empty for most.
func (a *Allocation) splitFrom() string {
	if a.more == nil || a.more.resized == nil {
		return ""
	}
	return a.more.resized.splitFrom
}

// hasRanges is true if the request of the allocation had ranges.
func (a *Allocation) hasRanges() bool {
	return a.more != nil && a.more.resized != nil && asksForRanges(a.more.resized.first)
}

// amountIn is the amount of a resource; 0 if it is not there.
func amountIn(v quota.Vector, resource string) quota.Amount {
	if i, found := findIn(v, resource); found {
		return v[i].Amount
	}
	return 0
}

func asksForRanges(claims []quota.Claim) bool {
	for i := range claims {
		if len(claims[i].Ranges) > 0 {
			return true
		}
	}
	return false
}

// findIn returns where a resource is in a vector, or would be.
func findIn(v quota.Vector, resource string) (int, bool) {
	return slices.BinarySearchFunc(v, resource, func(c quota.Component, name string) int {
		return strings.Compare(c.Resource, name)
	})
}
