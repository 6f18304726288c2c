package ledger

import (
	"encoding/binary"

	"github.com/quorate/quorate/quota"
)

// descent is the claims at a node that belong to a leaf below one of its children, and may slide down there. Those that ask for
// the same amounts sit in one row. The rows are a search tree by the seats of their first sitters, in which each knows the
// least that it and those below it in the tree ask for: so who slides down next is found without asking everybody.
type descent struct {
	rows map[string]*row // by amounts
	top  *row
}

// row is the claims of a descent that ask for the same amounts.
type row struct {
	amounts []placedAmount
	sitters seats
	// What follows is its place in the tree: the seat of the first sitter, and what is before and after it.
	seat          uint64
	before, after *row
	least         []quota.Amount // by resource index
}

func (d *descent) add(c *placedClaim, s sitter) {
	var space [64]byte
	key := c.appendAmounts(space[:0])
	r := d.rows[string(key)]
	if r == nil {
		r = &row{amounts: c.amounts, least: make([]quota.Amount, len(c.at.subtree))}
		d.rows[string(key)] = r
	}
	d.reseat(r, func() { r.sitters.set(c.seat(), s) })
}

func (d *descent) remove(c *placedClaim) {
	var space [64]byte
	key := c.appendAmounts(space[:0])
	r := d.rows[string(key)]
	d.reseat(r, func() { r.sitters.free(c.seat()) })
	if r.sitters.count() == 0 {
		delete(d.rows, string(key))
	}
}

// reseat changes who sits in a row, and where the row is in the tree if its first sitter is another then.
func (d *descent) reseat(r *row, change func()) {
	was, _, had := r.sitters.first()
	change()
	is, _, has := r.sitters.first()
	if had && has && was == is {
		return
	}
	if had {
		before, from := d.top.cut(was)
		_, after := from.cut(was + 1)
		d.top = before.join(after)
	}
	if has {
		r.seat, r.before, r.after = is, nil, nil
		r.sum()
		before, after := d.top.cut(is)
		d.top = before.join(r).join(after)
	}
}

// first is who has sat longest of those that a node has room for, if anybody.
func (d *descent) first(n *node) (sitter, bool) {
	if d == nil {
		return sitter{}, false
	}
	r := d.top.first(n)
	if r == nil {
		return sitter{}, false
	}
	_, who, _ := r.sitters.first()
	return who, true
}

func (r *row) first(n *node) *row {
	if r == nil || !n.hasRoom(r.least) {
		return nil
	}
	if before := r.before.first(n); before != nil {
		return before
	}
	if n.takes(r.amounts) {
		return r
	}
	return r.after.first(n)
}

// hasRoom is the same as takes for amounts by resource index.
func (n *node) hasRoom(amounts []quota.Amount) bool {
	for r, limit := range n.ceilings {
		if n.subtree[r]+amounts[r] > limit {
			return false
		}
	}
	return true
}

// cut parts a tree into the rows whose seats are before one, and the others.
func (r *row) cut(seat uint64) (before, from *row) {
	switch {
	case r == nil:
		return nil, nil
	case r.seat < seat:
		r.after, from = r.after.cut(seat)
		before = r
	default:
		before, r.before = r.before.cut(seat)
		from = r
	}
	r.sum()
	return before, from
}

// join puts a tree before another.
func (r *row) join(other *row) *row {
	switch {
	case r == nil:
		return other
	case other == nil:
		return r
	case r.rank() > other.rank():
		r.after = r.after.join(other)
		r.sum()
		return r
	default:
		other.before = r.join(other.before)
		other.sum()
		return other
	}
}

// rank decides who is above whom in the tree. It scatters seats, so that the tree is not deep in whatever order they are
// taken, and has the same shape everywhere.
func (r *row) rank() uint64 {
	x := r.seat * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// sum says again what is least.
func (r *row) sum() {
	for i := range r.least {
		r.least[i] = amountOf(r.amounts, i)
		if r.before != nil {
			r.least[i] = min(r.least[i], r.before.least[i])
		}
		if r.after != nil {
			r.least[i] = min(r.least[i], r.after.least[i])
		}
	}
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
