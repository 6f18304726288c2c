package ledger_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// guarded is a guarded ledger whose accounts each have one token.
type guarded struct {
	t      rapid.TB
	ledger *ledger.Ledger
	index  uint64
}

const wallNow = 1_800_000_000_000

func tokenOf(account string) (id access.TokenID) {
	copy(id[:], account+"........")
	return id
}

func callerOf(account string) *access.Caller {
	c := &access.Caller{Kind: access.AccountCaller, User: "account/" + account}
	id := tokenOf(account)
	copy(c.Credential[:], id[:])
	return c
}

// newGuarded bootstraps a ledger with the accounts root and others, applies trees as root, and guards it.
func newGuarded(t rapid.TB, trees []quota.TreeSpec, accounts ...string) *guarded {
	return newLedgerIn(t, access.Guarded, trees, accounts...)
}

func newLedgerIn(t rapid.TB, mode access.Mode, trees []quota.TreeSpec, accounts ...string) *guarded {
	return newBounded(t, quota.DefaultBounds(), mode, trees, accounts...)
}

func newBounded(
	t rapid.TB, b quota.Bounds, mode access.Mode, trees []quota.TreeSpec, accounts ...string,
) *guarded {
	g := &guarded{t: t, ledger: ledger.New(b)}
	g.must("root", quota.ChangeAccess{Change: access.Bootstrap{
		Secret: [32]byte{1}, Account: "root",
		Token: access.NewToken{ID: tokenOf("root"), Hash: [32]byte{1}, Ends: wallNow + 1e9},
	}})
	for _, name := range accounts {
		g.must("root", quota.ChangeAccess{Change: access.CreateAccount{Account: access.Account{Name: name}}})
		g.must("root", quota.ChangeAccess{Change: access.CreateToken{
			Account: name, Ceiling: access.AllVerbs,
			Token: access.NewToken{ID: tokenOf(name), Hash: [32]byte{2}, Ends: wallNow + 1e9},
		}})
	}
	g.must("root", quota.ChangeAccess{Change: access.SetMode{Mode: mode}})
	g.must("root", quota.ApplyTrees{Trees: trees})
	return g
}

func (g *guarded) apply(account string, c quota.Command) ledger.Outcome {
	g.t.Helper()
	g.index++
	c = inShared(c)
	early, isRefused := g.ledger.Reader().At(wallNow).RefusalOf(callerOf(account), c)
	out := g.ledger.ApplyFrom(quota.Stamp{Wall: wallNow}, ledger.Origin{Caller: callerOf(account), Index: g.index}, c)
	switch refused := out.Refused; {
	case isRefused && (refused == nil || !reflect.DeepEqual(early.Refused, refused)):
		g.t.Fatalf("%s: %T is refused early with %+v, and then %+v", account, c, early.Refused, refused)
	case !isRefused && refused != nil && refused.Verb != 0 && !quota.FactsOf(c).NeedsPlan &&
		(refused.Kind != quota.NotFound || refused.Field != "id"): // ids are decided by an entry, see RefusalOf
		g.t.Fatalf("%s: %T is refused with %+v, and not early", account, c, refused)
	}
	return out
}

func (g *guarded) must(account string, c quota.Command) ledger.Outcome {
	g.t.Helper()
	out := g.apply(account, c)
	if out.Refused != nil || out.Decision != nil && !out.Decision.Granted {
		g.t.Fatalf("%s may not %T: %v %+v", account, c, out.Refused, out.Decision)
	}
	return out
}

