package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// allocations owns the records of what is held, waits or has ended.
type allocations struct {
	*environment
	forest *forest

	byID           map[string]*Allocation // held, waiting and ended
	held           sizedMap[*Allocation]  // by fence
	ended          sizedMap[*Allocation]  // in the order of their ends
	fence          uint64                 // last given
	lastArrivalSeq uint64                 // last given, see claimDetails
	// endings counts ends; it orders the ended allocations and is not part of the state.
	endings uint64
	// neededUpTo is the number of a tombstone up to which all are kept for reservations beyond their span. It follows
	// from the rest.
	neededUpTo uint64
}

func newAllocations(env *environment) allocations {
	return allocations{
		environment: env,
		byID:        map[string]*Allocation{},
		held:        newSizedMap[*Allocation](env.bounds.FreeBytes),
		ended:       newSizedMap[*Allocation](env.bounds.FreeBytes),
	}
}

// Allocation is the record of who holds what, where. It is never changed after it was made: when it ends, is confirmed or
// moved, another record takes its place, so that a frozen ledger and a late answer keep what they saw.
type Allocation struct {
	id      string
	claims  []placedClaim
	labels  []quota.Label
	fence   uint64
	granted quota.Stamp
	// more is nil for what most are: held without a principal, and nobody was in the way.
	more *details
	// ended is nil while held.
	ended *ending
}

// details are what only some allocations have.
type details struct {
	principal quota.Principal
	mode      quota.Mode
	// reserveFor is what a reservation asked for; until is ledger time, 0 once it is confirmed.
	reserveFor quota.Span
	until      quota.Instant
	forced     bool
	preempted  []quota.Preempted
	// displaced are the claims that a reservation moved, in that order, so that Cancel can put them back.
	displaced []displacement
	// undo is what else the end of a reservation needs.
	undo *undoRecord
	// waitFor, keep and priority are what the request said about the queue.
	waitFor, keep quota.Span
	priority      int64
	// waiting is its place in the queue; nil unless it waits. Never changed in place.
	waiting *waiting
	lease   *lease // nil for most
}

// displacement is a claim that was moved from its place, or an allocation that was preempted from there.
type displacement struct {
	id    string
	claim int
	// from is the identity of the node where it was counted with the seat that it had there, home that of the node that it
	// belongs to, 0 if that is the same; seat is the one that it got, 0 if it was preempted.
	from, home      uint64
	fromSeq, newSeq uint64
}

// ending is when and how an allocation ended.
type ending struct {
	quota.Stamp
	state quota.State
	by    string // whoever preempted it
}

// record is an allocation in one piece of memory with what most have: a single claim of one or two amounts. To find and
// release it then takes fewer steps through memory.
type record struct {
	Allocation
	claim   [1]placedClaim
	amounts [2]placedAmount
}

// newAllocation has room for the claims and amounts of a request, and nothing else yet.
func newAllocation(claims []quota.Claim) *Allocation {
	if len(claims) == 1 && len(claims[0].Amounts)+len(claims[0].Picks) <= 2 {
		r := &record{}
		r.claim[0].amounts = r.amounts[:len(claims[0].Amounts)+len(claims[0].Picks)]
		r.claims = r.claim[:]
		return &r.Allocation
	}
	a := &Allocation{claims: make([]placedClaim, len(claims))}
	for i, c := range claims {
		a.claims[i].amounts = make([]placedAmount, len(c.Amounts)+len(c.Picks))
	}
	return a
}

// ID is the name that the caller gave it.
func (a *Allocation) ID() string { return a.id }

// Fence is the token of the grant.
func (a *Allocation) Fence() uint64 { return a.fence }

// state is where the allocation is in its life.
func (a *Allocation) state() quota.State {
	switch {
	case a.ended != nil:
		return a.ended.state
	case a.isWaiting():
		return quota.Waiting
	case a.more != nil && a.more.until != 0:
		return quota.Reserved
	}
	return quota.Held
}

// isForced is true if it was held whatever the limits said.
func (a *Allocation) isForced() bool { return a.more != nil && a.more.forced }

// principal is who holds it; nobody in particular for most.
func (a *Allocation) principal() quota.Principal {
	if a.more == nil {
		return quota.Principal{}
	}
	return a.more.principal
}

// placedClaim is a claim at the node where it is counted.
type placedClaim struct {
	at *node
	// asked is what the request named, placed the address of at when the record was made.
	asked, placed *address
	amounts       []placedAmount
	// more is nil for what most are: a claim of no standing at its own node, for no principal.
	more *claimDetails
}

