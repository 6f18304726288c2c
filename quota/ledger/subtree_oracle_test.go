package ledger_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestASubtreeIsAppliedAsPartOfItsTree gives random texts of subtrees to a random ledger. Each must do what the whole
// tree does with the text in place of the subtree: the same changes and the same state, or the same refusal.
func TestASubtreeIsAppliedAsPartOfItsTree(t *testing.T) {
	applied := 0
	verify.Check(t, func(t *rapid.T) {
		l := ledger.New(quota.DefaultBounds())
		l.Apply(quota.Stamp{At: 1}, quotatest.ReshapingTree("t").Draw(t, "tree"))
		for i := range 30 {
			stamp := quota.Stamp{At: quota.Instant(i + 2), Wall: int64(i)}
			present, err := l.Reader().Tree("t")
			if err != nil || quotatest.Die(t, 3, "other command") > 0 {
				l.Apply(stamp, quotatest.ReshapingCommands().Draw(t, "command"))
				continue
			}
			text := randomText(t, present)
			sameAsWholeTree(t, l, present, text, stamp)
			if out := l.Apply(stamp, text); out.Refused == nil && len(out.Configuration.Changes) > 0 {
				applied++
			}
		}
	})
	if applied == 0 && verify.Enabled() { // a few runs may draw none
		t.Error("no text has changed anything")
	}
}

// randomText is a text of a subtree: the nodes of another tree that are in it, and sometimes one that is not.
func randomText(t *rapid.T, present quota.TreeSpec) quota.ApplyTrees {
	other := quotatest.ReshapingTree("t").Draw(t, "text").Trees[0]
	at := present.Nodes[quotatest.Die(t, len(present.Nodes), "at")].Path
	if at == "" {
		other.Moves = nil
		return quota.ApplyTrees{
			At: &quota.Subtree{Tree: "t"}, Trees: []quota.TreeSpec{other}, Meta: quota.ChangeMeta{Reason: "why"},
		}
	}
	text := quota.TreeSpec{Name: "t", Nodes: []quota.NodeSpec{{}}}
	for _, r := range present.Resources {
		text.Resources = append(text.Resources, quota.Resource{Name: r.Name, Unit: r.Unit})
	}
	for _, n := range other.Nodes {
		if quotatest.Below(n.Path, at) {
			text.Nodes = append(text.Nodes, n)
		}
	}
	if !slices.ContainsFunc(text.Nodes, func(n quota.NodeSpec) bool { return n.Path == at }) {
		text.Nodes = slices.Insert(text.Nodes, 1, *quotatest.FindNode(present, at))
	}
	if quotatest.Die(t, 12, "outside") == 0 {
		text.Nodes = append(text.Nodes, quota.NodeSpec{Path: "z"})
	}
	for _, m := range other.Moves {
		if m.From != at && m.To != at && quotatest.Below(m.From, at) && quotatest.Below(m.To, at) {
			text.Moves = append(text.Moves, m)
		}
	}
	return quota.ApplyTrees{
		At: &quota.Subtree{Tree: "t", Node: at}, Trees: []quota.TreeSpec{text}, Meta: quota.ChangeMeta{Reason: "why"},
	}
}

// sameAsWholeTree compares a text of a subtree with the whole tree that has it in place of the subtree, on copies of a
// ledger.
func sameAsWholeTree(t *rapid.T, l *ledger.Ledger, present quota.TreeSpec, c quota.ApplyTrees, stamp quota.Stamp) {
	text := c.Trees[0]
	whole, outside := text, 0
	if c.At.Node != "" {
		whole = present
		whole.Nodes = slices.DeleteFunc(slices.Clone(present.Nodes), func(n quota.NodeSpec) bool {
			return quotatest.Below(n.Path, c.At.Node)
		})
		outside = len(whole.Nodes) - 1
		whole.Nodes, whole.Moves = append(whole.Nodes, text.Nodes[1:]...), text.Moves
	}
	one, all := reload(t, l), reload(t, l)
	got, want := one.Apply(stamp, c), all.Apply(stamp, quota.ApplyTrees{Trees: []quota.TreeSpec{whole}, Meta: c.Meta})
	if text.Nodes[len(text.Nodes)-1].Path == "z" && c.At.Node != "" && c.At.Node != "z" {
		if got.Refused == nil || got.Refused.Kind != quota.Invalid || !strings.Contains(got.Refused.Text, "outside") {
			t.Fatalf("a node outside is not refused: %v", got.Refused)
		}
		return
	}
	if (got.Refused == nil) != (want.Refused == nil) {
		t.Fatalf("%+v: the subtree gives %v, the tree %v", c, got.Refused, want.Refused)
	}
	if got.Refused != nil {
		field := inWhole(got.Refused.Field, outside)
		if got.Refused.Text != want.Refused.Text || got.Refused.Kind != want.Refused.Kind || field != want.Refused.Field {
			t.Fatalf("the subtree is refused with %v, the tree with %v", got.Refused, want.Refused)
		}
	}
	if diff := cmp.Diff(want.Configuration, got.Configuration); diff != "" {
		t.Fatalf("tree (-), subtree (+):\n%s", diff)
	}
	image := func(l *ledger.Ledger) string {
		limited := fmt.Sprintf(`"Subtree":{"Tree":"t","Node":%q}`, c.At.Node)
		return strings.ReplaceAll(quotatest.ImageText(l.Snapshot()), limited, `"Subtree":null`)
	}
	if diff := cmp.Diff(image(all), image(one)); diff != "" {
		t.Fatalf("the state with the tree (-), with the subtree (+):\n%s", diff)
	}
}