func (g *guarded) refused(account string, c quota.Command, kind quota.Kind, text string) {
	g.t.Helper()
	c = inShared(c)
	before := g.ledger.Header()
	dry := g.ledger.Sandbox().DryRunFrom(ledger.Origin{Caller: callerOf(account)}, c)
	out := g.apply(account, c)
	switch {
	case out.Refused == nil:
		g.t.Errorf("%s may %T %+v, want %v", account, c, c, kind)
	case out.Refused.Kind != kind || !strings.Contains(out.Refused.Error(), text):
		g.t.Errorf("%s is refused with %v: %v; want %v: %s", account, out.Refused.Kind, out.Refused, kind, text)
	case dry.Refused == nil || dry.Refused.Error() != out.Refused.Error():
		g.t.Errorf("a dry run answers %v, and the command %v", dry.Refused, out.Refused)
	case g.ledger.Header() != before:
		g.t.Errorf("the refused %T has changed the ledger", c)
	}
}

func cores(n quota.Amount) []quota.ResourceLimit {
	return []quota.ResourceLimit{{Resource: "cores", Limit: quota.AtMost(n)}}
}

func bind(role string, accounts ...string) access.Binding {
	b := access.Binding{Role: role}
	for _, name := range accounts {
		b.To = append(b.To, access.Subject{Kind: access.AccountSubject, Name: name})
	}
	return b
}

// cernTree is the tree of the examples: atlas/physics/higgs and its siblings, each with its administrator.
func cernTree() []quota.TreeSpec {
	return []quota.TreeSpec{{
		Name: "cern", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}},
		Nodes: []quota.NodeSpec{
			{Policy: "strict", Limits: cores(100)},
			{Path: "atlas", Limits: cores(60), Bindings: []access.Binding{bind("node-admin", "anna")}},
			{Path: "atlas/physics", Limits: cores(40), Bindings: []access.Binding{bind("node-admin", "peter")}},
			{Path: "atlas/physics/higgs", Limits: cores(10), Bindings: []access.Binding{bind("holder", "hans", "heidi")}},
			{Path: "cms", Limits: cores(40), Bindings: []access.Binding{bind("node-admin", "carl")}},
		},
	}}
}

func setCores(node string, n quota.Amount) quota.SetLimits {
	return quota.SetLimits{Tree: "cern", Node: node, Limits: cores(n)}
}

func claimCores(id, node string, n quota.Amount) quota.Allocate {
	return quota.Allocate{ID: id, Claims: []quota.Claim{{
		Tree: "cern", Node: node, Amounts: quota.Vector{{Resource: "cores", Amount: n}},
	}}}
}

// TestLimitsAreSetFromAbove is the rule of nested quotas: an administrator sets the limits below the own node, and
// neither those of the node itself nor of other subtrees.
func TestLimitsAreSetFromAbove(t *testing.T) {
	g := newGuarded(t, cernTree(), "anna", "peter", "hans", "heidi", "carl")
	g.must("anna", setCores("atlas/physics", 41))
	g.must("peter", setCores("atlas/physics/higgs", 11))
	g.must("root", setCores("atlas", 59))
	g.refused("anna", setCores("atlas", 60), quota.Forbidden, "lacks the right limits.set at cern or above")
	g.must("anna", setCores("atlas/physics/higgs", 12))
	g.refused("peter", setCores("atlas/physics", 42), quota.Forbidden, "limits.set")
	g.refused("hans", setCores("atlas/physics/higgs", 12), quota.Forbidden, "limits.set")
	g.refused("carl", setCores("atlas/physics", 42), quota.NotFound, "there is no node cern:atlas/physics")
	g.refused("carl", setCores("nowhere/at-all", 42), quota.NotFound, "there is no node cern:nowhere/at-all")
	g.refused("carl", quota.SetLimits{Tree: "none", Limits: cores(1)}, quota.NotFound, "there is no tree none")
}

