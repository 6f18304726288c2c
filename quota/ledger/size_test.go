package ledger_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// heavyBounds count every byte, and allow few.
func heavyBounds(live int64) quota.Bounds {
	b := quota.DefaultBounds()
	b.FreeBytes, b.LiveBytes, b.TombstoneSpan = 0, live, 10
	b.EndedBytes, b.HistoryBytes, b.EventBytes = live/4, live/2, live/8
	return b
}

// TestSizesAreThoseOfARestoredLedger: whatever happens, a ledger that was restored counts what the one counts that
// wrote the image, keeps to the bounds, and decides alike from there on.
func TestSizesAreThoseOfARestoredLedger(t *testing.T) {
	refusals := 0
	verify.Check(t, func(t *rapid.T) {
		bounds := heavyBounds(rapid.Int64Range(8_000, 60_000).Draw(t, "bound"))
		l := ledger.New(bounds)
		commands := rapid.OneOf(quotatest.MixedCommands(), quotatest.ItemCommands())
		for _, name := range quotatest.TreeNames {
			l.Apply(quota.Stamp{}, quotatest.MixedTree(name).Draw(t, "tree"))
		}
		for at := range 60 {
			stamp := quota.Stamp{At: quota.Instant(at / 3)}
			c := commands.Draw(t, "command")
			before := l.Reader().Counts().Sizes
			var restored *ledger.Ledger
			if at%7 == 0 {
				restored = restoredWith(t, l, bounds)
				if got := restored.Reader().Counts().Sizes; got != before {
					t.Fatalf("restored it takes %+v, before it took %+v", got, before)
				}
			}
			out := l.Apply(stamp, c)
			if out.Refused != nil && out.Refused.Kind == quota.Full && strings.Contains(out.Refused.Text, "bytes") {
				refusals++
			}
			if restored != nil {
				again := restored.Apply(stamp, c)
				if asJSON(out.Refused) != asJSON(again.Refused) ||
					quotatest.ImageText(l.Snapshot()) != quotatest.ImageText(restored.Snapshot()) {
					t.Fatalf("%+v: %+v, and %+v after a restore", c, out.Refused, again.Refused)
				}
			}
			if err := l.Check(); err != nil {
				t.Fatal(err)
			}
			checkSizesWithin(t, bounds, before, l.Reader().Counts().Sizes)
		}
	})
	if refusals == 0 {
		t.Error("the bound was never met")
	}
}

// checkSizesWithin asserts that live bytes stay within their bound, and that what can be forgotten stays within its
// own, but for the newest.
func checkSizesWithin(t *rapid.T, b quota.Bounds, before, after quota.Sizes) {
	t.Helper()
	// A reservation that is cancelled puts back what it displaced, items are made for those who ask, and nodes on demand.
	const alone = 6_000
	if after.Live() > b.LiveBytes+alone && after.Live() > before.Live() {
		t.Fatalf("it takes %+v, more than %d", after, b.LiveBytes)
	}
	if after.Ended > b.EndedBytes+alone || after.Events > b.EventBytes+alone ||
		after.History > b.HistoryBytes+10*alone {
		t.Fatalf("it remembers %+v: more than %d, %d and %d", after, b.EndedBytes, b.HistoryBytes, b.EventBytes)
	}
}

// heavy is an allocation that keeps to all bounds of a request and takes a hundred times as much as an ordinary one.
func heavy(id string) quota.Allocate {
	c := quota.Allocate{ID: id, Claims: []quota.Claim{
		{Tree: "t", Amounts: quota.Vector{{Resource: "cores", Amount: 1}}},
	}}
	for i := range 32 {
		c.Labels = append(c.Labels, quota.Label{Key: fmt.Sprintf("label-%02d", i), Value: strings.Repeat("x", 256)})
	}
	for i := range 8 {
		c.Data = append(c.Data, quota.Label{Key: fmt.Sprintf("data-%02d", i), Value: strings.Repeat("x", 1024)})
	}
	return c
}

func oneTree() quota.ApplyTrees {
	return quota.ApplyTrees{Trees: []quota.TreeSpec{{
		Name: "t", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}}, Nodes: []quota.NodeSpec{{}},
	}}}
}

