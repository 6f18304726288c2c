package ledger_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// hush is a policy that only a hidden tree uses, spy a role that only the access section names.
var (
	hush = quota.PolicySpec{Name: "hush", Base: "strict", Unset: "unlimited"}
	spy  = access.Role{Name: "spy", Verbs: access.SetOf(access.UsageRead)}
)

// leakyLedger has tree cern, whose administrator is cecil, and stray, who has no rights. If hasSecrets, it also has
// what neither may know: a tree, a policy, a role, and a request.
func leakyLedger(t *testing.T, hasSecrets bool) *guarded {
	t.Helper()
	trees := cernTree()
	trees[0].Nodes[0].Bindings = []access.Binding{bind("node-admin", "cecil")}
	g := newGuarded(t, trees, "cecil", "stray", "anna", "peter", "hans", "heidi", "carl")
	if !hasSecrets {
		return g
	}
	section := g.ledger.Reader().Book().Section()
	section.Roles = append(section.Roles, spy)
	g.must("root", quota.ApplyTrees{
		Meta: quota.ChangeMeta{RequestID: "used", Fingerprint: "7"}, Policies: []quota.PolicySpec{hush}, Access: &section,
		Trees: []quota.TreeSpec{{
			Name: "secret", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}},
			Nodes: []quota.NodeSpec{{Policy: "hush", Limits: cores(100)}},
		}},
	})
	return g
}

// TestApplyTellsNothingBeforeRights: an ApplyTrees of a caller without the rights to what it names is answered alike,
// whether that exists or not.
func TestApplyTellsNothingBeforeRights(t *testing.T) {
	first := uint64(1)
	secret := quota.TreeSpec{
		Name: "secret", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}},
		Nodes: []quota.NodeSpec{{Policy: "hush", Limits: cores(100)}},
	}
	badPolicy, badRole := cernTree(), cernTree()
	badPolicy[0].Nodes[0].Policy = "unknown"
	badRole[0].Nodes[4].Bindings = []access.Binding{bind("unknown", "carl")}
	own := cernTree()
	own[0].Nodes[0].Bindings = []access.Binding{bind("node-admin", "cecil")}
	for name, c := range map[string]struct {
		account string
		apply   quota.ApplyTrees
	}{
		"a removed policy":     {"stray", quota.ApplyTrees{RemovePolicies: []string{"hush"}}},
		"a policy":             {"stray", quota.ApplyTrees{Policies: []quota.PolicySpec{hush}}},
		"an empty section":     {"stray", quota.ApplyTrees{Access: &access.Section{}}},
		"a section":            {"stray", quota.ApplyTrees{Access: &access.Section{Roles: []access.Role{spy}}}},
		"a request":            {"stray", quota.ApplyTrees{Meta: quota.ChangeMeta{RequestID: "used", Fingerprint: "7"}}},
		"a revision":           {"stray", quota.ApplyTrees{Meta: quota.ChangeMeta{ExpectedRevision: &first}}},
		"a tree":               {"stray", quota.ApplyTrees{Trees: []quota.TreeSpec{secret}}},
		"all trees":            {"stray", quota.ApplyTrees{Prune: true}},
		"a policy of others":   {"cecil", quota.ApplyTrees{Trees: own, Policies: []quota.PolicySpec{hush}}},
		"no section":           {"cecil", quota.ApplyTrees{Trees: own, Access: &access.Section{}}},
		"an unknown policy":    {"cecil", quota.ApplyTrees{Trees: badPolicy}},
		"an unknown role":      {"cecil", quota.ApplyTrees{Trees: badRole}},
		"a request of another": {"cecil", quota.ApplyTrees{Trees: own, Meta: quota.ChangeMeta{RequestID: "used"}}},
	} {
		t.Run(name, func(t *testing.T) {
			var said [2]string
			for i, hasSecrets := range []bool{false, true} {
				g := leakyLedger(t, hasSecrets)
				out := g.ledger.Sandbox().DryRunFrom(ledger.Origin{Caller: callerOf(c.account)}, c.apply)
				if said[i] = refusalText(out.Refused); out.Configuration != nil && len(out.Configuration.Changes) > 0 {
					t.Errorf("%d differences are shown", len(out.Configuration.Changes))
				}
				if c.account == "stray" && out.Refused == nil {
					t.Error("it is not refused")
				}
				if done := g.apply(c.account, c.apply); refusalText(done.Refused) != said[i] {
					t.Errorf("a dry run answers %q, and the command %v", said[i], done.Refused)
				}
			}
			if said[0] != said[1] {
				t.Errorf("it is answered %q, and where the secrets exist %q", said[0], said[1])
			}
		})
	}
}

