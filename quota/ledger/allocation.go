package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/idindex"
	"github.com/quorate/quorate/quota/policy"
)

// allocations owns the records of held, waiting and ended allocations.
type allocations struct {
	*environment
	forest *forest

	byID           *idindex.Index[*Allocation] // held, waiting and ended
	held           sizedMap[*Allocation]       // by fence
	ended          sizedMap[*Allocation]       // in the order of their ends
	fence          uint64                      // last assigned
	lastArrivalSeq uint64                      // last assigned, see claimDetails
	// endings counts ends. It orders the ended allocations and is not part of the state.
	endings uint64
	shared  sharedClaims
	// neededUpTo is the number of a tombstone: all up to it are kept for reservations beyond their span. It is derived
	// from the rest of the state.
	neededUpTo uint64
}

func newAllocations(env *environment) allocations {
	return allocations{
		environment: env,
		byID:        idindex.New[*Allocation](),
		held:        newSizedMap[*Allocation](env.bounds.FreeBytes),
		ended:       newSizedMap[*Allocation](env.bounds.FreeBytes),
	}
}

// Allocation is the immutable record of what a holder holds where. When it ends, is confirmed or moved, another record
// replaces it, so that a snapshot or a late answer keeps what it saw.
type Allocation struct {
	id      string
	hash    uint64 // of id, see idindex
	fence   uint64
	granted quota.Stamp
	// more is nil for most allocations, which have no principal and displaced nothing.
	more *details
	// ended is nil while held.
	ended  *ending
	claims []placedClaim
	// labelled is nil for most allocations, which have no labels.
	labelled *[]quota.Label
	// owner is the user of the caller that made the request; empty if it had none.
	owner string
}

type ending struct {
	quota.Stamp
	state quota.State
	by    string // the preempting allocation
	// reason is nil if there is none, and for a revoked lease, which has it.
	reason *quota.Reason
}

// inlineAmounts is the number of amounts that an inlineClaim has memory for.
const inlineAmounts = 2

// inlineClaim has the most common claims of an allocation: a single one, of one or two amounts.
type inlineClaim struct {
	claim   [1]placedClaim
	amounts [inlineAmounts]placedAmount
}

// record is an allocation in one piece of memory with claims that it does not share.
type record struct {
	Allocation
	inlineClaim
}

// copyClaims gives an allocation a copy of its claims in this memory, if they fit there.
func (in *inlineClaim) copyClaims(a *Allocation) {
	if len(a.claims) != 1 || len(a.claims[0].amounts) > inlineAmounts {
		return
	}
	in.claim[0] = a.claims[0]
	in.claim[0].amounts = in.amounts[:copy(in.amounts[:], a.claims[0].amounts)]
	a.claims = in.claim[:]
}

// ID is the id chosen by the caller.
func (a *Allocation) ID() string { return a.id }

// Hash is the hash of the id, for the index by id.
func (a *Allocation) Hash() uint64 { return a.hash }

// labels are those that the caller chose.
func (a *Allocation) labels() []quota.Label {
	if a.labelled == nil {
		return nil
	}
	return *a.labelled
}

// Fence is the fence of the grant.
func (a *Allocation) Fence() uint64 { return a.fence }

