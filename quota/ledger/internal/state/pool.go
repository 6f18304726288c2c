package state

import (
	"math/bits"

	"github.com/quorate/quorate/quota"
)

// Pool is the balance of one resource in the subtree of a node in a cohort. A cohort is a region of nodes whose
// policies bound borrowing; its top is the highest of them. By Kueue's arithmetic, the room of a node is its limit,
// less what is held here, plus what its children lend: each child lends its room, at most its lending limit, and a
// borrowing child lends a negative amount. A claim is admitted if afterwards no node on its path owes more than it may
// borrow, and the top owes nothing.
type Pool struct {
	Limit, Borrow, Lend quota.Amount // MaxAmount if unlimited
	// Whole is the amount that the children lend while nothing is held.
	Whole wideAmount
	// Held is the usage of the subtree outside of the children in the cohort; lent is the sum of what these lend.
	Held quota.Amount
	Lent wideAmount
}

// Room is negative if the subtree borrows. It is cut at MaxAmount, because more can never be held.
func (p *Pool) Room() quota.Amount { return p.Lent.Plus(p.Limit).Plus(-p.Held).clipped() }

// Lends is the node's contribution to the room of its parent; negative if the node borrows.
func (p *Pool) Lends() quota.Amount { return min(p.Lend, p.Room()) }

// unlent is the room that is reserved for the subtree.
func (p *Pool) unlent() quota.Amount { return max(0, p.Room()-p.Lend) }

// Owes is the amount that the subtree has borrowed.
func (p *Pool) Owes() quota.Amount { return max(0, -p.Room()) }

// Pooled is true if the parent is in the same cohort.
func (n *Node) Pooled() bool { return n.Pools != nil && n.Parent != nil && n.Parent.Pools != nil }

// LendsWhole is the contribution to the parent while nothing is held.
func (p *Pool) LendsWhole() quota.Amount { return min(p.Lend, p.Whole.Plus(p.Limit).clipped()) }

// MayOwe is how much the subtree may borrow; 0 at the top of a cohort.
func (n *Node) MayOwe(r int) quota.Amount {
	if n.Pooled() {
		return n.Pools[r].Borrow
	}
	return 0
}

// Draw subtracts an amount from the room of the pools from the node up; a negative amount is returned to them.
func (n *Node) Draw(r int, amount quota.Amount) {
	for at := n; at != nil; {
		if at.Pools == nil {
			at = at.Parent
			continue
		}
		at = at.adjust(r, func(p *Pool) { p.Held += amount })
	}
}

// adjust changes a pool and the contributions to the levels above. It returns the node above the cohort.
func (n *Node) adjust(r int, change func(*Pool)) *Node {
	p := &n.Pools[r]
	before := p.Lends()
	change(p)
	for n.Pooled() {
		more := p.Lends() - before
		n = n.Parent
		p = &n.Pools[r]
		before = p.Lends()
		p.Lent = p.Lent.Plus(more)
	}
	return n.Parent
}

// SetPoolLimit changes the limit of a pool, and its contributions to the levels above: the present ones and those while
// nothing is held.
func (n *Node) SetPoolLimit(r int, limit quota.Amount) {
	before := n.Pools[r].LendsWhole()
	n.adjust(r, func(p *Pool) { p.Limit = limit })
	for at := n; at.Pooled(); {
		more := at.Pools[r].LendsWhole() - before
		at = at.Parent
		before = at.Pools[r].LendsWhole()
		at.Pools[r].Whole = at.Pools[r].Whole.Plus(more)
	}
}

// OverBy is the usage of the subtree beyond its limit or, in a cohort, the debt beyond its bound.
func (n *Node) OverBy(r int, used quota.Amount) quota.Amount {
	if n.Pools != nil {
		return max(0, -n.Pools[r].Room()-n.MayOwe(r))
	}
	return max(0, used-n.Ceilings[r])
}

// wideAmount is a signed sum that may exceed the range of an Amount.
type wideAmount struct {
	high int64
	low  uint64
}

// Plus adds a positive or negative amount.
func (w wideAmount) Plus(a quota.Amount) wideAmount {
	low, carry := bits.Add64(w.low, uint64(a), 0)
	return wideAmount{high: w.high + int64(a>>63) + int64(carry), low: low}
}

// clipped is the sum as an Amount, at most MaxAmount. The sum must not be below the range of an Amount.
func (w wideAmount) clipped() quota.Amount {
	if w.high > 0 || w.high == 0 && w.low > uint64(quota.MaxAmount) {
		return quota.MaxAmount
	}
	return quota.Amount(w.low)
}
