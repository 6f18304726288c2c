package ledger

import (
	"math/bits"

	"github.com/quorate/quorate/quota"
)

// pool is the balance of one resource in the subtree of a node in a cohort. A cohort is a region of nodes whose
// policies bound borrowing; its top is the highest of them. By Kueue's arithmetic, the room of a node is its limit,
// less what is held here, plus what its children lend: each child lends its room, at most its lending limit, and a
// borrowing child lends a negative amount. A claim is admitted if afterwards no node on its path owes more than it may
// borrow, and the top owes nothing.
type pool struct {
	limit, borrow, lend quota.Amount // MaxAmount if unlimited
	// whole is the amount that the children lend while nothing is held.
	whole wideAmount
	// held is the usage of the subtree outside of the children in the cohort; lent is the sum of what these lend.
	held quota.Amount
	lent wideAmount
}

// room is negative if the subtree borrows. It is cut at MaxAmount, because more can never be held.
func (p *pool) room() quota.Amount { return p.lent.plus(p.limit).plus(-p.held).clipped() }

// lends is the node's contribution to the room of its parent; negative if the node borrows.
func (p *pool) lends() quota.Amount { return min(p.lend, p.room()) }

// unlent is the room that is reserved for the subtree.
func (p *pool) unlent() quota.Amount { return max(0, p.room()-p.lend) }

// owes is the amount that the subtree has borrowed.
func (p *pool) owes() quota.Amount { return max(0, -p.room()) }

// pooled is true if the parent is in the same cohort.
func (n *node) pooled() bool { return n.pools != nil && n.parent != nil && n.parent.pools != nil }

// lendsWhole is the contribution to the parent while nothing is held.
func (p *pool) lendsWhole() quota.Amount { return min(p.lend, p.whole.plus(p.limit).clipped()) }

// mayOwe is how much the subtree may borrow; 0 at the top of a cohort.
func (n *node) mayOwe(r int) quota.Amount {
	if n.pooled() {
		return n.pools[r].borrow
	}
	return 0
}

// draw subtracts an amount from the room of the pools from the node up; a negative amount is returned to them.
func (n *node) draw(r int, amount quota.Amount) {
	for at := n; at != nil; {
		if at.pools == nil {
			at = at.parent
			continue
		}
		at = at.adjust(r, func(p *pool) { p.held += amount })
	}
}

// adjust changes a pool and the contributions to the levels above. It returns the node above the cohort.
func (n *node) adjust(r int, change func(*pool)) *node {
	p := &n.pools[r]
	before := p.lends()
	change(p)
	for n.pooled() {
		more := p.lends() - before
		n = n.parent
		p = &n.pools[r]
		before = p.lends()
		p.lent = p.lent.plus(more)
	}
	return n.parent
}

// setPoolLimit changes the limit of a pool, and its contributions to the levels above: the present ones and those while
// nothing is held.
func (n *node) setPoolLimit(r int, limit quota.Amount) {
	before := n.pools[r].lendsWhole()
	n.adjust(r, func(p *pool) { p.limit = limit })
	for at := n; at.pooled(); {
		more := at.pools[r].lendsWhole() - before
		at = at.parent
		before = at.pools[r].lendsWhole()
		at.pools[r].whole = at.pools[r].whole.plus(more)
	}
}

// overBy is the usage of the subtree beyond its limit or, in a cohort, the debt beyond its bound.
func (n *node) overBy(r int, used quota.Amount) quota.Amount {
	if n.pools != nil {
		return max(0, -n.pools[r].room()-n.mayOwe(r))
	}
	return max(0, used-n.ceilings[r])
}

// wideAmount is a signed sum that may exceed the range of an Amount.
type wideAmount struct {
	high int64
	low  uint64
}

// plus adds a positive or negative amount.
func (w wideAmount) plus(a quota.Amount) wideAmount {
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
