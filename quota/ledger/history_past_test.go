package ledger_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestPastConfigurations: the configuration after each revision, as the history shows it later, is the one that was
// there then, also if the ledger was loaded in between.
func TestPastConfigurations(t *testing.T) {
	t.Parallel()
	for name, commands := range map[string]*rapid.Generator[quota.Command]{
		"reshaping": quotatest.ReshapingCommands(), "mixed": quotatest.MixedCommands(), "policies": definitions(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			verify.Check(t, func(t *rapid.T) { pastConfigurations(t, commands) })
		})
	}
}

// definitions change policies only.
func definitions() *rapid.Generator[quota.Command] {
	return rapid.Map(quotatest.PolicyChanges(), func(c quota.ApplyTrees) quota.Command { return c })
}

func pastConfigurations(t *rapid.T, commands *rapid.Generator[quota.Command]) {
	l := ledger.New(quota.DefaultBounds())
	were := []string{configurationOf(l)}
	follow := func(c quota.Command) {
		l.Apply(quota.Stamp{}, c)
		if int(l.Reader().Revision()) == len(were) {
			were = append(were, configurationOf(l))
		}
	}
	for _, name := range []string{"t", "u"} {
		follow(quotatest.MixedTree(name).Draw(t, "first trees"))
	}
	for range 40 {
		follow(commands.Draw(t, "command"))
	}
	if die(t, 2) == 0 {
		l = reload(t, l)
	}
	for revision, former := range were {
		past, refused := l.Reader().ConfigurationAt(uint64(revision))
		if refused != nil {
			t.Fatal(refused)
		}
		if diff := cmp.Diff(former, asJSON(past)); diff != "" {
			t.Fatalf("the configuration after revision %d is not shown as it was (-was +shown):\n%s", revision, diff)
		}
	}
	if _, refused := l.Reader().ConfigurationAt(uint64(len(were))); refused == nil || refused.Kind != quota.NotFound {
		t.Fatalf("a revision that does not exist yet is answered with %v", refused)
	}
}

func configurationOf(l *ledger.Ledger) string {
	section := l.Reader().Book().Section()
	return asJSON(ledger.PastConfiguration{
		Trees: l.Reader().Configuration(), Policies: l.Reader().Policies(), Access: &section,
	})
}

// TestPastConfigurationsAreForReadersOfAll: rights at nodes do not show what was there once, and the access section is
// only for those who may read it.
func TestPastConfigurationsAreForReadersOfAll(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, cernTree(), "anna")
	if _, err := g.readerOf("anna").ConfigurationAt(1); err == nil || err.Kind != quota.Forbidden {
		t.Errorf("an administrator of one node gets %v", err)
	}
	section := g.ledger.Reader().Book().Section()
	section.Roles = []access.Role{{Name: "auditing", Verbs: access.SetOf(access.UsageRead)}}
	g.must("root", quota.ApplyTrees{Access: &section})
	last := g.ledger.Reader().Revision()
	for revision, roles := range map[uint64]int{last - 1: 0, last: 1} {
		past, err := g.readerOf("root").ConfigurationAt(revision)
		if err != nil || past.Access == nil || len(past.Access.Roles) != roles || len(past.Trees) != 1 {
			t.Errorf("of revision %d root gets %+v, %v", revision, past, err)
		}
	}
}

func (g *guarded) readerOf(account string) ledger.Reader {
	g.t.Helper()
	reader, err := g.ledger.Reader().ReaderOf(callerOf(account))
	if err != nil {
		g.t.Fatal(err)
	}
	return reader
}
