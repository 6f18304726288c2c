package oracle

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// pair is a ledger and the oracle beside it. Both get the same commands.
type pair struct {
	ledger   *ledger.Ledger
	oracle   *oracle
	now      quota.Stamp
	commands []quota.Command // that were given
	// images were taken on the way, with their texts.
	images     []*ledger.Snapshot
	imageTexts []string
	// foresees compares what a dry run says of denied requests, which only some commands have.
	foresees bool
}

func newPair(bounds quota.Bounds) *pair {
	return &pair{ledger: ledger.New(bounds), oracle: newOracle(bounds)}
}

// run applies n commands, and compares everything now and then.
func (p *pair) run(t *rapid.T, n int, next func() quota.Command) {
	for range n {
		switch quotatest.Die(t, 10, "step") {
		case 0:
			p.advanceTime(t)
		case 1:
			p.reload(t)
		case 2:
			p.apply(t, p.commands[quotatest.Die(t, len(p.commands), "again")])
		default:
			p.apply(t, next())
		}
		if err := p.ledger.Check(); err != nil {
			t.Fatal(err)
		}
		if quotatest.Die(t, 4, "look") == 0 {
			p.compareViews(t)
		}
	}
	p.compareViews(t)
	for i, image := range p.images {
		if quotatest.ImageText(image) != p.imageTexts[i] {
			t.Fatal("an image changed when the ledger went on")
		}
	}
}

// advanceTime moves time, sometimes back, which the ledger must not follow; a release of an unknown id carries it.
func (p *pair) advanceTime(t *rapid.T) {
	p.now.At += quota.Instant(rapid.Int64Range(-3, 7).Draw(t, "tick"))
	p.now.Wall += rapid.Int64Range(-3, 7).Draw(t, "wall")
	p.apply(t, quota.Release{ID: "unknown"})
	if p.ledger.Reader().Now() != p.oracle.now.At {
		t.Fatalf("it is %d, want %d", p.ledger.Reader().Now(), p.oracle.now.At)
	}
}

// reload restores a ledger from an image, and may go on with it.
func (p *pair) reload(t *rapid.T) {
	image := p.ledger.Snapshot()
	restored, err := quotatest.Restore(image, p.oracle.bounds)
	if err != nil {
		t.Fatalf("an image cannot be restored: %v", err)
	}
	text := quotatest.ImageText(image)
	if diff := cmp.Diff(text, quotatest.ImageText(restored.Snapshot())); diff != "" {
		t.Fatalf("a restored ledger has another image (-before +after):\n%s", diff)
	}
	p.images, p.imageTexts = append(p.images, image), append(p.imageTexts, text)
	if rapid.Bool().Draw(t, "go on with the restored one") {
		p.ledger = restored
	}
}

// apply tries a command, applies it, and compares.
func (p *pair) apply(t *rapid.T, c quota.Command) {
	p.commands = append(p.commands, c)
	dry := p.dryRun(t, c)
	before := p.admitted(c)
	sameTime := p.now.At <= p.ledger.Reader().Now()
	p.oracle.reach = reachOf(p.ledger)
	got := p.ledger.Apply(p.now, c)
	want := p.oracle.apply(p.now, c)
	v := verdictOf(c, got)
	v.over = p.withoutPoolsOver(v.over)
	if diff := cmp.Diff(want, v, verdictOptions); diff != "" {
		t.Fatalf("%T %+v (-oracle +ledger):\n%s\n%+v", c, c, diff, got.Refused)
	}
	if want.configured && !want.repeated && len(want.changes) > 0 {
		// the same, in the order of the ledger
		p.oracle.history[len(p.oracle.history)-1].Changes = got.Configuration.Changes
	}
	if sameTime {
		quotatest.RequireSameDryRun(t, c, dry, got)
	}
	if p.foresees && dry.Configuration != nil && len(v.changes) > 0 {
		after := slices.DeleteFunc(p.admitted(c), func(id string) bool { return slices.Contains(before, id) })
		quotatest.RequireSame(t, "who is admitted by a change", after, dry.Configuration.Effects.Admitted)
	}
}

// reachOf is how far back the history of a ledger goes: how much it can keep depends on how it keeps it.
func reachOf(l *ledger.Ledger) uint64 {
	oldest := l.Reader().Revision()
	for _, r := range l.Reader().Revisions(0, math.MaxInt) {
		if !r.Undoable {
			break
		}
		oldest = r.Number - 1
	}
	return oldest
}

// dryRun tries a command, and now and then makes sure that this changed nothing.
func (p *pair) dryRun(t *rapid.T, c quota.Command) ledger.Outcome {
	if quotatest.Die(t, 4, "watch") > 0 {
		return p.ledger.Sandbox().DryRun(c)
	}
	before := quotatest.ImageText(p.ledger.Snapshot())
	out := p.ledger.Sandbox().DryRun(c)
	if diff := cmp.Diff(before, quotatest.ImageText(p.ledger.Snapshot())); diff != "" {
		t.Fatalf("a dry run of %+v changed the ledger:\n%s", c, diff)
	}
	return out
}

// verdictOptions ignore orders that are not promised.
var verdictOptions = cmp.Options{
	cmp.AllowUnexported(verdict{}), cmpopts.EquateEmpty(),
	cmpopts.SortSlices(func(a, b string) bool { return a < b }),
	cmpopts.SortSlices(func(a, b quota.Change) bool {
		return strings.Join([]string{a.Tree, a.Node, a.Field},
			"|") < strings.Join([]string{b.Tree, b.Node, b.Field}, "|")
	}),
}

// verdictOf is an outcome in the words of the oracle, which names the fields of requests but not of configurations.
func verdictOf(c quota.Command, out ledger.Outcome) verdict {
	v := verdict{repeated: out.Repeated, expired: out.Expired}
	if e := out.Refused; e != nil {
		v.refused = e.Kind
		if !configures(c) {
			v.field = e.Field
		}
		for _, b := range e.Breaches {
			v.breaches = append(v.breaches, quota.Place(b.Tree, b.Node)+" "+b.Resource)
		}
	}
	if d := out.Decision; d != nil {
		v.decided, v.waits, v.alternative = true, d.Waiting, d.Alternative
		v.violations, v.preempted = d.Violations, withoutReasons(d.Preempted)
	}
	if out.Allocation != nil {
		v.fence = out.Allocation.Fence()
	}
	if c := out.Configuration; c != nil {
		v.configured, v.revision, v.changes, v.over = true, c.Revision, withoutItemTexts(c.Changes), c.Over
	}
	for _, it := range out.Items {
		v.items = append(v.items, itemText(it))
	}
	return v
}

func configures(c quota.Command) bool {
	switch c.(type) {
	case quota.ApplyTrees, quota.SetLimits, quota.DeleteTree, quota.MoveNode, quota.RollBack:
		return true
	}
	return false
}

func itemText(i quota.ItemInfo) string { return fmt.Sprintf("%+v", i) }