func TestCommandsNeedTheirRights(t *testing.T) {
	g := newGuarded(t, cernTree(), "anna", "peter", "hans", "heidi", "carl")
	g.must("hans", claimCores("h1", "atlas/physics/higgs", 1))
	g.refused("hans", claimCores("h2", "cms", 1), quota.NotFound, "there is no node cern:cms")
	g.refused("peter", claimCores("h2", "atlas/physics/higgs", 1), quota.Forbidden, "lacks the right hold at")
	force := claimCores("h2", "atlas/physics/higgs", 1)
	force.Mode = quota.Force
	g.refused("hans", force, quota.Forbidden, "hold.force")
	urgent := claimCores("h2", "atlas/physics/higgs", 1)
	urgent.Claims[0].Priority = 5
	g.refused("hans", urgent, quota.Forbidden, "with priority 0 at most, not 5")
	other := claimCores("h2", "atlas/physics/higgs", 1)
	other.Principal.User = "account/heidi"
	g.refused("hans", other, quota.Forbidden, "may not hold for account/heidi")
	g.refused("hans", quota.Expire{Most: 1}, quota.Forbidden, "only the cluster itself")
	g.refused("hans", quota.SetCivilOffset{Offset: 1}, quota.Forbidden, "only the cluster itself")
	g.refused("hans", quota.ChangeAccess{Change: access.SetMode{Mode: access.Guarded}}, quota.Forbidden, "access.manage")
	g.refused("hans", quota.DeleteTree{Tree: "cern"}, quota.NotFound, "there is no tree cern")
	g.refused("anna", setCores("atlas", 1000), quota.Forbidden, "limits.set") // and not what the policy says of it
	g.refused("anna", quota.RollBack{Revision: 1}, quota.Forbidden, "config.read")
	g.refused("anna", quota.ApplyTrees{Trees: cernTree()}, quota.Forbidden, "with --at cern:atlas")
	g.refused("hans", quota.ApplyTrees{Trees: []quota.TreeSpec{{Name: "none"}}}, quota.NotFound, "there is no tree none")
}

// TestAlternativesNeedTheirRights: a request needs the rights at the nodes of all its alternatives, and while it waits
// those who may read or operate at some of them only do not see it.
func TestAlternativesNeedTheirRights(t *testing.T) {
	g := newGuarded(t, cernTree(), "anna", "peter", "hans", "heidi", "carl")
	anyOf := func(id string, nodes ...string) quota.Allocate {
		r := quota.Allocate{ID: id, Mode: quota.Wait}
		for _, node := range nodes {
			r.AnyOf = append(r.AnyOf, claimCores(id, node, 8).Claims)
		}
		return r
	}
	g.refused("hans", anyOf("h1", "atlas/physics/higgs", "cms"), quota.NotFound, "any_of[1].claims[0].node: there is no")
	g.must("root", claimCores("full", "atlas/physics/higgs", 10))
	g.must("root", claimCores("full2", "cms", 40))
	for _, r := range []quota.Allocate{
		anyOf("r1", "atlas/physics/higgs", "cms"), anyOf("r2", "atlas/physics/higgs", "atlas/physics/higgs"),
	} {
		if out := g.apply("root", r); out.Decision == nil || !out.Decision.Waiting {
			t.Fatalf("%s does not wait: %+v", r.ID, out)
		}
	}
	g.refused("anna", quota.Cancel{ID: "r1"}, quota.NotFound, `r1" is held`)
	g.refused("carl", quota.Cancel{ID: "r1"}, quota.NotFound, `r1" is held`)
	for user, seen := range map[string][]string{"anna": {"r2"}, "carl": nil, "root": {"r1", "r2"}} {
		var got []string
		for _, id := range []string{"r1", "r2"} {
			reader, refused := g.ledger.Reader().At(wallNow).ReaderOf(callerOf(user))
			if refused != nil {
				t.Fatal(refused)
			}
			if _, refused := reader.Allocation(sharedID(id)); refused == nil {
				got = append(got, id)
			}
		}
		if !slices.Equal(got, seen) {
			t.Errorf("%s sees %v, want %v", user, got, seen)
		}
	}
	g.refused("anna", quota.Cancel{ID: "r2"}, quota.Forbidden, "nor has the right hold.operate where it holds")
}