// claimDetails are what only some claims have.
type claimDetails struct {
	quota.Standing
	// home is the node that the claim belongs to, if it is not counted there but further up; else nil.
	home *node
	// arrivalSeq is its place in the order of arrival at a node of a borrowing tree; 0 elsewhere.
	arrivalSeq uint64
	// forced is true for a newcomer that is held here whatever the limits say.
	forced bool
	// group is the one that is counted for it.
	group string
	// track is where its principal is counted; nil if it has none.
	track *track
	// items are those of the claim; nil for most.
	items *claimItems
}

// placedAmount is one component, tied to the resource of its tree.
type placedAmount struct {
	resource *resource
	amount   quota.Amount
}

// home is the node that the claim belongs to; it is counted there or further up.
func (c *placedClaim) home() *node {
	if c.more != nil && c.more.home != nil {
		return c.more.home
	}
	return c.at
}

func (c *placedClaim) standing() quota.Standing {
	if c.more == nil {
		return quota.Standing{}
	}
	return c.more.Standing
}

// Info copies the record for a reader. It may be called at any time, on any goroutine; Placed is then what it was when
// the record was made.
func (a *Allocation) Info() quota.AllocationInfo {
	info := quota.AllocationInfo{
		ID: a.id, Fence: a.fence, GrantedAt: a.granted.At, GrantedWall: a.granted.Wall, State: a.state(),
		Claims: make([]quota.ClaimInfo, len(a.claims)),
		Labels: append([]quota.Label(nil), a.labels...),
	}
	for i := range a.claims {
		info.Claims[i] = a.claims[i].info()
		info.Claims[i].Items = a.itemsOf(i)
	}
	if m := a.more; m != nil {
		info.Principal, info.Forced, info.ReservedUntil, info.Preempted = m.principal, m.forced, m.until, m.preempted
		m.addQueueTo(&info)
	}
	b := a.lease()
	info.TTL, info.ExpiresAt, info.RevokedBy, info.Unclaimed, info.Data = b.ttl, b.expires, b.revokedBy, b.unclaimed, append([]quota.Label(nil), b.data...)
	if a.ended != nil {
		info.Ended, info.EndedAt, info.EndedWall, info.PreemptedBy = true, a.ended.At, a.ended.Wall, a.ended.by
	}
	return info
}

// currentInfo is Info as of now: only for whoever has the ledger.
func (a *Allocation) currentInfo() quota.AllocationInfo {
	info := a.Info()
	if a.ended == nil {
		for i := range a.claims {
			info.Claims[i].Placed = a.claims[i].at.path
		}
	}
	return info
}

func (c *placedClaim) info() quota.ClaimInfo {
	info := quota.ClaimInfo{Tree: c.asked.treeName, Node: c.asked.path, Placed: c.placed.path, Picks: c.picks()}
	plain := c.countedAmounts()
	info.Amounts = make(quota.Vector, len(plain))
	for i, a := range plain {
		info.Amounts[i] = quota.Component{Resource: a.resource.Name, Amount: a.amount}
	}
	if c.more != nil {
		info.Standing, info.Group = c.more.Standing, c.more.group
	}
	return info
}

// matchesRequest tells whether the record stands for exactly this request, so that a repeat gets the first answer.
func (a *Allocation) matchesRequest(request quota.Allocate) bool {
	if len(a.claims) != len(request.Claims) || !slices.Equal(a.labels, request.Labels) {
		return false
	}
	var first details
	if a.more != nil {
		first = *a.more
	}
	if first.mode != request.Mode || first.reserveFor != request.ReserveFor || !first.matchesQueueing(request) || !samePrincipal(first.principal, request.Principal) {
		return false
	}
	if b := a.lease(); b.asked != request.TTL || a.ended == nil && !slices.Equal(b.askedData, request.Data) {
		return false
	}
	for i := range a.claims {
		if !a.claims[i].matchesClaim(request.Claims[i]) {
			return false
		}
	}
	return true
}

func samePrincipal(p, other quota.Principal) bool {
	return p.User == other.User && p.Application == other.Application && slices.Equal(p.Groups, other.Groups)
}

func (c *placedClaim) matchesClaim(request quota.Claim) bool {
	plain := c.countedAmounts()
	if c.asked.treeName != request.Tree || c.asked.path != request.Node || len(plain) != len(request.Amounts) {
		return false
	}
	for i, a := range plain {
		if a.resource.Name != request.Amounts[i].Resource || a.amount != request.Amounts[i].Amount {
			return false
		}
	}
	return c.standing() == request.Standing && slices.EqualFunc(c.picks(), request.Picks, samePick)
}
