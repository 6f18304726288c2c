package ledger_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestDeclaredEnds: whatever is done to an allocation, its declared end is the instant of its grant or confirmation and
// the declared time, it never moves, and nothing is held at it or later.
func TestDeclaredEnds(t *testing.T) {
	over := 0
	verify.Check(t, func(t *rapid.T) {
		d := &declaredEnds{ledger: ledger.New(quota.DefaultBounds()), ends: map[uint64]quota.Instant{}, over: &over}
		for _, name := range []string{"t", "u"} {
			c := quotatest.MixedTree(name).Draw(t, "tree")
			c.Trees[0].Leases.Default = quota.Span(quotatest.Die(t, 3, "leases") * 4)
			d.ledger.Apply(quota.Stamp{}, c)
		}
		now := quota.Instant(0)
		for range 120 {
			now += quota.Instant(quotatest.Die(t, 3, "tick"))
			if quotatest.Die(t, 20, "load") == 0 {
				d.ledger = reload(t, d.ledger)
			}
			d.apply(t, now, quota.Expire{Most: quota.MaxExpire})
			d.check(t)
			c := quotatest.MixedCommands().Draw(t, "command")
			if a, ok := c.(quota.Allocate); ok && quotatest.Die(t, 2, "declared") == 0 {
				a.For = quota.Span(1 + quotatest.Die(t, 9, "for"))
				c = a
			}
			d.apply(t, now, c)
		}
	})
	if over == 0 {
		t.Error("no declared time was ever over")
	}
}

// declaredEnds is a model that knows when allocations began.
type declaredEnds struct {
	ledger *ledger.Ledger
	ends   map[uint64]quota.Instant // by fence
	over   *int
}

func (d *declaredEnds) apply(t *rapid.T, now quota.Instant, c quota.Command) {
	d.ledger.Apply(quota.Stamp{At: now}, c)
	for _, f := range d.ledger.TakeFacts() {
		if f.Allocation == nil {
			continue
		}
		a := f.Allocation.Info()
		switch {
		case f.Kind == ledger.FactGranted && a.SplitFrom != "" && a.For == 0:
			from, _ := d.ledger.Reader().Allocation(a.SplitFrom)
			d.ends[a.Fence] = d.ends[from.Fence]
		case f.Kind == ledger.FactGranted && a.State == quota.Held && a.For > 0, f.Kind == ledger.FactConfirmed && a.For > 0:
			d.ends[a.Fence] = now + quota.Instant(a.For)
		}
		if a.Fence != 0 && a.EndsAt != d.ends[a.Fence] {
			t.Fatalf("after %+v %q ends at %d, want %d", c, a.ID, a.EndsAt, d.ends[a.Fence])
		}
	}
}

func (d *declaredEnds) check(t *rapid.T) {
	now := d.ledger.Reader().Now()
	page, _ := d.ledger.Reader().Allocations(quota.AllocationFilter{}, 0, 1000)
	for _, a := range page.Allocations {
		end := d.ends[a.Fence]
		if a.EndsAt != end || end != 0 && (end <= now || a.State == quota.Held && a.ExpiresAt > end) {
			t.Fatalf("at %d %q is held until %d and expires at %d, but was to end at %d", now, a.ID, a.EndsAt, a.ExpiresAt, end)
		}
	}
	for _, e := range d.ledger.Reader().Events(quota.EventFilter{Kind: quota.EventDeclaredEnd}, 1000).Events {
		if a, refused := d.ledger.Reader().Allocation(e.ID); refused == nil && a.Ended && a.EndedAt == e.Stamp.At {
			*d.over++
			if a.EndsAt == 0 || a.EndedAt < a.EndsAt {
				t.Fatalf("%q ended at %d, before %d", a.ID, a.EndedAt, a.EndsAt)
			}
		}
	}
	if err := d.ledger.Check(); err != nil {
		t.Fatal(err)
	}
}