// TestOthersAllocationsDoNotExist: who may not operate an allocation learns nothing from its id.
func TestOthersAllocationsDoNotExist(t *testing.T) {
	g := newGuarded(t, cernTree(), "anna", "peter", "hans", "heidi", "carl")
	out := g.must("hans", claimCores("h1", "atlas/physics/higgs", 1))
	if info := out.Allocation.Info(); info.Owner != "account/hans" {
		t.Errorf("the owner is %q", info.Owner)
	}
	text := `no allocation "frontend/test h1" is held`
	g.refused("heidi", quota.Release{ID: "h1"}, quota.NotFound, text)
	g.refused("heidi", quota.Renew{ID: "h1"}, quota.NotFound, text)
	g.refused("heidi", quota.Confirm{ID: "h1"}, quota.NotFound, text)
	g.refused("heidi", quota.Cancel{ID: "h1"}, quota.NotFound, text)
	g.refused("heidi", quota.Release{ID: "h0"}, quota.NotFound, `h0" is held`)
	taken := `the id "frontend/test h1" cannot be used`
	g.refused("heidi", claimCores("h1", "atlas/physics/higgs", 1), quota.IDTaken, taken)
	g.refused("heidi", claimCores("h1", "atlas/physics/higgs", 2), quota.IDTaken, taken)
	g.must("hans", claimCores("h1", "atlas/physics/higgs", 1))
	g.must("hans", quota.Release{ID: "h1"})
	g.refused("heidi", claimCores("h1", "atlas/physics/higgs", 1), quota.IDTaken, taken)
}

// TestNobodyGivesMoreThanTheyHave: bindings and roles give at most what the caller has at the same place.
func TestNobodyGivesMoreThanTheyHave(t *testing.T) {
	g := newGuarded(t, cernTree(), "anna", "peter", "hans", "heidi", "carl")
	bound := func(node string, list ...access.Binding) quota.ApplyTrees {
		trees := cernTree()
		for i := range trees[0].Nodes {
			if n := &trees[0].Nodes[i]; n.Path == node {
				n.Bindings = access.CanonicalBindings(append(n.Bindings, list...))
			}
		}
		return quota.ApplyTrees{Trees: trees}
	}
	g.must("root", bound("", bind("node-admin", "anna")))
	trees := bound("", bind("node-admin", "anna")).Trees
	trees[0].Nodes[4].Bindings = access.CanonicalBindings(append(trees[0].Nodes[4].Bindings, bind("operator", "anna")))
	g.refused("anna", quota.ApplyTrees{Trees: trees}, quota.Forbidden, "may not give the role operator at cern:cms")
	trees[0].Nodes[4].Bindings = access.CanonicalBindings(
		[]access.Binding{bind("node-admin", "carl"), bind("limit-admin", "hans")})
	g.must("anna", quota.ApplyTrees{Trees: trees})
	section := access.Section{Bindings: []access.Binding{bind("root", "root", "anna")}}
	g.refused("anna", quota.ApplyTrees{Access: &section}, quota.Forbidden, "access.manage at the cluster")
	nobody := quota.ApplyTrees{Access: &access.Section{}}
	g.refused("root", nobody, quota.InUse, "no caller who manages access could log in")
}

// TestRevokedTokensCountForNothing: no command of a token is applied behind its revocation.
func TestRevokedTokensCountForNothing(t *testing.T) {
	g := newGuarded(t, cernTree(), "anna", "peter", "hans", "heidi", "carl")
	g.must("hans", claimCores("h1", "atlas/physics/higgs", 1))
	g.must("root", quota.ChangeAccess{Change: access.RevokeToken{ID: tokenOf("hans")}})
	g.refused("hans", quota.Release{ID: "h1"}, quota.Unauthenticated, "is revoked")
	unnamed := g.ledger.ApplyFrom(quota.Stamp{Wall: wallNow}, ledger.Origin{Index: 99}, quota.Release{ID: "h1"})
	if unnamed.Refused == nil || unnamed.Refused.Kind != quota.Unauthenticated {
		t.Errorf("a command without a caller is answered %+v", unnamed)
	}
	late := g.ledger.ApplyFrom(quota.Stamp{Wall: wallNow + 2e9}, ledger.Origin{Caller: callerOf("heidi"), Index: 99},
		claimCores("h2", "atlas/physics/higgs", 1))
	if late.Refused == nil || !strings.Contains(late.Refused.Text, "has ended") {
		t.Errorf("a token that has ended is answered %+v", late)
	}
}

