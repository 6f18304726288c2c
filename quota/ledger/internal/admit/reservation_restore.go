package admit

import (
	"slices"
	"sort"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
	"github.com/quorate/quorate/quota/policy"
)

// RestoreDisplaced restores what a reservation has displaced. The reservation has ended, and its own claims are
// refunded. Moved claims return to their former nodes and arrival numbers, and preempted allocations are held again
// under their old fences. Nothing is restored if one of them was moved, ended or forgotten since, if its node or one of
// its items is no longer available, or if the limit of a node or principal or a bound of the ledger would be exceeded.
// Borrowed claims then reclaim the freed capacity as after a release. It returns the ids of the allocations that are
// held again, in the order in which they had been preempted.
func RestoreDisplaced(s *state.State, a *state.Allocation) (restored []string) {
	again := newRestoring(s, a)
	if a.More != nil && len(a.More.Displaced) > 0 && again.restoreAll(a.More.Displaced) {
		return again.commit()
	}
	again.Rollback()
	for i := range a.Claims {
		reclaimAt(&s.Allocations, a.Claims[i].At)
	}
	return nil
}

type restoration struct {
	UndoList
	state     *state.State
	requester *state.Allocation
	restored  map[string]restoredVictim
	before    map[*state.Node][]quota.Amount // usage of the affected nodes before the restoration
	places    map[claimPlace]state.Displacement
	nodes     map[uint64]*state.Node // found so far, by identity
	// exact is true if the trees and items involved are unchanged since the reservation; then limits are not checked.
	exact bool
}

func newRestoring(s *state.State, requester *state.Allocation) *restoration {
	return &restoration{
		state: s, requester: requester,
		restored: map[string]restoredVictim{}, nodes: map[uint64]*state.Node{},
	}
}

type restoredVictim struct{ tombstone, again *state.Allocation }

type claimPlace struct {
	id    string
	claim int
}

// restoreAll takes back what a reservation did to others, its last step first, because a later step may have moved what
// an earlier one had moved already. Each step must find what the reservation left: a moved claim its arrival number, a
// victim its tombstone, its node and its items. The limits are asked once at the end, of the nodes whose use has risen:
// while steps are taken back one by one, a node may be over a limit that all of them together keep. It is false if
// anything fails; then the caller rolls back.
func (r *restoration) restoreAll(displaced []state.Displacement) bool {
	r.before, r.places = map[*state.Node][]quota.Amount{}, make(map[claimPlace]state.Displacement, len(displaced))
	for _, d := range displaced {
		r.places[claimPlace{d.ID, d.Claim}] = d
	}
	for _, d := range slices.Backward(displaced) {
		if d.NewSeq == 0 && !r.restoreVictim(d) || d.NewSeq != 0 && !r.moveBack(d) {
			return false
		}
	}
	return r.exact || r.state.Allocations.Held.Len() <= r.state.Bounds.Held && r.fitsLimits() && r.fitsInBytes()
}

// moveBack does nothing if the claim has not the arrival number that the reservation gave it.
func (r *restoration) moveBack(d state.Displacement) bool {
	s := r.state
	previous := s.Allocations.ByID.Find(d.ID)
	if previous == nil || previous.Ended != nil || d.Claim >= len(previous.Claims) ||
		previous.Claims[d.Claim].ArrivalSeq() != d.NewSeq {
		return false
	}
	c := &previous.Claims[d.Claim]
	from := r.findNode(c.At.Tree, d.From)
	if from == nil || !BorrowsFrom(c.Home(), from) {
		return false
	}
	r.noteUsageBefore(c.At)
	r.noteUsageBefore(from)
	updated := WithClaimAt(previous, d.Claim, from, d.FromSeq)
	s.Allocations.RefundNode(previous, d.Claim)
	s.Allocations.ReplaceRecord(updated)
	s.Allocations.ChargeNode(updated, d.Claim)
	r.OnUndo(func() {
		s.Allocations.RefundNode(updated, d.Claim)
		s.Allocations.ReplaceRecord(previous)
		s.Allocations.ChargeNode(previous, d.Claim)
	})
	return true
}

