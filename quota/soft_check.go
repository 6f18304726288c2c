package quota

import (
	"fmt"
	"maps"
)

// checkSeats sees that exactly the claims of borrowing nodes sit, each in a seat of its own and in the row where it belongs.
func (l *Ledger) checkSeats() error {
	benches, homes := map[*node]*bench{}, map[*node]int{}
	taken := map[uint64]bool{}
	for fence, a := range l.held.All() {
		for i := range a.claims {
			c := &a.claims[i]
			if c.home() != c.at {
				homes[c.home()]++
			}
			if c.at.borrows != BorrowSoftly {
				if c.seat() != 0 || c.home() != c.at {
					return fmt.Errorf("claim %d of %q has a seat or is away from its node at %s, which does not borrow softly", i, a.id, c.at.place())
				}
				continue
			}
			if seat := c.seat(); seat == 0 || seat > l.seat || taken[seat] {
				return fmt.Errorf("claim %d of %q has seat %d of %d at %s, which is none or another's", i, a.id, seat, l.seat, c.at.place())
			}
			taken[c.seat()] = true
			if !c.home().borrowsFrom(c.at) {
				return fmt.Errorf("claim %d of %q is counted at %s but cannot borrow there from %s", i, a.id, c.at.place(), c.home().place())
			}
			if benches[c.at] == nil {
				benches[c.at] = &bench{branches: map[*node]map[kin]*row{}}
			}
			benches[c.at].add(c, sitter{fence, i})
		}
	}
	var err error
	for _, t := range l.trees {
		t.root.walk(func(n *node) bool {
			if !n.bench.is(benches[n]) || n.homes != homes[n] {
				err = fmt.Errorf("%s says who sits there, or how many of its claims are counted further up, and it is not so", n.place())
			}
			return err == nil
		})
	}
	return err
}

// is tells whether the same claims sit in the same rows.
func (b *bench) is(other *bench) bool {
	if b.count() != other.count() {
		return false
	}
	if b == nil || other == nil {
		return true
	}
	for branch, rows := range b.branches {
		if !maps.EqualFunc(rows, other.branches[branch], (*row).is) {
			return false
		}
	}
	return true
}

func (r *row) is(other *row) bool {
	for seat, who := range r.sitters.all() {
		if found, taken := other.sitters.get(seat); !taken || found != who {
			return false
		}
	}
	return r.sitters.count() == other.sitters.count()
}
