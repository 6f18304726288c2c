package state

import "github.com/quorate/quorate/quota/policy"

// ChargeClaim counts one claim of an allocation at its node and above.
func (s *Allocations) ChargeClaim(a *Allocation, i int) {
	c := &a.Claims[i]
	c.At.Tree.Claims++
	for _, p := range c.Amounts {
		p.Resource.Holds++
	}
	s.ChargeNode(a, i)
	if c.More != nil && c.More.Track != nil {
		c.More.Track.Add(c, 1)
	}
}

// RefundClaim is the inverse of ChargeClaim.
func (s *Allocations) RefundClaim(a *Allocation, i int) {
	c := &a.Claims[i]
	c.At.Tree.Claims--
	for _, p := range c.Amounts {
		p.Resource.Holds--
	}
	s.RefundNode(a, i)
	if c.More != nil && c.More.Track != nil {
		c.More.Track.Add(c, -1)
	}
}

// ChargeNode counts what depends on the node where the claim is counted. Moving a claim is a RefundNode and a
// ChargeNode.
func (s *Allocations) ChargeNode(a *Allocation, i int) {
	c := &a.Claims[i]
	c.At.Claims++
	s.forest.MarkNode(c.At)
	if c.More != nil && c.More.Home != nil {
		c.More.Home.Homes++
		s.forest.MarkNode(c.More.Home)
	}
	s.forest.noteDrained(c.Home())
	for _, p := range c.Amounts {
		c.At.AddUsage(p.Resource.Index, p.Amount)
	}
	s.noteUses(c)
	if c.At.Borrows == policy.BorrowSoft {
		s.AddBorrower(a, i)
	}
}

// RefundNode is the inverse of ChargeNode.
func (s *Allocations) RefundNode(a *Allocation, i int) {
	c := &a.Claims[i]
	c.At.Claims--
	s.forest.MarkNode(c.At)
	s.forest.NoteIdle(c.At)
	s.forest.noteDrained(c.Home())
	if c.More != nil && c.More.Home != nil {
		c.More.Home.Homes--
		s.forest.MarkNode(c.More.Home)
		s.forest.NoteIdle(c.More.Home)
	}
	for _, p := range c.Amounts {
		c.At.AddUsage(p.Resource.Index, -p.Amount)
	}
	s.noteUses(c)
	if c.At.Borrows == policy.BorrowSoft {
		s.removeBorrower(a, i)
	}
}

// noteUses records where a claim changes the use of limits with thresholds.
func (s *Allocations) noteUses(c *PlacedClaim) {
	if !c.At.HasThresholds {
		return
	}
	for _, p := range c.Amounts {
		s.forest.noteUse(c.At, p.Resource)
	}
}

// ReplaceRecord stores the record of a held allocation.
func (s *Allocations) ReplaceRecord(a *Allocation) {
	s.Held.Set(a.fence, a)
	if known := s.ByID.Find(a.id); known != nil && known.fence == a.fence {
		s.ByID.Put(a)
	}
}

// noteDrained records that a claim has come to a node or left it, for the drains at it and above it.
func (f *Forest) noteDrained(n *Node) {
	for ; len(f.OnHold) > 0 && n != nil; n = n.Parent {
		if n.Hold != nil && n.Hold.Drain {
			f.Drained = append(f.Drained, n)
		}
	}
}
