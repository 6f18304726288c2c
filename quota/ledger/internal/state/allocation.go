package state

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/idindex"
	"github.com/quorate/quorate/quota/policy"
)

// Allocations owns the records of held, waiting and ended allocations.
type Allocations struct {
	*Environment
	forest *Forest

	ByID           *idindex.Index[*Allocation] // held, waiting and ended
	Held           sizedMap[*Allocation]       // by fence
	Ended          sizedMap[*Allocation]       // in the order of their ends
	Fence          uint64                      // last assigned
	LastArrivalSeq uint64                      // last assigned, see ClaimDetails
	// Endings counts ends. It orders the ended allocations and is not part of the state.
	Endings uint64
	Shared  sharedClaims
	// neededUpTo is the number of a tombstone: all up to it are kept for reservations beyond their span. It is derived
	// from the rest of the state.
	neededUpTo uint64
}

func newAllocations(env *Environment) Allocations {
	return Allocations{
		Environment: env,
		ByID:        idindex.New[*Allocation](),
		Held:        newSizedMap[*Allocation](env.Bounds.FreeBytes),
		Ended:       newSizedMap[*Allocation](env.Bounds.FreeBytes),
	}
}

// Allocation is the immutable record of what a holder holds where. When it ends, is confirmed or moved, another record
// replaces it, so that a snapshot or a late answer keeps what it saw.
type Allocation struct {
	id      string
	hash    uint64 // of id, see idindex
	fence   uint64
	Granted quota.Stamp
	// More is nil for most allocations, which have no principal and displaced nothing.
	More *Details
	// Ended is nil while held.
	Ended  *Ending
	Claims []PlacedClaim
	// labelled is nil for most allocations, which have no labels.
	labelled *[]quota.Label
	// Owner is the user of the caller that made the request; empty if it had none.
	Owner string
}

type Ending struct {
	quota.Stamp
	State quota.State
	By    string // the preempting allocation
	// Reason is nil if there is none, and for a revoked lease, which has it.
	Reason *quota.Reason
}

// inlineAmounts is the number of amounts that an InlineClaim has memory for.
const inlineAmounts = 2

// InlineClaim has the most common claims of an allocation: a single one, of one or two amounts.
type InlineClaim struct {
	claim   [1]PlacedClaim
	amounts [inlineAmounts]PlacedAmount
}

// record is an allocation in one piece of memory with claims that it does not share.
type record struct {
	Allocation
	InlineClaim
}

// CopyClaims gives an allocation a copy of its claims in this memory, if they fit there.
func (in *InlineClaim) CopyClaims(a *Allocation) {
	if len(a.Claims) != 1 || len(a.Claims[0].Amounts) > inlineAmounts {
		return
	}
	in.claim[0] = a.Claims[0]
	in.claim[0].Amounts = in.amounts[:copy(in.amounts[:], a.Claims[0].Amounts)]
	a.Claims = in.claim[:]
}

// ID is the id chosen by the caller.
func (a *Allocation) ID() string { return a.id }

// Hash is the hash of the id, for the index by id.
func (a *Allocation) Hash() uint64 { return a.hash }

func (a *Allocation) SetID(id string) { a.id, a.hash = id, idindex.Hash(id) }

func (a *Allocation) SetGrant(fence uint64, at quota.Stamp) { a.fence, a.Granted = fence, at }

// Labels are those that the caller chose.
func (a *Allocation) Labels() []quota.Label {
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
	case a.Ended != nil:
		return a.Ended.State
	case a.IsWaiting():
		return quota.Waiting
	case a.More != nil && a.More.Until != 0:
		return quota.Reserved
	}
	return quota.Held
}

// IsWaiting is true for the record of a request in the queue.
func (a *Allocation) IsWaiting() bool {
	return a.Ended == nil && a.More != nil && a.More.Waiting != nil
}

// IsBasic is true if the allocation asks for amounts at existing nodes and for nothing else, in trees where no claim
// borrows and no request waits. Only limits decide about it, and its grant concerns nothing else. Most are basic.
func (a *Allocation) IsBasic() bool {
	if a.More != nil {
		return false
	}
	for i := range a.Claims {
		c := &a.Claims[i]
		if c.More != nil || c.At.Special || c.At.IsDetached() || len(c.At.Tree.Queues) > 0 {
			return false
		}
	}
	return true
}

