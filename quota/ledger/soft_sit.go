package ledger

import "github.com/quorate/quorate/quota"

// bench keeps the claims that are counted at a node of a borrowing tree, by seat, and each where it is looked for: among
// those of its standing, who may be pushed out, and if it can slide down, in the descent of its branch. Its maps are looped
// over only where order cannot be seen.
type bench struct {
	crowds map[quota.Standing]*crowd
	// descents are by the child that leads to the leaf that the claims belong to. Who belongs to the bench's node, or to a node
	// that is no leaf, is in none.
	descents map[*node]*descent
}

// crowd is the claims on a bench that stand alike, with the sum of what they hold, by resource index.
type crowd struct {
	quota.Standing
	holds   []quota.Amount
	sitters seats
}

// sitter names a claim of a held allocation.
type sitter struct {
	fence uint64
	claim int
}

// sit takes a seat at the claim's node: the one that the claim has, or else the next.
func (s *allocations) sit(a *Allocation, i int) {
	c := &a.claims[i]
	if c.seat() == 0 {
		if c.more == nil {
			c.more = &claimParticulars{}
		}
		s.seat++
		c.more.seat = s.seat
	}
	if c.at.bench == nil {
		c.at.bench = newBench()
	}
	c.at.bench.add(c, sitter{a.fence, i})
}

// stand gives the seat up.
func (s *allocations) stand(a *Allocation, i int) {
	c := &a.claims[i]
	c.at.bench.remove(c)
}

func newBench() *bench {
	return &bench{crowds: map[quota.Standing]*crowd{}, descents: map[*node]*descent{}}
}

func (b *bench) add(c *placedClaim, s sitter) {
	alike := b.crowds[c.standing()]
	if alike == nil {
		alike = &crowd{Standing: c.standing(), holds: make([]quota.Amount, len(c.at.subtree))}
		b.crowds[c.standing()] = alike
	}
	alike.sitters.set(c.seat(), s)
	alike.hold(c, 1)
	branch := c.branch()
	if branch == nil {
		return
	}
	if b.descents[branch] == nil {
		b.descents[branch] = &descent{rows: map[string]*row{}}
	}
	b.descents[branch].add(c, s)
}

func (b *bench) remove(c *placedClaim) {
	alike := b.crowds[c.standing()]
	alike.sitters.free(c.seat())
	alike.hold(c, -1)
	if alike.sitters.count() == 0 {
		delete(b.crowds, c.standing())
	}
	branch := c.branch()
	if branch == nil {
		return
	}
	b.descents[branch].remove(c)
	if len(b.descents[branch].rows) == 0 {
		delete(b.descents, branch)
	}
}

func (d *crowd) hold(c *placedClaim, sign quota.Amount) {
	for _, p := range c.amounts {
		d.holds[p.resource.index] += sign * p.amount
	}
}

// who are the crowds that pass, in no order.
func (b *bench) who(pass func(*crowd) bool) []*crowd {
	if b == nil {
		return nil
	}
	var list []*crowd
	for _, alike := range b.crowds {
		if pass(alike) {
			list = append(list, alike)
		}
	}
	return list
}

// branch is the child of the claim's node that leads to the leaf that it belongs to, or nil.
func (c *placedClaim) branch() *node {
	n := c.home()
	if n == c.at || len(n.children) > 0 {
		return nil
	}
	for n != nil && n.parent != c.at {
		n = n.parent
	}
	return n
}

// seat is the claim's place in the order of arrival; 0 if it has none.
func (c *placedClaim) seat() uint64 {
	if c.more == nil {
		return 0
	}
	return c.more.seat
}

// takes is true if the node has room for the amounts. A node that is over its limit in any resource takes nothing, also
// if nothing of that resource is asked for.
func (n *node) takes(amounts []placedAmount) bool { return n.takesAfter(amounts, nil) }

// takesAfter is the same as if all of the crowds were gone.
func (n *node) takesAfter(amounts []placedAmount, gone []*crowd) bool {
	for r, limit := range n.ceilings {
		used := n.subtree[r] + amountOf(amounts, r)
		for _, g := range gone {
			used -= g.holds[r]
		}
		if used > limit {
			return false
		}
	}
	return true
}

// amountOf is what amounts, which are few and in order, have of a resource.
func amountOf(amounts []placedAmount, r int) quota.Amount {
	for _, p := range amounts {
		if p.resource.index == r {
			return p.amount
		}
	}
	return 0
}
