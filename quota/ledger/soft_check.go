package ledger

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// checkSeats sees that exactly the claims of borrowing nodes sit, each in a seat of its own and in the row where it belongs.
func (v verifier) checkSeats() error {
	benches, homes := map[*node]*bench{}, map[*node]int{}
	taken := map[uint64]bool{}
	for fence, a := range v.allocations.held.All() {
		for i := range a.claims {
			c := &a.claims[i]
			if c.home() != c.at {
				homes[c.home()]++
			}
			if c.at.borrows != policy.BorrowSoft {
				if c.seat() != 0 || c.home() != c.at {
					return fmt.Errorf("claim %d of %q has a seat or is away from its node at %s, which does not borrow softly", i, a.id, c.at.place())
				}
				continue
			}
			if seat := c.seat(); seat == 0 || seat > v.allocations.seat || taken[seat] {
				return fmt.Errorf("claim %d of %q has seat %d of %d at %s, which is none or another's", i, a.id, seat, v.allocations.seat, c.at.place())
			}
			taken[c.seat()] = true
			if !c.home().borrowsFrom(c.at) {
				return fmt.Errorf("claim %d of %q is counted at %s but cannot borrow there from %s", i, a.id, c.at.place(), c.home().place())
			}
			if benches[c.at] == nil {
				benches[c.at] = newBench()
			}
			benches[c.at].add(c, sitter{fence, i})
		}
	}
	var err error
	for _, t := range v.forest.trees {
		t.root.walk(func(n *node) bool {
			if !n.bench.is(benches[n]) || n.homes != homes[n] {
				err = fmt.Errorf("%s says who sits there, or how many of its claims are counted further up, and it is not so", n.place())
			}
			return err == nil
		})
	}
	return err
}

// is tells whether the same claims sit in the same crowds and descents. One that nobody sits on is as good as none.
func (b *bench) is(other *bench) bool {
	if b == nil || other == nil {
		return b.empty() && other.empty()
	}
	return maps.EqualFunc(b.crowds, other.crowds, (*crowd).is) && maps.EqualFunc(b.descents, other.descents, (*descent).is)
}

func (b *bench) empty() bool { return b == nil || len(b.crowds)+len(b.descents) == 0 }

func (d *crowd) is(other *crowd) bool {
	return slices.Equal(d.holds, other.holds) && d.sitters.are(&other.sitters)
}

func (d *descent) is(other *descent) bool {
	placed := 0
	sound := d.top.sound(0, math.MaxUint64, &placed)
	return sound && placed == len(d.rows) && maps.EqualFunc(d.rows, other.rows, (*row).is)
}

func (r *row) is(other *row) bool { return r.sitters.are(&other.sitters) }

// sound sees that the rows of a tree are in order, from one seat to below another, and know their first seats and what is
// least; it counts them.
func (r *row) sound(from, to uint64, placed *int) bool {
	if r == nil {
		return true
	}
	*placed++
	again := *r
	again.least = make([]quota.Amount, len(r.least))
	again.sum()
	first, _, any := r.sitters.first()
	return any && first == r.seat && from <= r.seat && r.seat < to && slices.Equal(again.least, r.least) &&
		r.before.sound(from, r.seat, placed) && r.after.sound(r.seat+1, to, placed)
}

func (s *seats) are(others *seats) bool {
	for seat, who := range s.all() {
		if found, taken := others.get(seat); !taken || found != who {
			return false
		}
	}
	return s.count() == others.count()
}