// restoreVictim restores a victim; its claims are adjacent in the list.
func (r *restoration) restoreVictim(last state.Displacement) bool {
	s := r.state
	if _, done := r.restored[last.ID]; done {
		return true
	}
	tombstone := s.Allocations.ByID.Find(last.ID) // kept until the reservation has ended
	if tombstone == nil || tombstone.Ended == nil || tombstone.Ended.State != quota.WasPreempted ||
		tombstone.Ended.By != r.requester.ID() {
		return false
	}
	again := *tombstone
	a := &again
	if b := tombstone.Lease(); b.TTL > 0 || b.Unclaimed {
		a = a.WithLease(r.leaseAgain(b))
	}
	a.Ended, a.Claims = nil, make([]state.PlacedClaim, len(tombstone.Claims))
	for i := range a.Claims {
		d, known := r.places[claimPlace{a.ID(), i}]
		if !known || !r.placeAgain(&a.Claims[i], &tombstone.Claims[i], d) {
			return false
		}
		if retake := r.retaker(); !retake(a, i, tombstone.Claims[i].HeldItems()) {
			return false
		}
		a.Claims[i].TrackPrincipal(a.Principal())
		r.noteUsageBefore(a.Claims[i].At)
	}
	if !r.exact && len(checkPrincipals(&s.Environment, a)) > 0 {
		return false
	}
	s.Allocations.Held.Set(a.Fence(), a)
	r.OnUndo(func() { s.Allocations.Held.Delete(a.Fence()) })
	for i := range a.Claims {
		s.Allocations.ChargeClaim(a, i)
		r.OnUndo(func() { s.Allocations.RefundClaim(a, i) })
	}
	r.restored[a.ID()] = restoredVictim{tombstone, a}
	return true
}

// placeAgain is false if a node or a resource does not exist any more. The tombstone may have been restored from a
// snapshot, and then has names only.
func (r *restoration) placeAgain(c, ended *state.PlacedClaim, d state.Displacement) bool {
	t := r.state.Forest.Trees[ended.Asked.TreeName]
	if t == nil {
		return false
	}
	c.At = r.findNode(t, d.From)
	if c.At == nil || (d.FromSeq != 0) != (c.At.Borrows == policy.BorrowSoft) {
		return false
	}
	c.Asked, c.Placed = ended.Asked, c.At.Address
	if ended.More != nil || d.FromSeq != 0 {
		c.More = &state.ClaimDetails{Standing: ended.Standing(), ArrivalSeq: d.FromSeq}
	}
	if ended.More != nil {
		c.More.Forced, c.More.Group = ended.More.Forced, ended.More.Group
		if len(ended.Picks()) > 0 {
			c.SetItems(ended.Picks(), nil)
		}
	}
	if d.Home != 0 {
		c.More.Home = r.findNode(t, d.Home)
		if c.More.Home == nil || !BorrowsFrom(c.More.Home, c.At) {
			return false
		}
	}
	for _, p := range ended.Amounts {
		r := t.Resource(p.Resource.Name)
		if r == nil || (r.Unit == quota.Items) != (p.Resource.Unit == quota.Items) {
			return false
		}
		c.Amounts = append(c.Amounts, state.PlacedAmount{Resource: r, Amount: p.Amount})
	}
	return true
}

// retakeItems is false if an item was taken by another allocation, changed or removed.
func (r *restoration) retakeItems(a *state.Allocation, i int, names []state.HeldItem) bool {
	s, c := r.state, &a.Claims[i]
	for _, h := range names {
		stock := c.At.Tree.Resource(h.Resource).Stock
		it := stock.ByName[h.Name]
		if it == nil || it.Owner != 0 || it.State != stock.Resource.Items.ExpiredState() {
			return false
		}
		turn := s.Inventory.LastStateSeq
		updated := takenItem(&s.Inventory, it, c.PickOf(h.Resource).StateWhileHeld(), a.Fence())
		ChangeItem(&s.Inventory, it, updated)
		r.OnUndo(func() {
			ChangeItem(&s.Inventory, updated, it)
			s.Inventory.LastStateSeq = turn
		})
		c.More.Items.Held = append(c.More.Items.Held, state.HeldItem{Resource: h.Resource, Name: h.Name, Is: updated})
	}
	return true
}