// TestHeavyRecordsMeetABoundInBytes: heavy records are refused by name of the bound and with a way out; small ones, and
// what frees, go on; below the feature level that brought the bound nothing is refused.
func TestHeavyRecordsMeetABoundInBytes(t *testing.T) {
	bounds := quota.DefaultBounds()
	bounds.LiveBytes, bounds.EndedBytes, bounds.EventBytes, bounds.HistoryBytes = 1<<20, 1<<17, 1<<17, 1<<17
	l := ledger.New(bounds)
	l.Apply(quota.Stamp{}, oneTree())
	granted := 0
	var refused *quota.Error
	for i := range 1000 {
		out := l.Apply(quota.Stamp{}, heavy(fmt.Sprintf("heavy-%d", i)))
		if refused = out.Refused; refused != nil {
			break
		}
		granted++
	}
	if refused == nil || refused.Kind != quota.Full || !strings.Contains(refused.Text, "1048576") ||
		!strings.Contains(refused.Text, "release") {
		t.Fatalf("after %d heavy allocations: %+v", granted, refused)
	}
	if dry := l.Sandbox().DryRun(heavy("dry")); dry.Refused == nil || dry.Refused.Kind != quota.Full {
		t.Errorf("a dry run says %+v", dry.Refused)
	}
	small := quota.Allocate{
		ID: "small", Claims: []quota.Claim{{Tree: "t", Amounts: quota.Vector{{Resource: "cores", Amount: 1}}}},
	}
	if out := l.Apply(quota.Stamp{}, small); out.Refused != nil {
		t.Errorf("a small allocation: %v", out.Refused)
	}
	if out := l.Apply(quota.Stamp{}, heavy("heavy-0")); out.Refused != nil || !out.Repeated {
		t.Errorf("a repetition: %+v", out.Refused)
	}
	var more *quota.Error
	for i := range 3 {
		small.ID = fmt.Sprintf("small-%d", i)
		l.Apply(quota.Stamp{}, small)
		more = l.Apply(quota.Stamp{}, quota.Renew{
			ID:   small.ID,
			Data: []quota.Label{{Key: "more", Value: strings.Repeat("y", 16_000)}},
		}).Refused
	}
	if more == nil || more.Kind != quota.Full || more.Field != "user_data" {
		t.Errorf("more user data: %+v", more)
	}
	if out := l.Apply(quota.Stamp{}, quota.Renew{
		ID:   "heavy-0",
		Data: []quota.Label{{Key: "data-00"}},
	}); out.Refused != nil {
		t.Errorf("less user data: %v", out.Refused)
	}
	for i := range granted {
		if out := l.Apply(quota.Stamp{}, quota.Release{ID: fmt.Sprintf("heavy-%d", i)}); out.Refused != nil {
			t.Fatalf("a release: %v", out.Refused)
		}
	}
	sizes := l.Reader().Counts().Sizes
	if sizes.Live() > 1<<17 || sizes.Ended > bounds.EndedBytes {
		t.Errorf("after all releases the ledger takes %+v", sizes)
	}
	if out := l.Apply(quota.Stamp{}, heavy("again")); out.Refused != nil {
		t.Errorf("after all releases: %v", out.Refused)
	}
}

// TestHeavyHistoryForgetsTheOldest, but never the newest change.
func TestHeavyHistoryForgetsTheOldest(t *testing.T) {
	bounds := quota.DefaultBounds()
	bounds.HistoryBytes = 200_000
	l := ledger.New(bounds)
	for i := range 40 {
		tree := oneTree()
		for n := range 100 {
			tree.Trees[0].Nodes = append(tree.Trees[0].Nodes, quota.NodeSpec{
				Path:   fmt.Sprintf("n%03d", n),
				Limits: []quota.ResourceLimit{{Resource: "cores", Limit: quota.AtMost(quota.Amount(i))}},
			})
		}
		if out := l.Apply(quota.Stamp{}, tree); out.Refused != nil {
			t.Fatal(out.Refused)
		}
		if got := l.Reader().Counts().Sizes.History; got > bounds.HistoryBytes {
			t.Fatalf("after %d changes the history takes %d bytes", i+1, got)
		}
	}
	kept := l.Reader().Revisions(0, 100)
	if len(kept) < 2 || len(kept) >= 40 || kept[0].Number != 40 || !kept[0].Undoable || kept[len(kept)-1].Undoable {
		t.Errorf("%d revisions are kept, the first can be undone: %v", len(kept), kept[len(kept)-1].Undoable)
	}
}
