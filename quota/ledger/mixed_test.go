package ledger_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestMixed brings together what the oracles keep apart: borrowing, principals, reservations, moves and rollbacks.
// No model says what must come out, but what must be true after every command whatever came before is
// checked.
func TestMixed(t *testing.T) {
	t.Parallel()
	verify.Check(t, mixed)
}

// FuzzMixed does the same with what a fuzzer finds.
func FuzzMixed(f *testing.F) { quotatest.Fuzz(f, mixed) }

func mixed(t *rapid.T) {
	l := ledger.New(quota.DefaultBounds())
	for _, name := range []string{"t", "u"} {
		l.Apply(quota.Stamp{}, quotatest.MixedTree(name).Draw(t, "first trees"))
	}
	now := quota.Instant(0)
	for range 80 {
		if quotatest.Die(t, 15, "load") == 0 {
			l = reload(t, l)
		}
		now += quota.Instant(quotatest.Die(t, 3, "tick"))
		m := &commanded{before: booksOf(l), ledger: l, command: quotatest.MixedCommands().Draw(t, "command")}
		if resize, ok := resizeOfHeld(t, l); ok && die(t, 8) == 0 {
			m.command = resize
		}
		t.Logf("at %d %s", now, brief(m.command))
		m.dry = l.Sandbox().DryRun(m.command)
		sameTime := now <= l.Reader().Now()
		m.out = l.Apply(quota.Stamp{At: now}, m.command)
		m.resizes = slices.ContainsFunc(l.TakeFacts(), func(f ledger.Fact) bool {
			return f.Kind == ledger.FactResized && f.Since > 0
		})
		if err := l.Check(); err != nil {
			t.Fatalf("%+v: %v", m.command, err)
		}
		m.after = booksOf(l)
		m.check(t)
		if sameTime {
			quotatest.RequireSameDryRun(t, m.command, m.dry, m.out)
		}
	}
}

// commanded is a ledger before and after a command.
type commanded struct {
	ledger        *ledger.Ledger
	command       quota.Command
	before, after books
	dry, out      ledger.Outcome
	// resizes is true if waiting resizes have been carried out at its end.
	resizes bool
}

// books are what must not change by accident.
type books struct {
	trees, held string
	// over has by how much nodes, users and groups are above their limits.
	over map[string]quota.Amount
}

func booksOf(l *ledger.Ledger) books {
	image := l.Snapshot()
	trees := slices.Clone(image.Trees())
	for i := range trees {
		trees[i].Version = 0 // that of what is held
		forgetCrossed(&trees[i])
		for j := range trees[i].Nodes {
			trees[i].Nodes[j].Hold = nil // ends by itself
		}
	}
	held := slices.Collect(image.Held())
	for i := range held {
		held[i].Dropped = 0 // that of a resize that waited
	}
	b := books{trees: asJSON(trees), held: asJSON(held), over: overOf(l)}
	for _, tree := range l.Reader().Trees() {
		for _, kind := range []quota.HolderKind{quota.AUser, quota.AGroup} {
			list, _, refused := l.Reader().Principals(tree.Name, kind, "", "", 1000)
			if refused != nil {
				panic(refused)
			}
			for _, p := range list {
				b.addOver(tree.Name, kind, p)
			}
		}
	}
	return b
}

// forgetCrossed drops which thresholds are crossed: they follow what has been held, also for a while.
func forgetCrossed(tree *ledger.TreeImage) {
	tree.Nodes = slices.Clone(tree.Nodes)
	for i := range tree.Nodes {
		tree.Nodes[i].Crossed = nil
	}
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func (b *books) addOver(tree string, kind quota.HolderKind, p quota.PrincipalUsage) {
	for _, n := range p.Nodes {
		key := asJSON([]any{tree, n.Path, kind, p.Name})
		if running := quota.Amount(len(n.Applications)); n.MaxApplications.HasAmount() && running > n.MaxApplications.Amount {
			b.over[key+" applications"] = running - n.MaxApplications.Amount
		}
		for _, most := range n.Limits {
			for _, used := range n.Used {
				if used.Resource == most.Resource && used.Amount > most.Amount {
					b.over[key+" "+used.Resource] = used.Amount - most.Amount
				}
			}
		}
	}
}

func (m *commanded) check(t *rapid.T) {
	configured := m.out.Configuration != nil
	if !configured && m.before.trees != m.after.trees {
		t.Fatalf("%+v changed the trees:\n%s", m.command, cmp.Diff(m.before.trees, m.after.trees))
	}
	if m.changesNothing() && m.before.held != m.after.held {
		t.Fatalf("%+v was not carried out, but changed what is held:\n%s", m.command,
			cmp.Diff(m.before.held, m.after.held))
	}
	if configured {
		m.checkReport(t)
		return
	}
	for place, over := range m.after.over {
		if over > m.before.over[place] && !m.mayExceed() {
			t.Fatalf("I4: after %+v %s is over by %d, and was by %d", m.command, place, over, m.before.over[place])
		}
	}
}

func (m *commanded) changesNothing() bool {
	return m.out.Refused != nil || m.out.Decision != nil && !m.out.Decision.Granted || m.out.Repeated
}

// mayExceed is true for claims that are held whatever the limits say, and for the end of a reservation: what was over
// a limit before it may be so again, see TestCancelIsIdentity.
func (m *commanded) mayExceed() bool {
	switch c := m.command.(type) {
	case quota.Cancel, quota.Expire, quota.ScheduleLimits, quota.CancelScheduledLimit:
		return true
	case quota.Allocate:
		return c.Mode == quota.Force
	}
	return false
}

// checkReport: whatever nodes a change puts over a limit, its answer says so.
func (m *commanded) checkReport(t *rapid.T) {
	if m.resizes {
		return // the answer is about what was held before
	}
	reported := map[string]quota.Amount{}
	for _, o := range m.out.Configuration.Over {
		if o.Kind != quota.OfResource || o.Holder.Kind != quota.TheNode {
			continue
		}
		reported[quota.Place(o.Tree, o.Node)+" "+o.Resource] = o.Used - o.Limit
	}
	for place, over := range overOf(m.ledger) {
		if over > m.before.over[place] && reported[place] != over {
			t.Fatalf("after %+v %s is over by %d, and was by %d, but the answer says %d", m.command, place, over,
				m.before.over[place], reported[place])
		}
	}
	if m.before.held == m.after.held {
		return
	}
	switch m.command.(type) { // claims may be counted elsewhere, but no allocation ends
	case quota.SetLimits:
		t.Fatalf("%+v changed what is held:\n%s", m.command, cmp.Diff(m.before.held, m.after.held))
	}
}
