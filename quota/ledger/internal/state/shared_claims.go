package state

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/idindex"
)

// sharedClaims lets allocations that claim the same amounts at the same nodes share the memory of their claims. Many
// do: jobs of one kind in one queue. A record then takes 96 bytes instead of 192, its tombstone 144 instead of 336, and
// ending an allocation reads claims that other commands have read before, instead of claims in memory that was not
// touched since the grant (docs/adr/0077-memory-layout-of-allocations.md).
//
// Shared claims are never changed: only claims without details are shared, and whatever gives a claim details or
// another node copies it first. What is shared is not part of the state.
type sharedClaims struct {
	// recent has claims by a hash of their content; others replace them. It is nil until the first claims are shared.
	recent [][]PlacedClaim
	draft  draft
}

// sharedBits says how many different claims are remembered: 2^sharedBits, so that each of thousands of nodes has some.
const sharedBits = 13

// draft is memory for an allocation while its claims are placed. It is used again for the next one.
type draft struct {
	allocation  Allocation
	claimSpace  []PlacedClaim
	amountSpace []PlacedAmount
}

// Begin returns an allocation with capacity for the claims and amounts of a request, otherwise empty. It is valid until
// the next call; keep returns a permanent one.
func (s *sharedClaims) Begin(request *quota.Allocate) *Allocation {
	d, amounts := &s.draft, 0
	for i := range request.Claims {
		amounts += CountAmounts(&request.Claims[i])
	}
	d.claimSpace = zeroed(d.claimSpace, len(request.Claims))
	d.amountSpace = zeroed(d.amountSpace, amounts)
	rest := d.amountSpace
	for i := range request.Claims {
		n := CountAmounts(&request.Claims[i])
		d.claimSpace[i].Amounts, rest = rest[:n:n], rest[n:]
	}
	d.allocation = Allocation{id: request.ID, hash: idindex.Hash(request.ID), Claims: d.claimSpace}
	if len(request.Labels) > 0 {
		labels := request.Labels // of its own, so that the request does not escape to the heap
		d.allocation.labelled = &labels
	}
	return &d.allocation
}

// zeroed makes a new list only if the given one has too little memory.
func zeroed[T any](list []T, n int) []T {
	if n > cap(list) {
		return make([]T, n)
	}
	list = list[:n]
	clear(list)
	return list
}

func CountAmounts(c *quota.Claim) int { return len(c.Amounts) + len(c.Picks) }

// Keep returns a permanent copy of the draft. Its claims are shared if that is possible and wanted.
func (s *sharedClaims) Keep(share bool) *Allocation {
	d := &s.draft.allocation
	if share && d.IsShareable() {
		a := *d
		a.Claims = s.share(a.Claims)
		return &a
	}
	if len(d.Claims) == 1 && len(d.Claims[0].Amounts) <= inlineAmounts {
		r := &record{Allocation: *d}
		r.CopyClaims(&r.Allocation)
		return &r.Allocation
	}
	a := *d
	a.Claims = copyClaims(a.Claims)
	return &a
}

// IsShareable is true if no later step of the admission gives a claim details.
func (a *Allocation) IsShareable() bool {
	if a.More != nil {
		return false
	}
	for i := range a.Claims {
		c := &a.Claims[i]
		if c.More != nil || c.Asked != c.Placed || c.At.Special || c.At.IsDetached() {
			return false
		}
	}
	return true
}

// share returns claims that must never be changed.
func (s *sharedClaims) share(claims []PlacedClaim) []PlacedClaim {
	if s.recent == nil {
		s.recent = make([][]PlacedClaim, 1<<sharedBits)
	}
	known := &s.recent[hashClaims(claims)>>(64-sharedBits)]
	if !sameClaims(*known, claims) {
		*known = copyClaims(claims)
	}
	return *known
}

// hashClaims depends on the nodes and amounts only.
func hashClaims(claims []PlacedClaim) uint64 {
	const prime = 0x9e3779b97f4a7c15
	h := uint64(len(claims))
	for i := range claims {
		h = (h ^ claims[i].At.ID ^ uint64(len(claims[i].At.Path))<<32) * prime // former nodes have no id
		for _, p := range claims[i].Amounts {
			h = (h ^ h>>32 ^ uint64(p.Amount) + uint64(p.Resource.Index)) * prime
		}
	}
	return h
}

func sameClaims(a, b []PlacedClaim) bool {
	return slices.EqualFunc(a, b, func(x, y PlacedClaim) bool {
		return x.At == y.At && x.Asked == y.Asked && x.Placed == y.Placed && slices.Equal(x.Amounts, y.Amounts)
	})
}

func copyClaims(claims []PlacedClaim) []PlacedClaim {
	if len(claims) == 1 && len(claims[0].Amounts) <= inlineAmounts {
		in := &InlineClaim{claim: [1]PlacedClaim(claims)}
		in.claim[0].Amounts = in.amounts[:copy(in.amounts[:], claims[0].Amounts)]
		return in.claim[:]
	}
	list, n := slices.Clone(claims), 0
	for i := range list {
		n += len(list[i].Amounts)
	}
	amounts := make([]PlacedAmount, 0, n)
	for i := range list {
		from := len(amounts)
		amounts = append(amounts, list[i].Amounts...)
		list[i].Amounts = amounts[from:len(amounts):len(amounts)]
	}
	return list
}

// Forget drops the remembered claims, so that removed nodes do not stay in memory.
func (s *sharedClaims) Forget() { clear(s.recent) }

// ClaimsKey identifies a list of claims in memory. Records with the same key have equal claims, so a reader can use
// what it made of the claims of one for the others. It is comparable, keeps the list in memory, and means nothing
// beyond this process.
type ClaimsKey struct{ list *PlacedClaim }

// ClaimsKey returns the key of the record's claims; false if they have details that may differ among records, such as
// the states of items. It may be called at any time, on any goroutine.
func (a *Allocation) ClaimsKey() (ClaimsKey, bool) {
	for i := range a.Claims {
		if a.Claims[i].More != nil {
			return ClaimsKey{}, false
		}
	}
	if len(a.Claims) == 0 {
		return ClaimsKey{}, false
	}
	return ClaimsKey{&a.Claims[0]}, true
}