// State is what became of the request up to this record.
func (a *Allocation) State() quota.State {
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

// isWaiting is true for the record of a request in the queue.
func (a *Allocation) isWaiting() bool {
	return a.ended == nil && a.more != nil && a.more.waiting != nil
}

// isBasic is true if the allocation asks for amounts at existing nodes and for nothing else, in trees where no claim
// borrows and no request waits. Only limits decide about it, and its grant concerns nothing else. Most are basic.
func (a *Allocation) isBasic() bool {
	if a.more != nil {
		return false
	}
	for i := range a.claims {
		c := &a.claims[i]
		if c.more != nil || c.at.special || c.at.isDetached() || len(c.at.tree.queues) > 0 {
			return false
		}
	}
	return true
}

// isLive is true for an allocation that is held or waits; nil is not.
func isLive(a *Allocation) bool { return a != nil && a.ended == nil }

// isForced is true if the allocation was granted regardless of limits.
func (a *Allocation) isForced() bool { return a.more != nil && a.more.forced }

// principal is the holder; most allocations have none.
func (a *Allocation) principal() quota.Principal {
	if a.more == nil {
		return quota.Principal{}
	}
	return a.more.principal
}

// placedClaim is a claim at the node where it is counted.
type placedClaim struct {
	at *node
	// asked is the requested node, placed the address of at when the record was made.
	asked, placed *address
	amounts       []placedAmount
	// more is nil for most claims, which have no standing, are counted at their own node, and have no principal.
	more *claimDetails
}

// claimDetails are rare properties of claims.
type claimDetails struct {
	quota.Standing
	// home is the node that the claim belongs to, if it is counted further up; otherwise nil.
	home *node
	// arrivalSeq is the place in the order of arrival at a node with soft borrowing; 0 elsewhere.
	arrivalSeq uint64
	// forced is true if a new request is granted here regardless of limits.
	forced bool
	// group is the group that the claim counts for.
	group string
	// track is where its principal's usage is counted; nil if it has none.
	track *track
	// items are those of the claim; nil for most.
	items *claimItems
}

// placedAmount is one component, bound to the resource of its tree.
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

// Info copies the record for a reader. It may be called at any time, on any goroutine; Placed is then the path at the
// time when the record was made.
func (a *Allocation) Info() quota.AllocationInfo {
	claims := make([]quota.ClaimInfo, len(a.claims))
	for i := range a.claims {
		claims[i] = a.claims[i].info()
		claims[i].Items = a.itemsOf(i)
		claims[i].Ranges = a.rangesAt(claims[i].Tree, claims[i].Node)
	}
	return a.InfoWithClaims(claims)
}

// InfoWithClaims is Info with the claims that Info of a record with the same [ClaimsKey] returned. The caller must not
// change them any more.
func (a *Allocation) InfoWithClaims(claims []quota.ClaimInfo) quota.AllocationInfo {
	info := quota.AllocationInfo{
		ID: a.id, Owner: a.owner, Fence: a.fence, State: a.State(), GrantedAt: a.granted.At, GrantedWall: a.granted.Wall,
		Claims: claims, Labels: append([]quota.Label(nil), a.labels()...),
	}
	info.Generation, info.SplitFrom, info.Reason = a.generation(), a.splitFrom(), a.reason()
	info.Alternative = a.given()
	if m := a.more; m != nil {
		info.Principal, info.Forced, info.ReservedUntil, info.Preempted = m.principal, m.forced, m.until, m.preempted
		info.MadeRoom, info.For = m.room, m.declared
		m.addQueueTo(&info)
		if m.resize != nil && a.ended == nil {
			info.Resize = m.resize.resizeInfo()
		}
	}
	b := a.lease()
	info.TTL, info.ExpiresAt, info.RevokedBy, info.Unclaimed, info.Data = b.ttl, a.expiresAt(), b.revokedBy, b.unclaimed,
		append([]quota.Label(nil), b.data...)
	info.EndsAt = a.declaredEnd()
	if a.ended != nil {
		info.Ended, info.EndedAt, info.EndedWall, info.PreemptedBy = true, a.ended.At, a.ended.Wall, a.ended.by
	}
	return info
}

// currentInfo is Info with present paths. The caller must have the ledger.
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

// matchesRequest reports whether the record stands for exactly this request; a repeated request then gets the first
// answer.
func (e *environment) matchesRequest(a *Allocation, request *quota.Allocate) bool {
	if !slices.Equal(a.labels(), request.Labels) || !a.matchesClaims(request) {
		return false
	}
	var first details
	if a.more != nil {
		first = *a.more
	}
	if first.mode != request.Mode || first.reserveFor != request.ReserveFor || !e.matchesQueueing(&first, request) ||
		!samePrincipal(first.principal, request.Principal) {
		return false
	}
	if b := a.lease(); b.asked != request.TTL || first.declared != request.For ||
		a.ended == nil && !slices.Equal(b.askedData, request.Data) {
		return false
	}
	return true
}

// matchesClaims reports whether the record stands for the claims of a request.
func (a *Allocation) matchesClaims(request *quota.Allocate) bool {
	if lists := a.anyOf(); lists != nil || len(request.AnyOf) > 0 {
		return len(request.Claims) == 0 && sameLists(lists, request.AnyOf)
	}
	claims := request.Claims
	if a.more != nil && a.more.resized != nil && a.more.resized.first != nil {
		return slices.EqualFunc(a.more.resized.first, claims, sameClaim)
	}
	if len(a.claims) != len(claims) {
		return false
	}
	for i := range a.claims {
		if !a.claims[i].matchesClaim(&claims[i]) {
			return false
		}
	}
	return true
}

func sameClaim(c, other quota.Claim) bool {
	return c.Tree == other.Tree && c.Node == other.Node && slices.Equal(c.Amounts, other.Amounts) &&
		slices.Equal(c.Ranges, other.Ranges) && c.Standing == other.Standing &&
		slices.EqualFunc(c.Picks, other.Picks, samePick)
}

func samePrincipal(p, other quota.Principal) bool {
	return p.User == other.User && p.Application == other.Application && slices.Equal(p.Groups, other.Groups)
}

func (c *placedClaim) matchesClaim(request *quota.Claim) bool {
	plain := c.countedAmounts()
	if c.asked.treeName != request.Tree || c.asked.path != request.Node || len(plain) != len(request.Amounts) {
		return false
	}
	for i, a := range plain {
		if a.resource.Name != request.Amounts[i].Resource || a.amount != request.Amounts[i].Amount {
			return false
		}
	}
	return c.standing() == request.Standing && len(request.Ranges) == 0 &&
		slices.EqualFunc(c.picks(), request.Picks, samePick)
}

// isSoft is true if the node of the claim is found by soft borrowing.
func (c *placedClaim) isSoft() bool { return c.at.borrows == policy.BorrowSoft && !c.isForced() }

// isForced is true if the claim is held at its node regardless of limits.
func (c *placedClaim) isForced() bool { return c.more != nil && c.more.forced }

// countedAt is the node where a claim counts for a holder: usage of principals counts at the claim's home.
func (c *placedClaim) countedAt(h quota.Holder) *node {
	if h.Kind == quota.TheNode {
		return c.at
	}
	return c.home()
}

func (a *Allocation) countsFor(c *placedClaim, h quota.Holder) bool {
	switch h.Kind {
	case quota.AUser:
		return a.principal().User == h.Name
	case quota.AGroup:
		return c.more != nil && c.more.group == h.Name
	case quota.TheNode:
	}
	return true
}

// countOf is the number of items of a resource that the claim holds.
func (c *placedClaim) countOf(resource string) quota.Amount {
	n := quota.Amount(0)
	for _, h := range c.heldItems() {
		if h.resource == resource {
			n++
		}
	}
	return n
}
