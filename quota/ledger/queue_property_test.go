package ledger_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestQueueProperties applies random commands of all kinds, most allocations of which may wait, to two ledgers, one of
// which is restored from a snapshot now and then. After each command both have the same; no waiting request could be
// granted, and every request is in the queue of something that blocks it (I7, verified by Check); of requests for the
// same the earlier is granted first (P8); and every request is granted or leaves the queue for a reason.
func TestQueueProperties(t *testing.T) {
	for name, commands := range map[string]*rapid.Generator[quota.Command]{
		"all": quotatest.AllCommands(), "borrowing": quotatest.BorrowingCommands(),
		"reshaping": quotatest.ReshapingCommands(),
		"cohorts":   cohortCommands(), "items": itemCommands(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verify.Check(t, func(t *rapid.T) {
				queueProperties(t, commands, name == "borrowing" || name == "cohorts", name == "items")
			})
		})
	}
}

// queueProperties looks at the order only if a path always means the same node.
func queueProperties(t *rapid.T, commands *rapid.Generator[quota.Command], ordered, items bool) {
	bounds := quota.DefaultBounds()
	bounds.TombstoneSpan = 4
	if die(t, 4) == 0 {
		bounds.Held, bounds.Waiting, bounds.Nodes = 3, 4, 12
	}
	a, b := ledger.New(bounds), ledger.New(bounds)
	stamp := quota.Stamp{At: 1}
	for _, name := range []string{"t", "u"} {
		tree := quotatest.BorrowingTree(name).Draw(t, "tree")
		if items && name == "t" {
			tree = itemTree(t)
		}
		tree.Trees[0].Leases.Grace = quota.Span(die(t, 5))
		a.Apply(stamp, tree)
		b.Apply(stamp, tree)
	}
	for range 50 {
		stamp.At += quota.Instant(die(t, 3))
		c := patient(t, commands.Draw(t, "command"))
		if resize, ok := resizeOfHeld(t, a); ok && die(t, 5) == 0 {
			c = resize
		}
		t.Logf("at %d: %s", stamp.At, brief(c))
		before := wholeQueue(a.Sandbox())
		a.Sandbox().DryRun(c)
		a.Apply(stamp, c)
		b.Apply(stamp, c)
		b.TakeFacts()
		if ordered {
			checkOrder(t, before, a)
		}
		checkNoneLost(t, before, a)
		if err := a.Check(); err != nil {
			t.Fatalf("after %#v: %v", c, err)
		}
		if die(t, 4) == 0 {
			b = restoredWith(t, b, bounds)
		}
		if diff := cmp.Diff(lines(quotatest.ImageText(a.Snapshot())), lines(quotatest.ImageText(b.Snapshot()))); diff != "" {
			t.Fatalf("after %#v a ledger that was frozen and loaded is another (-never +frozen):\n%s", c, diff)
		}
	}
}

func patient(t *rapid.T, c quota.Command) quota.Command {
	r, ok := c.(quota.Allocate)
	switch {
	case !ok && die(t, 9) == 0:
		return quota.Renew{ID: quotatest.IDs[die(t, len(quotatest.IDs))]}
	case !ok || r.Mode > quota.Wait || die(t, 3) == 0:
		return c
	}
	if die(t, 2) == 0 {
		r.TTL = quota.Span(1 + die(t, 20))
	}
	r.Mode, r.ReserveFor, r.Priority = quota.Wait, 0, int64(die(t, 6)/4)
	r.WaitFor = quota.Span(die(t, 3) * die(t, 20))
	return r
}

// resizeOfHeld is false if nothing is held.
func resizeOfHeld(t *rapid.T, l *ledger.Ledger) (quota.Resize, bool) {
	page, refused := l.Reader().Allocations(quota.AllocationFilter{}, 0, 1000)
	if refused != nil || len(page.Allocations) == 0 {
		return quota.Resize{}, false
	}
	a := page.Allocations[die(t, len(page.Allocations))]
	c := quota.Resize{ID: a.ID, Generation: []uint64{0, 0, a.Generation + 1}[die(t, 3)], WaitFor: quota.Span(die(t, 30))}
	if r := a.Resize; r != nil && die(t, 3) == 0 {
		c.Generation = r.Generation // the same again, or something else
	}
	claims := a.Claims
	if die(t, 3) == 0 {
		claims = page.Allocations[die(t, len(page.Allocations))].Claims // perhaps at other nodes
	}
	for _, claim := range claims[:1+die(t, len(claims))] {
		change := quota.ClaimChange{Tree: claim.Tree, Node: claim.Node}
		for _, component := range claim.Amounts {
			component.Amount = max(0, component.Amount+quota.Amount(die(t, 7)-2))
			change.Amounts = append(change.Amounts, component)
		}
		c.Claims = append(c.Claims, change)
	}
	return c, true
}

