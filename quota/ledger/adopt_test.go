package ledger_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/verify"
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

func (g *guarded) ownerOf(id string) string {
	g.t.Helper()
	info, err := g.ledger.Reader().Allocation(id)
	if err != nil {
		g.t.Fatal(err)
	}
	return info.Owner
}

// TestAdoptedAllocationsAnswerToTheirOwner: an allocation from before the cluster was guarded can be renewed and
// released by the user who adopted it, and by no other holder.
func TestAdoptedAllocationsAnswerToTheirOwner(t *testing.T) {
	g := newOpen(t, "hans", "heidi")
	lease := claimCores("old", "atlas/physics/higgs", 3)
	lease.TTL = 1000
	g.anonymously(lease)
	big := claimCores("queued", "atlas/physics/higgs", 10)
	big.Mode = quota.Wait
	g.anonymously(big)
	g.must("root", quota.ChangeAccess{Change: access.SetMode{Mode: access.Guarded}})
	g.refused("hans", quota.Renew{ID: "old"}, quota.NotFound, "no allocation")
	g.refused("hans", quota.AdoptAllocations{Owner: "account/hans", IDs: []string{"old"}}, quota.Forbidden,
		"access.manage")
	adopt := quota.AdoptAllocations{
		Owner: "account/hans", IDs: []string{"old", "gone", "queued", "old"}, Reason: "before guard on",
	}
	if out := g.must("root", adopt); out.Adopted != 2 || out.Repeated {
		t.Errorf("adopted %+v, want 2", out)
	}
	if out := g.must("root", adopt); out.Adopted != 0 || !out.Repeated {
		t.Errorf("adopted again: %+v", out)
	}
	adopt.Owner = "account/heidi"
	if out := g.must("root", adopt); out.Adopted != 0 || g.ownerOf("account/hans old") != "account/hans" {
		t.Errorf("taken from its owner: %+v", out)
	}
	g.must("hans", quota.Renew{ID: "account/hans old"})
	g.must("hans", quota.Renew{ID: "account/hans queued"})
	g.refused("heidi", quota.Renew{ID: "account/hans queued"}, quota.NotFound, "")
	g.must("hans", quota.Release{ID: "account/hans old"})
	if info, err := g.ledger.Reader().Allocation("account/hans queued"); err != nil || info.State != quota.Held ||
		info.Owner != "account/hans" {
		t.Errorf("a request that waited is %+v, %v", info, err)
	}
}

func TestAdoptionsThatAreRefused(t *testing.T) {
	g := newGuarded(t, cernTree(), "hans")
	for _, c := range []struct {
		change func(*quota.AdoptAllocations)
		kind   quota.Kind
		says   string
	}{
		{func(a *quota.AdoptAllocations) { a.Owner = "" }, quota.Invalid, "owner: "},
		{func(a *quota.AdoptAllocations) { a.Owner = "hans" }, quota.Invalid, "write account/NAME"},
		{func(a *quota.AdoptAllocations) { a.Owner = "account/*" }, quota.NotFound, "no account"},
		{func(a *quota.AdoptAllocations) { a.Owner = "account/nobody" }, quota.NotFound, "no account"},
		{func(a *quota.AdoptAllocations) { a.Owner = "corp/hans" }, quota.NotFound, "not an issuer"},
		{func(a *quota.AdoptAllocations) { a.Owner = "system/x" }, quota.NotFound, "not an issuer"},
		{func(a *quota.AdoptAllocations) { a.IDs = nil }, quota.Invalid, "1 to 1000"},
		{func(a *quota.AdoptAllocations) { a.IDs = make([]string, quota.MaxAdopted+1) }, quota.Invalid, "1 to 1000"},
		{func(a *quota.AdoptAllocations) { a.IDs = []string{"a", ""} }, quota.Invalid, "ids[1]"},
		{func(a *quota.AdoptAllocations) { a.Reason = strings.Repeat("x", quota.MaxReason+1) }, quota.Invalid, "reason"},
	} {
		adopt := quota.AdoptAllocations{Owner: "account/hans", IDs: []string{"a"}}
		c.change(&adopt)
		g.refused("root", adopt, c.kind, c.says)
	}
	g.must("root", quota.AdoptAllocations{Owner: "cert/zuul", IDs: slices.Repeat([]string{"a"}, quota.MaxAdopted)})
}

