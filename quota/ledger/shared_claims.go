package ledger

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
	recent [][]placedClaim
	draft  draft
}

// sharedBits says how many different claims are remembered: 2^sharedBits, so that each of thousands of nodes has some.
const sharedBits = 13

// draft is memory for an allocation while its claims are placed. It is used again for the next one.
type draft struct {
	allocation  Allocation
	claimSpace  []placedClaim
	amountSpace []placedAmount
}

// begin returns an allocation with capacity for the claims and amounts of a request, otherwise empty. It is valid until
// the next call; keep returns a permanent one.
func (s *sharedClaims) begin(request *quota.Allocate) *Allocation {
	d, amounts := &s.draft, 0
	for i := range request.Claims {
		amounts += countAmounts(&request.Claims[i])
	}
	d.claimSpace = zeroed(d.claimSpace, len(request.Claims))
	d.amountSpace = zeroed(d.amountSpace, amounts)
	rest := d.amountSpace
	for i := range request.Claims {
		n := countAmounts(&request.Claims[i])
		d.claimSpace[i].amounts, rest = rest[:n:n], rest[n:]
	}
	d.allocation = Allocation{id: request.ID, hash: idindex.Hash(request.ID), claims: d.claimSpace}
	if len(request.Labels) > 0 {
		labels := request.Labels // of its own, so that the request does not escape to the heap
		d.allocation.labelled = &labels
	}
	return &d.allocation
}

// zeroed returns n zero values in the memory of a list, or in more if that is too small.
func zeroed[T any](list []T, n int) []T {
	if n > cap(list) {
		return make([]T, n)
	}
	list = list[:n]
	clear(list)
	return list
}

func countAmounts(c *quota.Claim) int { return len(c.Amounts) + len(c.Picks) }

// keep returns a permanent copy of the draft. Its claims are shared if that is possible and wanted.
func (s *sharedClaims) keep(share bool) *Allocation {
	d := &s.draft.allocation
	if share && d.isShareable() {
		a := *d
		a.claims = s.share(a.claims)
		return &a
	}
	if len(d.claims) == 1 && len(d.claims[0].amounts) <= inlineAmounts {
		r := &record{Allocation: *d}
		r.copyClaims(&r.Allocation)
		return &r.Allocation
	}
	a := *d
	a.claims = copyClaims(a.claims)
	return &a
}

// isShareable is true if no later step of the admission gives a claim details.
func (a *Allocation) isShareable() bool {
	if a.more != nil {
		return false
	}
	for i := range a.claims {
		c := &a.claims[i]
		if c.more != nil || c.asked != c.placed || c.at.special || c.at.isDetached() {
			return false
		}
	}
	return true
}

// share returns claims with the same content that may be used for ever.
func (s *sharedClaims) share(claims []placedClaim) []placedClaim {
	if s.recent == nil {
		s.recent = make([][]placedClaim, 1<<sharedBits)
	}
	known := &s.recent[hashClaims(claims)>>(64-sharedBits)]
	if !sameClaims(*known, claims) {
		*known = copyClaims(claims)
	}
	return *known
}

// hashClaims depends on the nodes and amounts only.
func hashClaims(claims []placedClaim) uint64 {
	const prime = 0x9e3779b97f4a7c15
	h := uint64(len(claims))
	for i := range claims {
		h = (h ^ claims[i].at.id ^ uint64(len(claims[i].at.path))<<32) * prime // former nodes have no id
		for _, p := range claims[i].amounts {
			h = (h ^ h>>32 ^ uint64(p.amount) + uint64(p.resource.index)) * prime
		}
	}
	return h
}

func sameClaims(a, b []placedClaim) bool {
	return slices.EqualFunc(a, b, func(x, y placedClaim) bool {
		return x.at == y.at && x.asked == y.asked && x.placed == y.placed && slices.Equal(x.amounts, y.amounts)
	})
}

// copyClaims copies claims with their amounts.
func copyClaims(claims []placedClaim) []placedClaim {
	if len(claims) == 1 && len(claims[0].amounts) <= inlineAmounts {
		in := &inlineClaim{claim: [1]placedClaim(claims)}
		in.claim[0].amounts = in.amounts[:copy(in.amounts[:], claims[0].amounts)]
		return in.claim[:]
	}
	list, n := slices.Clone(claims), 0
	for i := range list {
		n += len(list[i].amounts)
	}
	amounts := make([]placedAmount, 0, n)
	for i := range list {
		from := len(amounts)
		amounts = append(amounts, list[i].amounts...)
		list[i].amounts = amounts[from:len(amounts):len(amounts)]
	}
	return list
}

// forget drops the remembered claims, so that removed nodes do not stay in memory.
func (s *sharedClaims) forget() { clear(s.recent) }

// ClaimsKey identifies a list of claims in memory. Records with the same key have equal claims, so a reader can use
// what it made of the claims of one for the others. It is comparable, keeps the list in memory, and means nothing
// beyond this process.
type ClaimsKey struct{ list *placedClaim }

// ClaimsKey returns the key of the record's claims; false if they have details that may differ among records, such as
// the states of items. It may be called at any time, on any goroutine.
func (a *Allocation) ClaimsKey() (ClaimsKey, bool) {
	for i := range a.claims {
		if a.claims[i].more != nil {
			return ClaimsKey{}, false
		}
	}
	if len(a.claims) == 0 {
		return ClaimsKey{}, false
	}
	return ClaimsKey{&a.claims[0]}, true
}