func (r *restoration) noteUsageBefore(n *state.Node) {
	if r.exact {
		return
	}
	for ; n != nil && r.before[n] == nil; n = n.Parent {
		r.before[n] = slices.Clone(n.Subtree)
	}
}

func (r *restoration) fitsLimits() bool {
	for n, before := range r.before {
		for i, held := range before {
			if n.OverBy(i, n.Subtree[i]) > 0 && n.Subtree[i] > held {
				return false
			}
		}
	}
	return true
}

func (r *restoration) fitsInBytes() bool {
	s := r.state
	return !s.BoundsBytes() || s.CurrentSizes().Live() <= s.Bounds.LiveBytes
}

func (r *restoration) commit() []string {
	s := r.state
	numbers := r.tombstoneNumbers()
	var restored []string
	for _, p := range r.requester.More.Preempted {
		victim := r.restored[p.ID]
		s.Allocations.RemoveTombstone(numbers[victim.tombstone], victim.tombstone)
		s.Allocations.ByID.Put(victim.again)
		s.Deadlines.Add(victim.again)
		s.Journal.NoteEvent(quota.Event{Kind: quota.EventRestored, ID: p.ID, By: r.requester.ID()})
		s.Journal.NoteFact(state.FactRestored, victim.again)
		if !r.exact {
			markChangedBy(&s.Forest, victim.again)
		}
		s.Queue.UnblockGranted(victim.again)
		CountRevocation(&s.Queue, victim.again, 1)
		restored = append(restored, p.ID)
	}
	return restored
}

// tombstoneNumbers returns keys in the order of ends. The tombstones of one reservation are adjacent, from the time
// when it was granted.
func (r *restoration) tombstoneNumbers() map[*state.Allocation]uint64 {
	s, numbers := r.state, make(map[*state.Allocation]uint64, len(r.restored))
	first, _, _ := s.Allocations.Ended.Min()
	from := sort.Search(int(s.Allocations.Endings-first)+1, func(i int) bool {
		for _, other := range s.Allocations.Ended.From(first + uint64(i)) {
			return other.Ended.At >= r.requester.Granted.At
		}
		return true
	})
	for number, a := range s.Allocations.Ended.From(first + uint64(from)) {
		if len(numbers) == len(r.restored) {
			break
		}
		if victim, known := r.restored[a.ID()]; known && victim.tombstone == a {
			numbers[a] = number
		}
	}
	return numbers
}

// findNode is nil if the node does not exist any more. The first call visits the whole tree.
func (r *restoration) findNode(t *state.Tree, id uint64) *state.Node {
	n, known := r.nodes[id]
	if !known {
		t.Root.Walk(func(at *state.Node) bool {
			if at.ID == id {
				n = at
			}
			return n == nil
		})
		r.nodes[id] = n
	}
	return n
}

// unchangedSince reports whether all trees and items that a reservation changed are as it left them, and what it
// displaced fits within the bounds of the ledger. If its victims are also remembered (see restoreExactly), its end
// restores the exact state from before it, even over a limit, and no other claim moves.
func unchangedSince(s *state.State, a *state.Allocation) bool {
	if a.More == nil || a.More.Undo == nil {
		return false
	}
	for _, v := range a.More.Undo.Trees {
		if t := s.Forest.Trees[v.Tree]; t == nil || t.Version != v.After {
			return false
		}
	}
	for _, b := range a.More.Undo.Items {
		if !isUntouched(b, s) {
			return false
		}
	}
	room := s.Bounds.Held - s.Allocations.Held.Len() + 1 - len(a.More.Preempted)
	return room >= 0 && s.Forest.Nodes+len(a.More.Undo.Nodes) <= s.Bounds.Nodes && hasBytesFor(s, a)
}