// TestAdoptionAgainstItsOracle: whatever is allocated, released and adopted, owners are those of a plain map, a dry run
// says what the command does, and the lists have exactly what has no owner.
func TestAdoptionAgainstItsOracle(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		g := newOpen(t, "hans", "heidi")
		owners := map[string]string{} // of what is held or waits, by qualified id
		ended := map[string]bool{}    // ids that are taken by what has ended
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			prefix := rapid.SampledFrom([]string{"a/", "b/"}).Draw(t, "prefix")
			id := prefix + strconv.Itoa(rapid.IntRange(0, 9).Draw(t, "id"))
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				c := claimCores(id, rapid.SampledFrom([]string{"cms", "atlas"}).Draw(t, "node"), 9)
				if rapid.Bool().Draw(t, "waits") {
					c.Mode = quota.Wait
				}
				account := rapid.SampledFrom([]string{"", "hans"}).Draw(t, "by")
				apply, owner := g.anonymously, ""
				if account != "" {
					apply, owner = func(c quota.Command) ledger.Outcome { return g.apply(account, c) }, "account/"+account
				}
				if account != "" { // in a namespace of its own, from which nothing moves
					c.ID = sharedID(c.ID)
					id = c.ID
				}
				if out := apply(c); out.Refused == nil && !out.Repeated && out.Allocation != nil {
					owners[id] = owner
				}
			case 1:
				for _, id := range []string{id, sharedID(id), "account/hans " + id, "account/heidi " + id} {
					g.applyAs("root", quota.Release{ID: id})
					ended[id] = ended[id] || hasKey(owners, id)
					delete(owners, id)
				}
			default:
				ids := rapid.SliceOfN(rapid.SampledFrom([]string{id, "a/1", "a/2", "b/3", "none"}), 1, 5).Draw(t, "ids")
				owner := "account/" + rapid.SampledFrom([]string{"hans", "heidi"}).Draw(t, "owner")
				command := quota.AdoptAllocations{Owner: owner, IDs: ids}
				dry := g.ledger.Sandbox().DryRunFrom(ledger.Origin{Caller: callerOf("root")}, command)
				want := 0
				var left []string
				for _, id := range ids {
					before, known := owners[id]
					moved := owner + " " + id
					switch {
					case !known || before != "":
					case hasKey(owners, moved) || ended[moved]:
						if !slices.Contains(left, id) {
							left = append(left, id)
						}
					default:
						delete(owners, id)
						owners[moved], want = owner, want+1
					}
				}
				out := g.must("root", command)
				if out.Adopted != want || dry.Adopted != want || !slices.Equal(out.Left, left) || !slices.Equal(dry.Left, left) {
					t.Fatalf("adopted %d, a dry run %d, want %d; left %v and %v, want %v", out.Adopted, dry.Adopted, want, out.Left,
						dry.Left, left)
				}
				if err := g.ledger.Check(); err != nil {
					t.Fatal(err)
				}
			}
		}
		checkOwners(t, g, owners)
	})
}

func hasKey(m map[string]string, key string) bool {
	_, found := m[key]
	return found
}

func checkOwners(t *rapid.T, g *guarded, owners map[string]string) {
	var unowned []string
	for id, owner := range owners {
		if got := g.ownerOf(id); got != owner {
			t.Fatalf("%s belongs to %q, want %q", id, got, owner)
		}
		if owner == "" && strings.HasPrefix(id, "a/") {
			unowned = append(unowned, id)
		}
	}
	slices.Sort(unowned)
	reader, err := g.ledger.Reader().ReaderOf(callerOf("root"))
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	most, filter := rapid.IntRange(1, 3).Draw(t, "page"), ledger.Unowned{Prefix: "a/", Tree: "cern"}
	for after := uint64(0); ; {
		page, err := reader.UnownedHeld(filter, after, most)
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, page.IDs...)
		if after = page.Next; after == 0 {
			break
		}
	}
	for turn := (*quota.QueueTurn)(nil); ; {
		ids, next, err := reader.UnownedWaiting(filter, turn, most)
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, ids...)
		if turn = next; turn == nil {
			break
		}
	}
	slices.Sort(listed)
	if !slices.Equal(listed, unowned) {
		t.Fatalf("listed %v, want %v", listed, unowned)
	}
	all := 0
	for _, owner := range owners {
		if owner == "" {
			all++
		}
	}
	if count, more := g.ledger.Reader().CountUnowned(1000); count != all || more {
		t.Fatalf("counted %d, %v, want %d", count, more, all)
	}
}

// TestAdminsAreAdopted: a cluster with admins is not guarded, and the refusal has the command that helps; a caller who
// manages access may replace all admins by bindings.
func TestAdminsAreAdopted(t *testing.T) {
	g := newOpen(t, "hans")
	tree := cernTree()
	tree[0].Nodes[0].Admins = []string{"ann", "o'neil;"}
	tree[0].Nodes[1].Admins = []string{"bob"}
	g.must("root", quota.ApplyTrees{Trees: tree})
	guard := quota.ChangeAccess{Change: access.SetMode{Mode: access.Guarded}}
	g.refused("root", guard, quota.InUse, "quorate access adopt-admins --map ann=account/ann --map bob=account/bob")
	if text := g.apply("root", guard).Refused.Text; strings.Contains(text, ";'") || strings.Contains(text, "neil") {
		t.Errorf("the command could not be pasted: %s", text)
	}
	if list := g.ledger.Reader().TreesWithAdmins(); len(list) != 1 || list[0].Tree != "cern" ||
		!slices.Equal(list[0].Admins, []string{"ann", "bob", "o'neil;"}) {
		t.Errorf("trees with admins: %+v", list)
	}
	g.refused("hans", quota.ApplyTrees{Trees: cernTree()}, quota.Forbidden, "its admins may")
	if out := g.anonymously(quota.ApplyTrees{Trees: cernTree()}); out.Refused == nil {
		t.Error("a caller without a credential may remove admins")
	}
	g.must("root", quota.ApplyTrees{Trees: cernTree()})
	g.must("root", guard)
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
		{quota.AdoptAllocations{Owner: "account/hans", IDs: []string{"h"}}, access.AccessManage},
		{quota.ChangeAccess{Change: access.SetMode{Mode: access.Watching}}, access.AccessManage},
	} {
		if out := g.apply("hans", c.command); out.WouldRefuse == nil || out.WouldRefuse.Verb != c.verb {
			t.Errorf("%T: would refuse %+v, want for want of %s", c.command, out.WouldRefuse, c.verb)
		}
	}
}