func cohortCommands() *rapid.Generator[quota.Command] {
	return rapid.Custom(func(t *rapid.T) quota.Command {
		switch die(t, 20) {
		case 0:
			return cohortTree(t)
		case 1, 2, 3, 4:
			return quota.Release{ID: quotatest.IDs[die(t, 10)]}
		case 5:
			return quota.Expire{Most: 2}
		case 6:
			at := quota.AtMost(quota.Amount(die(t, 6)))
			return quota.SetLimits{
				Tree: "t", Node: []string{"", "a", "a/x", "b"}[die(t, 4)],
				Limits: []quota.ResourceLimit{{Resource: "cpu", Limit: at}},
			}
		}
		r := quota.Allocate{ID: quotatest.IDs[die(t, 10)]}
		for _, path := range []string{"a", "a/x", "b", "c"}[die(t, 4):][:1] {
			r.Claims = append(
				r.Claims, quota.Claim{
					Tree: "t", Node: path,
					Amounts: quota.Vector{{Resource: "cpu", Amount: quota.Amount(die(t, 5))}},
				})
		}
		return r
	})
}

func cohortTree(t *rapid.T) quota.ApplyTrees {
	spec := quota.TreeSpec{Name: "t", Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}}}
	for _, path := range []string{"", "a", "b", "c", "a/x"} {
		n := quota.NodeSpec{Path: path, Queueing: quota.Queueing(die(t, 3))}
		if path == "" {
			n.Policy = "cohort"
		}
		some := func() []quota.ResourceLimit {
			return []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(quota.Amount(die(t, 6)))}}[:die(t, 2)]
		}
		n.Limits, n.Borrow, n.Lend = some(), some(), some()
		spec.Nodes = append(spec.Nodes, n)
	}
	spec.Overtake = quota.Span(die(t, 9))
	return quota.ApplyTrees{Trees: []quota.TreeSpec{spec}}
}

func checkOrder(t *rapid.T, before []quota.QueuedInfo, l *ledger.Ledger) {
	for _, granted := range l.TakeFacts() {
		if granted.Kind != ledger.FactGranted {
			continue
		}
		g := granted.Allocation.Info()
		if g.Forced {
			continue
		}
		for _, earlier := range before {
			w := earlier.Allocation
			if w.ID == g.ID || w.Priority < g.Priority {
				break
			}
			if w.Resize != nil {
				continue // it wants something else
			}
			if now, refused := l.Reader().Allocation(w.ID); refused == nil && now.Waiting != nil &&
				now.Waiting.Since == w.Waiting.Since && wants(w) == wants(g) {
				t.Fatalf("P8: %s was granted before %s, which wants the same and came first", g.ID, w.ID)
			}
		}
	}
}

func wants(a quota.AllocationInfo) string {
	text := fmt.Sprint(a.Principal, a.TTL)
	for _, c := range a.Claims {
		text += fmt.Sprint(c.Tree, c.Node, c.Amounts, c.Standing)
	}
	return text
}

func checkNoneLost(t *rapid.T, before []quota.QueuedInfo, l *ledger.Ledger) {
	for _, w := range before {
		id := w.Allocation.ID
		if _, refused := l.Reader().Allocation(id); refused != nil {
			t.Fatalf("request %s is neither in the queue nor held nor ended", id)
		}
	}
}

func brief(c quota.Command) string {
	text := fmt.Sprintf("%T%+v", c, c)
	for _, empty := range []string{
		"Labels:[]", "Picks:[]", "Principals:[]", "Defaults:[]", "Borrow:[]", "Lend:[]", "Moves:[]",
		"Data:[]", "Items:[]",
		"Actor:", "Reason:", "RequestID:", "Fingerprint:", "ExpectedRevision:<nil>", "Amount:", "Resource:",
		"Unpreemptable:false", "Hard:false",
		"Applications:unset", "Queueing:0", "Policy: ", "ReserveFor:0", "TTL:0", "Type:0", "Keep:0",
		"{User: Groups:[] Application:}", "Principal: ",
	} {
		text = strings.ReplaceAll(text, empty, "")
	}
	return strings.Join(strings.Fields(text), " ")
}

func die(t *rapid.T, n int) int { return quotatest.Die(t, n, "die") }