// hasBytesFor is true if the ledger, with the victims restored, is within its bound in bytes, or not larger than before
// the reservation.
func hasBytesFor(s *state.State, a *state.Allocation) bool {
	live := s.CurrentSizes().Live() - s.CountedSize(a)
	for _, p := range a.More.Preempted {
		if victim := s.Allocations.ByID.Find(p.ID); victim != nil {
			again := *victim
			again.Ended = nil // the reason of its end is not restored
			live += s.CountedSize(&again)
		}
	}
	return live <= max(s.Bounds.LiveBytes, a.More.Undo.LiveBytes)
}

// restoreExactly restores the state from before a reservation that has just ended and whose trees are unchanged since.
// It returns the ids of the restored allocations; false if a victim is not remembered any more, and then nothing is
// restored.
func restoreExactly(s *state.State, a *state.Allocation) (restored []string, ok bool) {
	again := newRestoring(s, a)
	again.exact = true
	again.recreateNodes()
	again.restoreItems()
	if !again.restoreAll(a.More.Displaced) {
		again.Rollback()
		return nil, false
	}
	restored = again.commit()
	for _, v := range a.More.Undo.Trees {
		s.Forest.Trees[v.Tree].Version = v.Before
	}
	announceRestored(s, a)
	return restored, true
}

// announceRestored unblocks requests that wait for the items. Items on demand that were removed again are re-created
// only if a request may have started to wait for them meanwhile.
func announceRestored(s *state.State, a *state.Allocation) {
	if a.More.Undo.Arrival != s.Queue.Arrival {
		announceReturned(&s.Inventory, a)
		return
	}
	for _, b := range a.More.Undo.Items {
		stock, it := findItemBefore(b, s)
		followExpiries(&s.Inventory, stock)
		switch {
		case it == nil:
			s.Queue.UnblockItems(stock.Resource, stock.Resource.Items.InitialState(), "")
		case it.Owner == 0:
			s.Queue.UnblockItems(stock.Resource, it.State, it.Name)
		}
	}
}

// recreateNodes gives the dynamic nodes that were removed with the victims their old identities.
func (r *restoration) recreateNodes() {
	s := r.state
	for _, d := range r.requester.More.Undo.Nodes {
		t := s.Forest.Trees[d.Tree]
		if t.ByPath[d.Path] != nil {
			continue
		}
		n := NewBlankNode(t, &quota.NodeSpec{Path: d.Path})
		n.ID, n.Dynamic, n.Parent = d.ID, true, t.ByPath[quota.ParentPath(d.Path)]
		DeriveSettings(n)
		n.AttachTo(n.Parent)
		s.Forest.Nodes++
		s.Forest.Bytes += n.Bytes()
		s.Forest.NoteIdle(n)
		r.OnUndo(func() { s.Forest.DetachNode(n) })
	}
}

// leaseAgain is the lease of a restored allocation, which could not be renewed meanwhile. If nothing happened in
// between, it continues with its remaining time, otherwise it starts anew. A lease under revocation keeps its end.
func (r *restoration) leaseAgain(b state.Lease) state.Lease {
	switch {
	case b.Unclaimed && b.TTL == 0:
		b.Expires += r.state.Now.At - r.requester.Granted.At
	case !r.exact:
		b.RevokedBy, b.Reason = "", nil
		if b.Expires != 0 { // not just reserved
			b.Begin(r.state.Now)
		}
	case b.Expires != 0 && b.RevokedBy == "":
		b.Expires += r.state.Now.At - r.requester.Granted.At
	}
	return b
}

func (r *restoration) retaker() func(a *state.Allocation, i int, names []state.HeldItem) bool {
	if r.exact {
		return r.keepRestored
	}
	return r.retakeItems
}

func (r *restoration) keepRestored(a *state.Allocation, i int, names []state.HeldItem) bool {
	c := &a.Claims[i]
	for _, h := range names {
		it := c.At.Tree.Resource(h.Resource).Stock.ByName[h.Name]
		if it == nil || it.Owner != a.Fence() {
			return false
		}
		c.More.Items.Held = append(c.More.Items.Held, state.HeldItem{Resource: h.Resource, Name: h.Name, Is: it})
	}
	return true
}