// TestOwnDocumentsCanBeAppliedAgain: a caller may apply what it may read, unchanged.
func TestOwnDocumentsCanBeAppliedAgain(t *testing.T) {
	g := leakyLedger(t, true)
	reader := g.readerOf("cecil")
	g.must("cecil", quota.ApplyTrees{Trees: reader.Configuration(), Policies: reader.Policies()})
	reader = g.readerOf("root")
	g.must("root", quota.ApplyTrees{
		Trees: reader.Configuration(), Policies: reader.Policies(), Access: reader.Access(), Prune: true,
	})
}

// TestRequestIDsBelongToTheirActor: two callers may use the same request id, and each is answered with its own change.
func TestRequestIDsBelongToTheirActor(t *testing.T) {
	g := newGuarded(t, cernTree(), "anna", "peter", "hans", "heidi", "carl")
	mine, theirs := setCores("atlas/physics", 41), setCores("cms", 39)
	mine.Meta = quota.ChangeMeta{RequestID: "r", Fingerprint: "1"}
	theirs.Meta = quota.ChangeMeta{RequestID: "r", Fingerprint: "2"}
	first := g.must("root", theirs)
	second := g.must("anna", mine)
	again, other := g.must("anna", mine), g.must("root", theirs)
	if second.Repeated || !again.Repeated || again.Configuration.Revision != second.Configuration.Revision {
		t.Errorf("anna is answered %+v, and then %+v", second.Configuration, again.Configuration)
	}
	if !other.Repeated || other.Configuration.Revision != first.Configuration.Revision {
		t.Errorf("root is answered %+v, and then %+v", first.Configuration, other.Configuration)
	}
}

// TestIDsOfOthersTellNothing: an id of another caller is answered as one that does not exist, and both are decided in
// the same place: by an entry, or before the log for callers without a credential.
func TestIDsOfOthersTellNothing(t *testing.T) {
	g := newGuarded(t, cernTree(), "anna", "peter", "hans", "heidi", "carl")
	g.must("hans", claimCores("taken", "atlas/physics/higgs", 1))
	view := g.ledger.Reader().At(wallNow)
	for _, caller := range []*access.Caller{callerOf("carl"), {Kind: access.Anonymous}} {
		for _, named := range []func(id string) quota.Command{
			func(id string) quota.Command { return quota.Release{ID: id} },
			func(id string) quota.Command { return quota.Renew{ID: id} },
			func(id string) quota.Command { return quota.Resize{ID: id} },
			func(id string) quota.Command { return quota.Transfer{ID: id} },
			func(id string) quota.Command { return quota.Split{ID: id} },
			func(id string) quota.Command { return quota.Confirm{ID: id} },
			func(id string) quota.Command { return quota.Cancel{ID: id} },
			func(id string) quota.Command {
				c := claimCores(id, "", 1)
				c.Claims[0].Tree = "unknown"
				return c
			},
		} {
			taken, free := named(sharedID("taken")), named(sharedID("spare"))
			var said [2]string
			var early [2]bool
			for i, c := range []quota.Command{taken, free} {
				_, early[i] = view.RefusalOf(caller, c)
				out := g.ledger.Sandbox().DryRunFrom(ledger.Origin{Caller: caller}, c)
				said[i] = strings.NewReplacer("taken", "ID", "spare", "ID").Replace(refusalText(out.Refused))
			}
			if said[0] != said[1] || said[0] == "" {
				t.Errorf("%T of %q is answered %q, and of an unknown id %q", taken, caller.User, said[0], said[1])
			}
			if early[0] != early[1] || caller.Kind == access.Anonymous && !early[0] {
				t.Errorf("%T of %q: refused before the log %v, and for an unknown id %v", taken, caller.User, early[0], early[1])
			}
		}
	}
}

