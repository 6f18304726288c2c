package ledger_test

import (
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

// TestEqualTreeVersions: whenever a tree has a version that it had before, its configuration and every claim in it are
// what they were then. The end of a reservation relies on that.
func TestEqualTreeVersions(t *testing.T) {
	for name, w := range versionedWorlds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			returns := 0
			verify.Check(t, func(t *rapid.T) {
				l, seen, last := ledger.New(quota.DefaultBounds()), map[string][]string{}, map[string]uint64{}
				playVersions(t, l, w, func() {
					for _, tree := range l.Snapshot().Trees() {
						key := fmt.Sprint(tree.Name, " ", tree.Version)
						state := claimsIn(l, tree)
						if former, known := seen[key]; known && !slices.Equal(former, state) {
							t.Fatalf("tree %s has version %d again, but (-then +now):\n%s", tree.Name, tree.Version,
								cmp.Diff(former, state))
						}
						if seen[key] = state; tree.Version < last[tree.Name] {
							returns++
						}
						last[tree.Name] = tree.Version
					}
				})
			})
			if returns < verify.Scale(1, 10) {
				t.Errorf("a version came back %d times, too few to tell", returns)
			}
		})
	}
}

type versioned struct {
	tree     func(name string) *rapid.Generator[quota.ApplyTrees]
	commands *rapid.Generator[quota.Command]
}

func versionedWorlds() map[string]versioned {
	return map[string]versioned{
		"mixed":     {quotatest.MixedTree, quotatest.MixedCommands()},
		"items":     {quotatest.ItemTree, quotatest.ItemCommands()},
		"all":       {quotatest.MixedTree, quotatest.AllCommands()},
		"reshaping": {quotatest.ReshapingTree, quotatest.ReshapingCommands()},
	}
}

// playVersions calls look after each of many commands, of which some reserve and take back.
func playVersions(t *rapid.T, l *ledger.Ledger, w versioned, look func()) {
	var reserved []string
	for _, name := range []string{"t", "u"} {
		l.Apply(quota.Stamp{}, w.tree(name).Draw(t, "tree"))
	}
	for round := range 60 {
		c := w.commands.Draw(t, "command")
		switch a, ok := c.(quota.Allocate); {
		case ok && quotatest.Die(t, 3, "reserve") == 0:
			a = reservationOf(t, a, round)
			reserved, c = append(reserved, a.ID), a
		case len(reserved) > 0 && quotatest.Die(t, 2, "cancel") == 0:
			last := len(reserved) - 1
			reserved, c = reserved[:last], quota.Cancel{ID: reserved[last]}
		}
		l.Apply(quota.Stamp{At: quota.Instant(round / 10)}, c)
		look()
	}
}

// claimsIn leaves out holds and crossed thresholds.
func claimsIn(l *ledger.Ledger, tree ledger.TreeImage) []string {
	tree.ItemNumbers = nil
	tree.Nodes = slices.DeleteFunc(slices.Clone(tree.Nodes), func(n ledger.NodeImage) bool { return n.Made })
	for i := range tree.Nodes { // the end of a reservation takes neither back
		tree.Nodes[i].Hold, tree.Nodes[i].Crossed = nil, nil
	}
	list := []string{asJSON(tree)}
	for a := range l.Snapshot().Held() {
		for i, c := range a.Request.Claims {
			if c.Tree != tree.Name {
				continue
			}
			var home, arrivalSeq uint64
			if i < len(a.Homes) {
				home = a.Homes[i]
			}
			if i < len(a.ArrivalSeqs) {
				arrivalSeq = a.ArrivalSeqs[i]
			}
			items := slices.DeleteFunc(slices.Clone(a.Items),
				func(it ledger.HeldItemImage) bool { return it.Claim != i })
			list = append(list, asJSON([]any{a.Fence, i, a.Placed[i], home, arrivalSeq, c, items}))
		}
	}
	return list
}
