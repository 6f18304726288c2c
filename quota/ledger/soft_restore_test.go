package ledger_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestCancelPutsBack: a reservation that is cancelled at once leaves all that it has moved or preempted where they
// were, with the same arrival numbers and groups, also if the ledger was loaded in between.
func TestCancelPutsBack(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		l := busy(t, 40)
		for i := range 20 {
			before, over := heldBy(l), booksOf(l).over
			c, ok := quotatest.MixedCommands().Draw(t, "reserved").(quota.Allocate)
			if !ok {
				continue
			}
			c.ID, c.Mode, c.ReserveFor = fmt.Sprintf("r%d", i), quota.Reserve, 1000
			out := l.Apply(quota.Stamp{}, c)
			if out.Allocation == nil {
				continue
			}
			displaced := cmp.Diff(before, heldBy(l, c.ID)) != ""
			if rapid.Bool().Draw(t, "load") {
				l = reload(t, l)
			}
			restored := l.CancelNow(c.ID)
			if err := l.Check(); err != nil {
				t.Fatal(err)
			}
			if len(over) > 0 {
				continue // no allocation is put back where there is no room, also if there was none before
			}
			if diff := cmp.Diff(before, heldBy(l)); displaced && diff != "" {
				t.Fatalf("%+v was cancelled, and not all is as before (-before +after):\n%s", c, diff)
			}
			if len(restored) != len(out.Decision.Preempted) {
				t.Fatalf("%v were preempted, and %v hold again", out.Decision.Preempted, restored)
			}
		}
	})
}

// TestLateCancel: whatever happened since, all that were preempted hold again or none, and no node, user or group is
// over a limit for it.
func TestLateCancel(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		l := busy(t, 40)
		for i := range 10 {
			c, ok := quotatest.MixedCommands().Draw(t, "reserved").(quota.Allocate)
			if !ok {
				continue
			}
			c.ID, c.Mode, c.ReserveFor = fmt.Sprintf("r%d", i), quota.Reserve, 1000
			out := l.Apply(quota.Stamp{}, c)
			for range quotatest.Die(t, 4, "meanwhile") {
				l.Apply(quota.Stamp{}, quotatest.MixedCommands().Draw(t, "command"))
			}
			if a, refused := l.Reader().Allocation(c.ID); refused != nil || a.Ended {
				continue
			}
			over := booksOf(l).over
			restored := l.CancelNow(c.ID)
			if err := l.Check(); err != nil {
				t.Fatal(err)
			}
			if n := len(out.Decision.Preempted); len(restored) != 0 && len(restored) != n {
				t.Fatalf("of %d that were preempted, %v hold again", n, restored)
			}
			for place, amount := range booksOf(l).over {
				if amount > over[place] {
					t.Fatalf("%s is over its limit by %d, and was by %d", place, amount, over[place])
				}
			}
		}
	})
}

func busy(t *rapid.T, commands int) *ledger.Ledger {
	l := ledger.New(quota.DefaultBounds())
	for _, name := range []string{"t", "u"} {
		l.Apply(quota.Stamp{}, quotatest.MixedTree(name).Draw(t, "tree"))
	}
	for range commands {
		l.Apply(quota.Stamp{}, quotatest.MixedCommands().Draw(t, "command"))
	}
	return l
}

func reload(t rapid.TB, l *ledger.Ledger) *ledger.Ledger {
	t.Helper()
	return restoredWith(t, l, quota.DefaultBounds())
}

// heldBy leaves out some allocations.
func heldBy(l *ledger.Ledger, but ...string) []string {
	var list []string
	for a := range l.Snapshot().Held() {
		if slices.Contains(but, a.Request.ID) {
			continue
		}
		text, err := json.Marshal(a)
		if err != nil {
			panic(err)
		}
		list = append(list, string(text))
	}
	return list
}

func overOf(l *ledger.Ledger) map[string]quota.Amount {
	over := map[string]quota.Amount{}
	for _, tree := range l.Reader().Trees() {
		page, refused := l.Reader().Usage(quota.UsageQuery{Tree: tree.Name, Subtree: true, Max: 1000})
		if refused != nil {
			panic(refused)
		}
		for _, n := range page.Nodes {
			for _, r := range n.Resources {
				if r.Over > 0 && r.Effective.Kind != quota.Advisory {
					over[quota.Place(tree.Name, n.Path)+" "+r.Resource.Name] = r.Over
				}
			}
		}
	}
	return over
}