// TestQueuesHideLevels: the place in the queue does not name the level above that blocks a request, if tenants see
// nothing of it.
func TestQueuesHideLevels(t *testing.T) {
	for see, want := range map[quota.TenantsSee]string{
		quota.SeeTotals: "cores at t:lab", quota.SeeNames: "cores at t:lab",
		quota.SeeNothing: "cores at a level above, in tree t",
	} {
		g := newGuarded(t, seenTree(0, see), "reader", "other")
		g.must("other", claimAt("hidden", "lab/b", 10))
		waits := claimAt("waits", "lab/a", 24)
		waits.Mode, waits.WaitFor = quota.Wait, 60_000
		anyOf := quota.Allocate{ID: "any", Mode: quota.Wait, WaitFor: 60_000, AnyOf: [][]quota.Claim{
			claimAt("", "lab/a", 24).Claims, claimAt("", "lab/a", 23).Claims,
		}}
		for _, c := range []quota.Allocate{waits, anyOf} {
			if out := g.apply("reader", c); out.Refused != nil || !out.Decision.Waiting {
				t.Fatal(out.Refused, out.Decision)
			}
			info, refused := g.readerOf("reader").Allocation(sharedID(c.ID))
			if refused != nil {
				t.Fatal(refused)
			}
			lines := []string{info.Waiting.Line}
			for _, at := range info.Waiting.Alternatives {
				lines = append(lines, at.Line)
			}
			for _, line := range lines {
				if line != want {
					t.Errorf("tenants see %v: %s waits for %q", see, c.ID, line)
				}
			}
			if see == quota.SeeNothing && info.Waiting.BlockedAt.Node != "" {
				t.Errorf("the node is %+v", info.Waiting.BlockedAt)
			}
			if seen, _ := g.readerOf("root").Allocation(sharedID(c.ID)); c.ID == "any" && seen.Waiting.Line != "cores at t:lab" {
				t.Errorf("who sees the level is told of %q", seen.Waiting.Line)
			}
		}
	}
}

// TestCleanersDoNotReadHolders: without holders.read, neither a reset nor a refused update names who holds an item.
func TestCleanersDoNotReadHolders(t *testing.T) {
	trees := machineTree()
	trees[0].Nodes[0].Policy = "open"
	trees[0].Nodes[0].Bindings = access.CanonicalBindings([]access.Binding{
		bind("cleaner", "carl"), bind("operator", "peter"),
	})
	g := newGuarded(t, trees, "anna", "peter", "hans", "heidi", "carl")
	hold := claimCores("secret-id", "atlas/physics/higgs", 1)
	hold.Claims[0].Picks = []quota.Pick{{Resource: "machine", Count: 1}}
	hold.Principal.User = "account/hans"
	g.must("hans", hold)
	reset := quota.ResetItems{Tree: "cern", Resource: "machine", State: quota.LeasedState, To: "dirty"}
	update := quota.UpdateItems{Updates: []quota.ItemUpdate{{
		Item: quota.ItemName{Tree: "cern", Resource: "machine", Name: "m1"}, State: "dirty",
	}}}
	for account, isTold := range map[string]bool{"carl": false, "peter": true} {
		sandbox, _ := g.ledger.Sandbox().ReaderOf(callerOf(account))
		out := sandbox.DryRun(reset)
		if out.Refused != nil || len(out.Items) != 1 {
			t.Fatalf("%v %+v", out.Refused, out.Items)
		}
		it := out.Items[0]
		if named := it.Owner+it.Allocation != "" || it.Fence != 0; named != isTold {
			t.Errorf("%s is told of %q and %q, fence %d", account, it.Owner, it.Allocation, it.Fence)
		}
		refused := refusalText(g.apply(account, update).Refused)
		if strings.Contains(refused, "secret-id") != isTold || !strings.Contains(refused, "is held") {
			t.Errorf("%s is told %q", account, refused)
		}
	}
	if out := g.must("carl", reset); len(out.Items) != 1 || out.Items[0].Owner != "" || out.Items[0].State != "dirty" {
		t.Errorf("a reset tells %+v", out.Items)
	}
}
