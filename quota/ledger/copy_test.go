package ledger_test

import (
	"encoding/json"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestCopyForPlans gives random commands of all kinds to a ledger, and asks it and a copy what random changes of the
// configuration would do: refusals, changes, limits that would be exceeded, what would be admitted. The answers are the
// same in every byte.
func TestCopyForPlans(t *testing.T) {
	for name, commands := range map[string]*rapid.Generator[quota.Command]{
		"all": quotatest.AllCommands(), "borrowing": quotatest.BorrowingCommands(),
		"reshaping": quotatest.ReshapingCommands(),
		"cohorts":   cohortCommands(), "items": itemCommands(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked, changed, admitted atomic.Int64
			verify.Check(t, func(t *rapid.T) {
				for _, out := range planOnCopies(t, commands, name == "items") {
					asked.Add(1)
					if c := out.Configuration; c != nil && !out.Repeated && len(c.Changes) > 0 {
						changed.Add(1)
						admitted.Add(int64(len(c.Effects.Admitted)))
					}
				}
			})
			t.Logf("%d plans, %d with changes, which admit %d requests", asked.Load(), changed.Load(), admitted.Load())
			if changed.Load() == 0 || asked.Load() == changed.Load() {
				t.Error("the plans are all of one kind")
			}
		})
	}
}

func planOnCopies(t *rapid.T, commands *rapid.Generator[quota.Command], items bool) []ledger.Outcome {
	bounds := quota.DefaultBounds()
	bounds.TombstoneSpan = 4
	if die(t, 4) == 0 {
		bounds.Held, bounds.Waiting, bounds.Nodes = 3, 4, 12
	}
	l, stamp := ledger.New(bounds), quota.Stamp{At: 1}
	for _, name := range []string{"t", "u"} {
		tree := quotatest.BorrowingTree(name).Draw(t, "tree")
		if items && name == "t" {
			tree = itemTree(t)
		}
		l.Apply(stamp, tree)
	}
	var outcomes []ledger.Outcome
	for range 12 {
		stamp.At += quota.Instant(die(t, 3))
		l.Apply(stamp, patient(t, commands.Draw(t, "command")))
		c := commands.Draw(t, "asked")
		if !configures(c) {
			c = changeOfAll(t, l.Sandbox())
		}
		want := l.Sandbox().DryRun(c)
		scratch, err := ledger.CopyForPlans(bounds, l.Format(), l.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		got := scratch.Sandbox().DryRun(c)
		if diff := cmp.Diff(outcomeText(t, want), outcomeText(t, got)); diff != "" {
			t.Fatalf("%s: the copy answers something else:\n%s", brief(c), diff)
		}
		outcomes = append(outcomes, got)
	}
	return outcomes
}

func configures(c quota.Command) bool {
	switch c.(type) {
	case quota.ApplyTrees, quota.SetLimits, quota.MoveNode, quota.RollBack, quota.DeleteTree,
		quota.CordonNode, quota.UncordonNode:
		return true
	}
	return false
}

func changeOfAll(t *rapid.T, v ledger.Sandbox) quota.Command {
	factor := quota.Amount(die(t, 4))
	trees := v.Configuration()
	for i := range trees {
		for j := range trees[i].Nodes {
			n := &trees[i].Nodes[j]
			limits := n.Limits
			n.Limits = nil
			for _, limit := range limits {
				if limit.Limit.Kind == quota.Limited {
					limit.Limit.Amount = min(limit.Limit.Amount, quota.MaxAmount/4) * factor
				}
				n.Limits = append(n.Limits, limit)
			}
		}
	}
	return quota.ApplyTrees{Trees: trees, Meta: quota.ChangeMeta{Actor: "root", Reason: "all"}}
}

func outcomeText(t *rapid.T, out ledger.Outcome) string {
	text, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