// TestRightsEndWithoutCommands: what ends with time has ended for views and dry runs of a later time, although no
// command has told the ledger so.
func TestRightsEndWithoutCommands(t *testing.T) {
	trees := cernTree()
	soon := bind("holder", "hans")
	soon.Until = wallNow + 1000
	trees[0].Nodes[3].Bindings = []access.Binding{soon}
	g := newGuarded(t, trees, "hans")
	claim, hans := claimCores(sharedID("h1"), "atlas/physics/higgs", 1), callerOf("hans")
	for wall, may := range map[int64]bool{wallNow: true, wallNow + 999: true, wallNow + 1000: false} {
		view, sandbox := g.ledger.Reader().At(wall), g.ledger.Sandbox().At(wall)
		reader, refused := view.ReaderOf(hans)
		if refused != nil {
			t.Fatal(refused)
		}
		_, isRefused := view.RefusalOf(hans, claim)
		dry := sandbox.DryRunFrom(ledger.Origin{Caller: hans}, claim)
		if isRefused == may || (dry.Refused == nil) != may || reader.May(access.Hold, "cern", "atlas/physics/higgs") != may {
			t.Errorf("after %d ms: refused %v, the dry run %v, the reader %v", wall-wallNow, isRefused, dry.Refused,
				reader.May(access.Hold, "cern", "atlas/physics/higgs"))
		}
	}
	if now := g.ledger.Header().Now.Wall; now != wallNow {
		t.Errorf("a dry run has moved the time to %d", now)
	}
}

// TestAWatchingLedgerRefusesNothing: it says what a guarded one would refuse.
func TestAWatchingLedgerRefusesNothing(t *testing.T) {
	g := &guarded{t: t, ledger: ledger.New(quota.DefaultBounds())}
	g.must("root", quota.ChangeAccess{Change: access.SetMode{Mode: access.Watching}})
	out := g.must("nobody", quota.ApplyTrees{Trees: cernTree()})
	if out.WouldRefuse == nil || out.WouldRefuse.Kind != quota.Unauthenticated {
		t.Errorf("a watching ledger would refuse %v", out.WouldRefuse)
	}
	if out = g.must("nobody", claimCores("h1", "cms", 1)); out.WouldRefuse == nil {
		t.Error("a watching ledger would refuse nothing")
	}
}

// TestIdentitiesAreDecidedByTime: a caller that was identified once is refused when its token has ended, and a refusal
// that had ended counts again if wall time goes back, whatever was identified in between.
func TestIdentitiesAreDecidedByTime(t *testing.T) {
	g := newGuarded(t, cernTree(), "hans")
	g.must("root", quota.ChangeAccess{Change: access.Refuse{Refused: access.Refused{
		RefusedKey: access.RefusedKey{Kind: access.RefusedUser, Name: "account/hans"}, Until: wallNow + 1000,
	}}})
	hans := callerOf("hans")
	for _, at := range []struct {
		wall int64
		says string
	}{
		{wallNow + 999, "is refused"},
		{wallNow + 1000, ""},
		{wallNow + 2000, ""},
		{wallNow + 500, "is refused"},
		{wallNow + 2000, ""},
		{wallNow + 1e9, "has ended"},
	} {
		g.index++
		out := g.ledger.ApplyFrom(quota.Stamp{Wall: at.wall}, ledger.Origin{Caller: hans, Index: g.index},
			quota.SetLimits{Tree: "cern", Node: "cms", Limits: cores(1)})
		refused := out.Refused.Error()
		if at.says == "" && strings.Contains(refused, "is refused") || !strings.Contains(refused, at.says) {
			t.Errorf("at %d: %s", at.wall, refused)
		}
	}
}
