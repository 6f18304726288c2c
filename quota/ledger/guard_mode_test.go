package ledger_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

func (g *guarded) anonymously(c quota.Command) ledger.Outcome {
	g.index++
	return g.ledger.ApplyFrom(quota.Stamp{Wall: wallNow},
		ledger.Origin{Caller: &access.Caller{Kind: access.Anonymous}, Index: g.index}, c)
}

func newOpen(t rapid.TB, accounts ...string) *guarded {
	g := &guarded{t: t, ledger: ledger.New(quota.DefaultBounds())}
	for i, name := range append([]string{"root"}, accounts...) {
		if i == 0 {
			g.must("root", quota.ChangeAccess{Change: access.Bootstrap{
				Secret: [32]byte{1}, Account: "root",
				Token: access.NewToken{ID: tokenOf("root"), Hash: [32]byte{1}, Ends: wallNow + 1e9},
			}})
			continue
		}
		g.must("root", quota.ChangeAccess{Change: access.CreateAccount{Account: access.Account{Name: name}}})
		g.must("root", quota.ChangeAccess{Change: access.CreateToken{
			Account: name, Ceiling: access.AllVerbs,
			Token: access.NewToken{ID: tokenOf(name), Hash: [32]byte{2}, Ends: wallNow + 1e9},
		}})
	}
	g.must("root", quota.ApplyTrees{Trees: cernTree()})
	return g
}

// TestWhatHasNoOwnerIsForOperators: in a guarded cluster only they renew and release what was allocated without a
// credential.
func TestWhatHasNoOwnerIsForOperators(t *testing.T) {
	g := newOpen(t, "hans")
	lease := claimCores("old", "atlas/physics/higgs", 3)
	lease.TTL = 1000
	g.anonymously(lease)
	big := claimCores("queued", "atlas/physics/higgs", 10)
	big.Mode = quota.Wait
	g.anonymously(big)
	if count, more := g.ledger.Reader().CountUnowned(1000); count != 2 || more {
		t.Errorf("counted %d, %v, want 2", count, more)
	}
	if _, more := g.ledger.Reader().CountUnowned(1); !more {
		t.Error("the count does not say that it was cut")
	}
	g.must("root", quota.ChangeAccess{Change: access.SetMode{Mode: access.Guarded}})
	g.refused("hans", quota.Renew{ID: "old"}, quota.NotFound, "no allocation")
	for _, c := range []quota.Command{quota.Renew{ID: "old"}, quota.Cancel{ID: "queued"}, quota.Release{ID: "old"}} {
		if out := g.applyAs("root", c); out.Refused != nil {
			t.Errorf("%T: %v", c, out.Refused)
		}
	}
}

// TestAWatchingLedgerNamesVerbs: what would be refused names the verb that the caller lacks.
func TestAWatchingLedgerNamesVerbs(t *testing.T) {
	g := newOpen(t, "hans")
	g.must("root", quota.ChangeAccess{Change: access.SetMode{Mode: access.Watching}})
	for _, c := range []struct {
		command quota.Command
		verb    access.Verb
	}{
		{setCores("cms", 1), access.ConfigRead},
		{claimCores("h", "cms", 1), access.Hold},
		{quota.ChangeAccess{Change: access.SetMode{Mode: access.Watching}}, access.AccessManage},
	} {
		if out := g.apply("hans", c.command); out.WouldRefuse == nil || out.WouldRefuse.Verb != c.verb {
			t.Errorf("%T: would refuse %+v, want for want of %s", c.command, out.WouldRefuse, c.verb)
		}
	}
}
