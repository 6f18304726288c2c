package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// pool is what the subtree of a node in a cohort has of one resource. A cohort is a region of nodes whose policies bound
// borrowing; its top is the highest of them. By Kueue's arithmetic, the room of a node is its limit, less what is held here,
// plus what its children lend: of the room of each, at most what it may lend, and less than nothing if it borrows itself.
// A claim is admitted if afterwards no node on its path owes more than it may borrow, and the top owes nothing.
type pool struct {
	limit, borrow, lend quota.Amount // MaxAmount if unlimited
	// whole is what the children lend while nothing is held.
	whole wide
	// held is what the children of the cohort do not account for, lent the sum of what those lend.
	held quota.Amount
	lent wide
}

// room is less than nothing if the subtree borrows. Above MaxAmount it is cut: more can never be held.
func (p *pool) room() quota.Amount { return p.lent.plus(p.limit).plus(-p.held).clipped() }

// lends is what the parent has from the node.
func (p *pool) lends() quota.Amount { return min(p.lend, p.room()) }

// unlent is the room that nobody else may have.
func (p *pool) unlent() quota.Amount { return max(0, p.room()-p.lend) }

// owes is what the subtree has borrowed.
func (p *pool) owes() quota.Amount { return max(0, -p.room()) }

// pooled is true if the parent is in the same cohort.
func (n *node) pooled() bool { return n.pools != nil && n.parent != nil && n.parent.pools != nil }

// lendsWhole is what the parent has from the node while nothing is held.
func (p *pool) lendsWhole() quota.Amount { return min(p.lend, p.whole.plus(p.limit).clipped()) }

// mayOwe is how much the subtree may borrow; the top of a cohort has nobody to borrow from.
func (n *node) mayOwe(r int) quota.Amount {
	if n.pooled() {
		return n.pools[r].borrow
	}
	return 0
}

// draw takes an amount out of the pools from the node up, or with a negative one puts it back.
func (n *node) draw(r int, amount quota.Amount) {
	for at := n; at != nil; {
		if at.pools == nil {
			at = at.parent
			continue
		}
		at = at.adjust(r, func(p *pool) { p.held += amount })
	}
}

// adjust changes a pool and what the levels above have from it. It answers the node above the cohort.
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

// repool makes the pools of a subtree anew.
func (n *node) repool() {
	n.pools = nil
	if n.borrows == policy.BorrowBounded {
		n.pools = make([]pool, len(n.limits))
	}
	for i := range n.pools {
		n.pools[i] = pool{limit: n.effective(i).Ceiling(), borrow: n.borrow[i], lend: n.lend[i], held: n.subtree[i]}
	}
	for _, child := range n.children {
		child.repool()
		if !child.pooled() {
			continue
		}
		for i := range n.pools {
			n.pools[i].held -= child.subtree[i]
			n.pools[i].lent = n.pools[i].lent.plus(child.pools[i].lends())
			n.pools[i].whole = n.pools[i].whole.plus(child.pools[i].lendsWhole())
		}
	}
}

// repool makes all pools anew: whoever changes a tree calls it.
func (t *tree) repool() { t.root.repool() }

// relimit carries changed limits of one node into the pools.
func (n *node) relimit() {
	for i := range n.pools {
		n.setPoolLimit(i, n.effective(i).Ceiling())
	}
}

// setPoolLimit changes the limit of a pool, and what the levels above have from it now and while nothing is held.
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

// relimited are the node's own pools with its limits; for a node that is not in the tree.
func (n *node) relimited() []pool {
	pools := slices.Clone(n.pools)
	for i := range pools {
		pools[i].limit = n.effective(i).Ceiling()
	}
	return pools
}

// overBy is how much the subtree holds beyond what it may: more than the limit, or in a cohort owed beyond the bound.
func (n *node) overBy(r int, used quota.Amount) quota.Amount {
	if n.pools != nil {
		return max(0, -n.pools[r].room()-n.mayOwe(r))
	}
	return max(0, used-n.ceilings[r])
}