// IsLive is true for an allocation that is held or waits; nil is not.
func IsLive(a *Allocation) bool { return a != nil && a.Ended == nil }

// IsForced is true if the allocation was granted regardless of limits.
func (a *Allocation) IsForced() bool { return a.More != nil && a.More.Forced }

// Principal is the holder; most allocations have none.
func (a *Allocation) Principal() quota.Principal {
	if a.More == nil {
		return quota.Principal{}
	}
	return a.More.Principal
}

// Places yields the tree and path of the nodes that the claims ask for and of those where they were counted when the
// record was made, some of them twice. It may be called on any goroutine.
func (a *Allocation) Places(yield func(tree, node string) bool) {
	for i := range a.Claims {
		asked, placed := a.Claims[i].Asked, a.Claims[i].Placed
		if !yield(asked.TreeName, asked.Path) || placed != asked && !yield(asked.TreeName, placed.Path) {
			return
		}
	}
}

// PlacedClaim is a claim at the node where it is counted.
type PlacedClaim struct {
	At *Node
	// Asked is the requested node, placed the address of at when the record was made.
	Asked, Placed *Address
	Amounts       []PlacedAmount
	// More is nil for most claims, which have no standing, are counted at their own node, and have no principal.
	More *ClaimDetails
}

// ClaimDetails are rare properties of claims.
type ClaimDetails struct {
	quota.Standing
	// Home is the node that the claim belongs to, if it is counted further up; otherwise nil.
	Home *Node
	// ArrivalSeq is the place in the order of arrival at a node with soft borrowing; 0 elsewhere.
	ArrivalSeq uint64
	// Forced is true if a new request is granted here regardless of limits.
	Forced bool
	// Group is the group that the claim counts for.
	Group string
	// Track is where its principal's usage is counted; nil if it has none.
	Track *Track
	// Items are those of the claim; nil for most.
	Items *claimItems
}

// PlacedAmount is one component, bound to the resource of its tree.
type PlacedAmount struct {
	Resource *Resource
	Amount   quota.Amount
}

// Home is the node that the claim belongs to; it is counted there or further up.
func (c *PlacedClaim) Home() *Node {
	if c.More != nil && c.More.Home != nil {
		return c.More.Home
	}
	return c.At
}

func (c *PlacedClaim) Standing() quota.Standing {
	if c.More == nil {
		return quota.Standing{}
	}
	return c.More.Standing
}

// Info copies the record for a reader. It may be called at any time, on any goroutine; Placed is then the path at the
// time when the record was made.
func (a *Allocation) Info() quota.AllocationInfo {
	claims := make([]quota.ClaimInfo, len(a.Claims))
	for i := range a.Claims {
		claims[i] = a.Claims[i].Info()
		claims[i].Items = a.itemsOf(i)
		claims[i].Ranges = a.rangesAt(claims[i].Tree, claims[i].Node)
	}
	return a.InfoWithClaims(claims)
}

// InfoWithClaims is Info with the claims that Info of a record with the same [ClaimsKey] returned. The caller must not
// change them any more.
func (a *Allocation) InfoWithClaims(claims []quota.ClaimInfo) quota.AllocationInfo {
	info := quota.AllocationInfo{
		ID: a.id, Owner: a.Owner, Fence: a.fence, State: a.State(), GrantedAt: a.Granted.At, GrantedWall: a.Granted.Wall,
		Claims: claims, Labels: append([]quota.Label(nil), a.Labels()...),
	}
	info.Generation, info.SplitFrom, info.Reason = a.Generation(), a.SplitFrom(), a.reason()
	info.Alternative = a.Given()
	if m := a.More; m != nil {
		info.Principal, info.Forced, info.ReservedUntil, info.Preempted = m.Principal, m.Forced, m.Until, m.Preempted
		info.MadeRoom, info.For = m.Room, m.Declared
		m.addQueueTo(&info)
		if m.Resize != nil && a.Ended == nil {
			info.Resize = m.Resize.resizeInfo()
		}
	}
	b := a.Lease()
	info.TTL, info.ExpiresAt, info.RevokedBy, info.Unclaimed, info.Data = b.TTL, a.expiresAt(), b.RevokedBy, b.Unclaimed,
		append([]quota.Label(nil), b.Data...)
	info.EndsAt = a.declaredEnd()
	if a.Ended != nil {
		info.Ended, info.EndedAt, info.EndedWall, info.PreemptedBy = true, a.Ended.At, a.Ended.Wall, a.Ended.By
	}
	return info
}

