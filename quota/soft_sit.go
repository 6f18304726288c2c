package quota

import "encoding/binary"

// bench keeps the claims that are counted at a node of a borrowing tree, by seat. Those that are alike sit in one row, so
// that what is asked of all of them is asked once. Its maps are looped over only where order cannot be seen.
type bench struct {
	// branches has the rows by the child that leads to the node that they belong to; under nil are those that cannot slide
	// down, because they belong to the bench's node, or to a node that is no leaf.
	branches map[*node]map[kin]*row
}

// kin is what the claims of a row have in common, beside the branch.
type kin struct {
	Standing
	amounts string
}

// row is the claims of one branch that stand alike and hold the same amounts.
type row struct {
	Standing
	amounts []placedAmount
	sitters seats
}

// sitter names a claim of a held allocation.
type sitter struct {
	fence uint64
	claim int
}

// sit takes a seat at the claim's node: the one that the claim has, or else the next.
func (l *Ledger) sit(a *Allocation, i int) {
	c := &a.claims[i]
	if c.seat() == 0 {
		if c.more == nil {
			c.more = &claimParticulars{}
		}
		l.seat++
		c.more.seat = l.seat
	}
	if c.at.bench == nil {
		c.at.bench = &bench{branches: map[*node]map[kin]*row{}}
	}
	c.at.bench.add(c, sitter{a.fence, i})
}

// stand gives the seat up.
func (l *Ledger) stand(a *Allocation, i int) {
	c := &a.claims[i]
	c.at.bench.remove(c)
}

func (b *bench) add(c *placedClaim, s sitter) {
	branch := c.branch()
	rows := b.branches[branch]
	if rows == nil {
		rows = map[kin]*row{}
		b.branches[branch] = rows
	}
	var space [64]byte
	key := c.appendAmounts(space[:0])
	r := rows[kin{c.standing(), string(key)}]
	if r == nil {
		r = &row{Standing: c.standing(), amounts: c.amounts}
		rows[kin{c.standing(), string(key)}] = r
	}
	r.sitters.set(c.seat(), s)
}

func (b *bench) remove(c *placedClaim) {
	branch := c.branch()
	rows := b.branches[branch]
	var space [64]byte
	key := c.appendAmounts(space[:0])
	r := rows[kin{c.standing(), string(key)}]
	r.sitters.free(c.seat())
	if r.sitters.count() == 0 {
		delete(rows, kin{c.standing(), string(key)})
	}
	if len(rows) == 0 && branch != nil {
		delete(b.branches, branch)
	}
}

// count is how many sit here.
func (b *bench) count() int {
	n := 0
	for _, r := range b.rows(func(*row) bool { return true }) {
		n += r.sitters.count()
	}
	return n
}

// rows are those that pass, in no order.
func (b *bench) rows(pass func(*row) bool) []*row {
	if b == nil {
		return nil
	}
	var list []*row
	for _, rows := range b.branches {
		for _, r := range rows {
			if pass(r) {
				list = append(list, r)
			}
		}
	}
	return list
}

// appendAmounts writes the amounts that are not zero, so that equal ones are equal texts.
func (c *placedClaim) appendAmounts(text []byte) []byte {
	for _, p := range c.amounts {
		if p.amount != 0 {
			text = binary.AppendUvarint(text, uint64(p.resource.index))
			text = binary.AppendUvarint(text, uint64(p.amount))
		}
	}
	return text
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
// if nothing of that resource is asked for (seed 004).
func (n *node) takes(amounts []placedAmount) bool { return n.takesAfter(amounts, nil) }

// takesAfter is the same as if all of the rows were gone.
func (n *node) takesAfter(amounts []placedAmount, gone []*row) bool {
	for r, limit := range n.ceilings {
		used := n.subtree[r] + amountOf(amounts, r)
		for _, g := range gone {
			used -= amountOf(g.amounts, r) * Amount(g.sitters.count())
		}
		if used > limit {
			return false
		}
	}
	return true
}

// amountOf is what amounts, which are few and in order, have of a resource.
func amountOf(amounts []placedAmount, r int) Amount {
	for _, p := range amounts {
		if p.resource.index == r {
			return p.amount
		}
	}
	return 0
}