// inWhole is a field of a text in the whole tree, where other nodes come before those of the text.
func inWhole(field string, outside int) string {
	rest, isNode := strings.CutPrefix(field, "trees[0].nodes[")
	number, after, _ := strings.Cut(rest, "]")
	i, err := strconv.Atoi(number)
	if !isNode || err != nil {
		return field
	}
	return fmt.Sprintf("trees[0].nodes[%d]%s", i+outside, after)
}

// subtreeState is what a reader of a subtree can rely on: its nodes by identity, and their configuration.
func subtreeState(l *ledger.Ledger, at string) string {
	var text strings.Builder
	for _, tree := range l.Snapshot().Trees() {
		for _, n := range tree.Nodes {
			if tree.Name == "t" && !n.Made && quotatest.Below(n.Spec.Path, at) {
				fmt.Fprintf(&text, "%d %+v\n", n.ID, *n.Spec)
			}
		}
	}
	return text.String()
}

// TestASubtreeIsStaleIfItHasChanged compares the check of an expected revision with an oracle that remembers the state
// of every subtree after every revision.
func TestASubtreeIsStaleIfItHasChanged(t *testing.T) {
	stale, fresh, forgotten := 0, 0, 0
	defer func() {
		if stale == 0 || fresh == 0 || verify.Enabled() && forgotten == 0 {
			t.Errorf("%d were stale, %d were not, %d were forgotten", stale, fresh, forgotten)
		}
	}()
	verify.Check(t, func(t *rapid.T) {
		bounds := quota.DefaultBounds()
		bounds.Revisions = rapid.SampledFrom([]int{3, 1000}).Draw(t, "revisions")
		l := ledger.New(bounds)
		l.Apply(quota.Stamp{At: 1}, quotatest.ReshapingTree("t").Draw(t, "tree"))
		paths := []string{"a", "b", "a/x", "a/y", "a/x/p", "c"}
		states := []map[string]string{{}} // by revision
		note := func() {
			now := map[string]string{}
			for _, at := range paths {
				now[at] = subtreeState(l, at)
			}
			for uint64(len(states)) <= l.Reader().Revision() {
				states = append(states, now)
			}
		}
		note()
		for i := range 25 {
			l.Apply(quota.Stamp{At: quota.Instant(i + 2)}, quotatest.ReshapingCommands().Draw(t, "command"))
			note()
			present, err := l.Reader().Tree("t")
			at := rapid.SampledFrom(paths).Draw(t, "at")
			if err != nil || quotatest.FindNode(present, at) == nil {
				continue
			}
			now := l.Reader().Revision()
			expected := uint64(quotatest.Die(t, int(now)+1, "expected"))
			c := quota.ApplyTrees{
				At: &quota.Subtree{Tree: "t", Node: at}, Trees: []quota.TreeSpec{{Name: "t", Nodes: []quota.NodeSpec{{}}}},
				Meta: quota.ChangeMeta{ExpectedRevision: &expected},
			}
			for _, n := range present.Nodes {
				if quotatest.Below(n.Path, at) {
					c.Trees[0].Nodes = append(c.Trees[0].Nodes, n)
				}
			}
			changed := false
			for r := expected; r < now; r++ {
				changed = changed || states[r][at] != states[r+1][at]
			}
			out := l.Sandbox().DryRun(c)
			isStale := out.Refused != nil && out.Refused.Kind == quota.RevisionMismatch
			if beyond := now-expected > uint64(bounds.Revisions); beyond != (isStale && strings.Contains(
				out.Refused.Text, "history")) && !changed {
				t.Fatalf("revision %d of %d is answered with %v", expected, now, out.Refused)
			} else if beyond {
				forgotten++
				continue
			}
			switch {
			case changed != isStale:
				t.Fatalf("%s has changed after %d: %v, but the answer is %v\nbefore:\n%s\nnow:\n%s", at, expected, changed,
					out.Refused, states[expected][at], states[now][at])
			case out.Refused == nil && len(out.Configuration.Changes) > 0:
				t.Fatalf("the present text changes %+v", out.Configuration.Changes)
			case changed:
				stale++
			default:
				fresh++
			}
		}
	})
}

// TestChangesOfASubtreeAreInTheUndoRecord: what takes a revision back says of the same subtrees that they have changed.
func TestChangesOfASubtreeAreInTheUndoRecord(t *testing.T) {
	changed := 0
	verify.Check(t, func(t *rapid.T) {
		l := ledger.New(quota.DefaultBounds())
		for i := range 30 {
			l.Apply(quota.Stamp{At: quota.Instant(i)}, quotatest.ReshapingCommands().Draw(t, "command"))
		}
		for _, r := range l.Reader().Revisions(0, 1000) {
			for _, path := range []string{"a", "b", "a/x", "a/y", "a/x/p", "c", "a+"} {
				byChanges, byUndo := ledger.ChangesSubtree(&r, quota.Subtree{Tree: "t", Node: path})
				if byChanges != byUndo && r.ChangeCount == len(r.Changes) {
					t.Fatalf("revision %+v changes %s by its changes: %v, by what takes it back: %v", r, path, byChanges, byUndo)
				}
				if byChanges {
					changed++
				}
			}
		}
	})
	if changed == 0 && verify.Enabled() { // a few runs may not meet any
		t.Error("nothing has changed")
	}
}