// CurrentInfo is Info with present paths. The caller must have the ledger.
func (a *Allocation) CurrentInfo() quota.AllocationInfo {
	info := a.Info()
	if a.Ended == nil {
		for i := range a.Claims {
			info.Claims[i].Placed = a.Claims[i].At.Path
		}
	}
	return info
}

func (c *PlacedClaim) Info() quota.ClaimInfo {
	info := quota.ClaimInfo{Tree: c.Asked.TreeName, Node: c.Asked.Path, Placed: c.Placed.Path, Picks: c.Picks()}
	plain := c.countedAmounts()
	info.Amounts = make(quota.Vector, len(plain))
	for i, a := range plain {
		info.Amounts[i] = quota.Component{Resource: a.Resource.Name, Amount: a.Amount}
	}
	if c.More != nil {
		info.Standing, info.Group = c.More.Standing, c.More.Group
	}
	return info
}

// MatchesRequest reports whether the record stands for exactly this request; a repeated request then gets the first
// answer.
func (e *Environment) MatchesRequest(a *Allocation, request *quota.Allocate) bool {
	if !slices.Equal(a.Labels(), request.Labels) || !a.matchesClaims(request) {
		return false
	}
	var first Details
	if a.More != nil {
		first = *a.More
	}
	if first.Mode != request.Mode || first.ReserveFor != request.ReserveFor || !e.matchesQueueing(&first, request) ||
		!samePrincipal(first.Principal, request.Principal) {
		return false
	}
	if b := a.Lease(); b.Asked != request.TTL || first.Declared != request.For ||
		a.Ended == nil && !slices.Equal(b.AskedData, request.Data) {
		return false
	}
	return true
}

func (a *Allocation) matchesClaims(request *quota.Allocate) bool {
	if lists := a.AnyOf(); lists != nil || len(request.AnyOf) > 0 {
		return len(request.Claims) == 0 && sameLists(lists, request.AnyOf)
	}
	claims := request.Claims
	if a.More != nil && a.More.Resized != nil && a.More.Resized.First != nil {
		return slices.EqualFunc(a.More.Resized.First, claims, sameClaim)
	}
	if len(a.Claims) != len(claims) {
		return false
	}
	for i := range a.Claims {
		if !a.Claims[i].matchesClaim(&claims[i]) {
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

func (c *PlacedClaim) matchesClaim(request *quota.Claim) bool {
	plain := c.countedAmounts()
	if c.Asked.TreeName != request.Tree || c.Asked.Path != request.Node || len(plain) != len(request.Amounts) {
		return false
	}
	for i, a := range plain {
		if a.Resource.Name != request.Amounts[i].Resource || a.Amount != request.Amounts[i].Amount {
			return false
		}
	}
	return c.Standing() == request.Standing && len(request.Ranges) == 0 &&
		slices.EqualFunc(c.Picks(), request.Picks, samePick)
}

// IsSoft is true if the node of the claim is found by soft borrowing.
func (c *PlacedClaim) IsSoft() bool { return c.At.Borrows == policy.BorrowSoft && !c.IsForced() }

// IsForced is true if the claim is held at its node regardless of limits.
func (c *PlacedClaim) IsForced() bool { return c.More != nil && c.More.Forced }

// CountedAt is the node where a claim counts for a holder: usage of principals counts at the claim's home.
func (c *PlacedClaim) CountedAt(h quota.Holder) *Node {
	if h.Kind == quota.TheNode {
		return c.At
	}
	return c.Home()
}

func (a *Allocation) CountsFor(c *PlacedClaim, h quota.Holder) bool {
	switch h.Kind {
	case quota.AUser:
		return a.Principal().User == h.Name
	case quota.AGroup:
		return c.More != nil && c.More.Group == h.Name
	case quota.TheNode:
	}
	return true
}

// CountOf is the number of items of a resource that the claim holds.
func (c *PlacedClaim) CountOf(resource string) quota.Amount {
	n := quota.Amount(0)
	for _, h := range c.HeldItems() {
		if h.Resource == resource {
			n++
		}
	}
	return n
}

// FindByID returns a held, waiting or ended allocation; nil if there is none.
func (s *Allocations) FindByID(id string) *Allocation {
	a := s.ByID.Find(id)
	if a != nil && a.Ended != nil && s.tombstoneOver(a) {
		return nil
	}
	return a
}
