package fsm

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// Callers of the tests, of each kind that has an identity.
var (
	ciCaller = &access.Caller{
		Kind: access.AccountCaller, User: "account/ci", Credential: [16]byte{1, 2, 3, 4, 5, 6, 7, 8},
		Groups: []string{"robots"}, Request: "req-1",
	}
	evaCaller = &access.Caller{
		Kind: access.External, User: "corp/eva", Groups: []string{"corp/ops", "corp/sre"},
		Credential: [16]byte{9, 8, 7}, Via: "boskos",
	}
	systemCaller = &access.Caller{Kind: access.System}
)

// sampleBindings have every field of a binding.
var sampleBindings = access.CanonicalBindings([]access.Binding{
	{
		Role: "broker", To: []access.Subject{{Kind: access.User, Name: "corp/eva"}, {Kind: access.Group, Name: "robots"}},
		MaxPriority: -5, Unpreemptable: true, HoldAs: access.Holders{Names: []string{"corp/adam"}},
		Until: 1_900_000_000_000,
	},
	{Role: "broker", To: []access.Subject{{Kind: access.AccountSubject, Name: "ci"}}, HoldAs: access.Holders{Any: true}},
	{Role: "viewer", To: []access.Subject{{Kind: access.Everyone}}},
})

func sampleSection() access.Section {
	return access.Section{
		Roles: []access.Role{{Name: "planner", Description: "plans", Verbs: access.SetOf(access.LimitsSet)}},
		Issuers: []access.Issuer{{
			Name: "corp", URL: "https://idp.example", KeysURL: "https://idp.example/keys", Audience: "quorate", User: "sub",
			Require:    []access.ClaimRule{{Claim: "org", Values: []string{"a", "b"}}},
			Groups:     []access.GroupRule{{Group: "sre", Match: []access.ClaimRule{{Claim: "team", Values: []string{"x"}}}}},
			Algorithms: []string{"ES256"}, MaxAge: 60_000,
		}},
		Certificates: []access.CertificateRule{{DNS: "zuul.example", User: "zuul"}, {Name: "host", User: "host"}},
		Bindings:     []access.Binding{{Role: "root", To: []access.Subject{{Kind: access.AccountSubject, Name: "ci"}}}},
		TokenLife:    86_400_000,
	}.Canonical()
}

func accessSamples() map[string]access.Command {
	account := access.Account{Name: "ci", Description: "builds", Groups: []string{"robots"}, Disabled: true}
	token := access.NewToken{ID: access.TokenID{1, 2, 3}, Hash: [32]byte{4, 5, 6}, Ends: 1_800_000_900_000}
	key := access.RefusedKey{Kind: access.RefusedJTI, Issuer: "corp", Name: "j1"}
	return map[string]access.Command{
		"create-account": access.CreateAccount{Account: account},
		"update-account": access.UpdateAccount{Account: account},
		"delete-account": access.DeleteAccount{Name: "ci"},
		"create-token": access.CreateToken{
			Account: "ci", Token: token, Description: "for builds", Ceiling: access.SetOf(access.Hold, access.AuditRead),
		},
		"rotate-token": access.RotateToken{Old: access.TokenID{9}, Token: token, Overlap: 3_600_000},
		"revoke-token": access.RevokeToken{ID: access.TokenID{1, 2, 3}},
		"refuse": access.Refuse{Refused: access.Refused{
			RefusedKey:   access.RefusedKey{Kind: access.RefusedUser, Name: "corp/eva"},
			IssuedBefore: 1_800_000_000_000, Until: 1_900_000_000_000, Reason: "left",
		}},
		"unrefuse":        access.Unrefuse{Key: key},
		"set-mode":        access.SetMode{Mode: access.Guarded},
		"replace-section": access.ReplaceSection{Section: sampleSection()},
		"bootstrap": access.Bootstrap{
			Secret: [32]byte{7}, IsRecovery: true, Recoveries: 3, Account: "admin", Token: token,
			Member: "n2", Guard: true,
		},
	}
}

// boundTree is a configuration with bindings.
var boundTree = quota.ApplyTrees{Trees: []quota.TreeSpec{{
	Name: "bound", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}},
	Nodes: []quota.NodeSpec{
		{Policy: "open", Bindings: sampleBindings, AutoApprove: quota.AutoApprove{AtMost: 20, Every: 7_200_000}},
		{Path: "a", Bindings: sampleBindings[:1]},
	},
	TreeSettings: quota.TreeSettings{TenantsSee: quota.SeeNames},
}}}

func requestSamples() map[string]quota.Command {
	return map[string]quota.Command{
		"request-limits": quota.RequestLimits{
			Tree: "bound", Node: "a", Reason: "a campaign", Open: 60_000, Limits: []quota.ResourceLimit{
				{Resource: "cores", Limit: quota.AtMost(7)}, {Resource: "gpus", Limit: quota.NoLimit()}, {Resource: "ram"},
			},
		},
		"approve-request":  quota.ApproveRequest{Number: 3, Digest: "0a1b"},
		"reject-request":   quota.RejectRequest{Number: 3, Reason: "too much"},
		"withdraw-request": quota.WithdrawRequest{Number: 3},
	}
}

// subtreeChange changes a subtree of boundTree.
var subtreeChange = quota.ApplyTrees{
	At: &quota.Subtree{Tree: "bound", Node: "a"},
	Trees: []quota.TreeSpec{{
		Name: "bound", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}},
		Nodes: []quota.NodeSpec{{}, {Path: "a", Bindings: sampleBindings[:1]}, {Path: "a/b", Limits: []quota.ResourceLimit{
			{Resource: "cores", Limit: quota.AtMost(3)},
		}}},
	}},
}

func newSection(before access.Section) quota.ApplyTrees {
	before.TokenLife = 86_400_000
	return quota.ApplyTrees{Access: &before}
}

func anyCommand() *rapid.Generator[quota.Command] {
	change := rapid.OneOf(
		asChange(rapid.Make[access.CreateAccount]()), asChange(rapid.Make[access.UpdateAccount]()),
		asChange(rapid.Make[access.DeleteAccount]()), asChange(rapid.Make[access.CreateToken]()),
		asChange(rapid.Make[access.RotateToken]()), asChange(rapid.Make[access.RevokeToken]()),
		asChange(rapid.Make[access.Refuse]()), asChange(rapid.Make[access.Unrefuse]()),
		asChange(rapid.Make[access.SetMode]()), asChange(rapid.Make[access.ReplaceSection]()),
		asChange(rapid.Make[access.Bootstrap]()),
	)
	bound := rapid.Custom(func(t *rapid.T) quota.Command {
		list := rapid.SliceOfN(rapid.Make[access.Binding](), 0, 3).Draw(t, "bindings")
		c := quota.ApplyTrees{Trees: []quota.TreeSpec{{Name: "t", Nodes: []quota.NodeSpec{{Bindings: list}}}}}
		if rapid.Bool().Draw(t, "limited") {
			c.At = rapid.SampledFrom([]*quota.Subtree{{}, {Tree: "t"}, {Tree: "t", Node: "a/x"}}).Draw(t, "at")
		}
		return c
	})
	requesting := rapid.OneOf(asCommand(rapid.Make[quota.RequestLimits]()), asCommand(rapid.Make[quota.ApproveRequest]()),
		asCommand(rapid.Make[quota.RejectRequest]()), asCommand(rapid.Make[quota.WithdrawRequest]()))
	changing := rapid.OneOf(asCommand(rapid.Make[quota.Resize]()), asCommand(rapid.Make[quota.Transfer]()),
		asCommand(rapid.Make[quota.Split]()))
	return rapid.OneOf(quotatest.AllCommands(), quotatest.AllCommands(), quotatest.AllCommands(), change, bound,
		requesting, changing, quotatest.HoldCommands())
}

func asCommand[C quota.Command](generator *rapid.Generator[C]) *rapid.Generator[quota.Command] {
	return rapid.Custom(func(t *rapid.T) quota.Command { return generator.Draw(t, fmt.Sprintf("%T", *new(C))) })
}

func asChange[C access.Command](generator *rapid.Generator[C]) *rapid.Generator[quota.Command] {
	return rapid.Custom(func(t *rapid.T) quota.Command {
		return quota.ChangeAccess{
			Reason: rapid.SampledFrom([]string{"", "why"}).Draw(t, "reason"),
			Change: generator.Draw(t, fmt.Sprintf("%T", *new(C))),
		}
	})
}

func accessEntry() *logv1.Entry {
	samples := map[string]quota.Command{"tree": boundTree, "subtree": subtreeChange}
	maps.Copy(samples, requestSamples())
	for name, change := range accessSamples() {
		samples[name] = quota.ChangeAccess{Reason: "test", Change: change}
	}
	entry := entryOf(samples)
	caller := &logv1.Caller{Kind: uint32(access.External), User: "corp/eva", Groups: evaCaller.Groups}
	entry.Callers = []*logv1.CallerRun{{Commands: uint32(len(samples)), Caller: caller}}
	return entry
}

// callersEntry has commands of several callers, and a checkpoint between them.
func callersEntry(t testing.TB) []byte {
	t.Helper()
	return joined(t, partOf(t, ciCaller, quota.Release{ID: "i"}, quota.Confirm{ID: "i"}),
		partOf(t, nil, quota.Release{ID: "j"}), Checkpoint(), partOf(t, evaCaller, quota.Release{ID: "k"}),
		partOf(t, evaCaller, quota.Cancel{ID: "k"}), partOf(t, systemCaller, quota.Expire{Most: 9}),
		partOf(t, ciCaller, quota.DeleteTree{Tree: "t"}))
}

func partOf(t testing.TB, caller *access.Caller, commands ...quota.Command) Part {
	t.Helper()
	part, err := EncodeCommands(caller, commands)
	if err != nil {
		t.Fatal(err)
	}
	return part
}

func sampleBook(t testing.TB) *access.Book {
	t.Helper()
	book := access.NewBook(access.Open)
	token := func(id byte) access.NewToken {
		return access.NewToken{ID: access.TokenID{id}, Hash: [32]byte{id, 1}, Ends: 1_800_000_900_000}
	}
	section := sampleSection()
	section.Bindings = append(section.Bindings, access.Binding{
		Role: access.RoleRoot, To: []access.Subject{{Kind: access.AccountSubject, Name: "admin"}},
	})
	for i, c := range []access.Command{
		access.Bootstrap{Secret: [32]byte{7}, Account: "admin", Token: token(9)},
		access.CreateAccount{Account: access.Account{Name: "ci", Description: "builds", Groups: []string{"robots"}}},
		access.CreateAccount{Account: access.Account{Name: "old", Disabled: true}},
		access.CreateToken{Account: "ci", Token: token(5), Ceiling: access.SetOf(access.Hold), Description: "first"},
		access.CreateToken{Account: "ci", Token: token(1), Ceiling: access.AllVerbs},
		access.RevokeToken{ID: access.TokenID{5}},
		accessSamples()["refuse"],
		access.ReplaceSection{Section: section},
		access.SetMode{Mode: access.Guarded},
	} {
		change, refused := book.Apply(c, access.Moment{Wall: 1_800_000_000_000, Index: uint64(i + 1)})
		if refused != nil {
			t.Fatalf("%T: %v", c, refused)
		}
		book = change.After
	}
	return book
}

func withBook(t testing.TB, f *FSM, book *access.Book) *FSM {
	t.Helper()
	data := snapshotOf(t, f)
	loaded, _, err := loadSnapshot(bytes.NewReader(data), f.options, func(access.State) access.State {
		return book.State()
	})
	if err != nil {
		t.Fatal(err)
	}
	g := restored(t, data)
	g.ledger = loaded.ledger
	g.setFormat(g.format)
	g.publishBook()
	return g
}

func accessFSM(t testing.TB) *FSM {
	t.Helper()
	f := policiesFSM(t)
	f = withBook(t, f, sampleBook(t))
	applyData(f, f.applied+1, joined(t, partOf(t, systemCaller, boundTree)))
	applyData(f, f.applied+1, joined(t, partOf(t, systemCaller, subtreeChange)))
	if newest := f.ledger.Reader().Revisions(0, 1); len(newest) == 0 || newest[0].Subtree == nil {
		t.Fatalf("the newest revision is %+v", newest)
	}
	section := f.ledger.Reader().Book().Section()
	applyData(f, f.applied+1, joined(t, partOf(t, systemCaller, newSection(section))))
	held := quota.Allocate{ID: "corp/eva ci/1", Claims: []quota.Claim{{
		Tree: "bound", Node: "a", Amounts: quota.Vector{{Resource: "cores", Amount: 2}},
	}}}
	applyData(f, f.applied+1, joined(t, partOf(t, evaCaller, held)))
	if found, refused := f.ledger.Reader().Allocation("corp/eva ci/1"); refused != nil || found.Owner != evaCaller.User {
		t.Fatalf("corp/eva ci/1 is %+v, %v", found, refused)
	}
	addRequests(t, f)
	return f
}

// TestOwnersOfDenialsAreRestored: a denial keeps its owner, and the owner its share, in a state that was restored from
// a snapshot.
func TestOwnersOfDenialsAreRestored(t *testing.T) {
	f := accessFSM(t)
	applyData(f, f.applied+1, joined(t, partOf(t, systemCaller, quota.ApplyTrees{Trees: []quota.TreeSpec{{
		Name: "small", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}},
		Nodes: []quota.NodeSpec{{
			Policy: "strict", Limits: []quota.ResourceLimit{{Resource: "cores", Limit: quota.AtMost(1)}},
			Bindings: sampleBindings,
		}},
	}}})))
	deny := func(f *FSM, id string) {
		applyData(f, f.applied+1, joined(t, partOf(t, evaCaller, quota.Allocate{ID: id, Claims: []quota.Claim{{
			Tree: "small", Amounts: quota.Vector{{Resource: "cores", Amount: 2}},
		}}})))
	}
	deny(f, "corp/eva denied/1")
	data := snapshotOf(t, f)
	g := restored(t, data)
	if !bytes.Equal(snapshotOf(t, g), data) {
		t.Error("the restored state has another snapshot")
	}
	deny(f, "corp/eva denied/2")
	deny(g, "corp/eva denied/2")
	if !bytes.Equal(snapshotOf(t, f), snapshotOf(t, g)) {
		t.Error("the restored state goes on in another way")
	}
	page := g.ledger.Reader().Events(quota.EventFilter{Kind: quota.EventDenied}, 100)
	for _, id := range []string{"corp/eva denied/1", "corp/eva denied/2"} {
		if !slices.ContainsFunc(page.Events, func(e quota.Event) bool { return e.ID == id && e.Owner == evaCaller.User }) {
			t.Errorf("%s has no owner in %+v", id, page.Events)
		}
	}
	if err := g.ledger.Check(); err != nil {
		t.Error(err)
	}
}

// adminCaller is the administrator of sampleBook, with the rights of all.
var adminCaller = &access.Caller{Kind: access.AccountCaller, User: "account/admin", Credential: [16]byte{9}}

// addRequests leaves an open request with an approval, an applied one, one that was withdrawn and one that a rule
// approved.
func addRequests(t testing.TB, f *FSM) {
	t.Helper()
	two := quota.ApplyTrees{Trees: []quota.TreeSpec{{
		Name: "pair", TreeSettings: quota.TreeSettings{Approvals: 2},
		Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}},
		Nodes:     []quota.NodeSpec{{Policy: "open", Bindings: sampleBindings}, {Path: "a"}},
	}}}
	applyData(f, f.applied+1, joined(t, partOf(t, systemCaller, two)))
	ask := func(tree string, cores quota.Amount) quota.RequestLimits {
		return quota.RequestLimits{Tree: tree, Node: "a", Reason: "a campaign", Limits: []quota.ResourceLimit{
			{Resource: "cores", Limit: quota.AtMost(cores)},
		}}
	}
	applyData(f, f.applied+1, joined(t, partOf(t, evaCaller, ask("pair", 7), ask("bound", 8), ask("bound", 9))))
	reader, refused := f.ledger.Reader().ReaderOf(systemCaller)
	if refused != nil {
		t.Fatal(refused)
	}
	for _, r := range reader.LimitRequests(quota.LimitRequestFilter{}, 0, 2).Requests {
		applyData(f, f.applied+1, joined(t, partOf(t, adminCaller, quota.ApproveRequest{Number: r.Number, Digest: r.Digest})))
	}
	applyData(f, f.applied+1, joined(t, partOf(t, evaCaller, quota.WithdrawRequest{Number: 3})))
	ruled := quota.ApplyTrees{Trees: []quota.TreeSpec{{
		Name: "ruled", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}}, Nodes: []quota.NodeSpec{
			{
				Policy: "open", Bindings: sampleBindings,
				AutoApprove: quota.AutoApprove{AtMost: 100, Every: quota.MinAutoApproveEvery, WithinHeadroom: true},
				Limits:      []quota.ResourceLimit{{Resource: "cores", Limit: quota.AtMost(9)}},
			},
			{Path: "a", Limits: []quota.ResourceLimit{{Resource: "cores", Limit: quota.AtMost(4)}}},
		},
	}}}
	applyData(f, f.applied+1, joined(t, partOf(t, systemCaller, ruled)))
	applyData(f, f.applied+1, joined(t, partOf(t, evaCaller, ask("ruled", 8))))
	states := ""
	for _, r := range reader.LimitRequests(quota.LimitRequestFilter{}, 0, 9).Requests {
		states += fmt.Sprintf(" %v/%d", r.State, len(r.Approvals))
	}
	if states != " open/1 applied/1 withdrawn/0 applied/1" {
		t.Fatalf("the requests are%s", states)
	}
}
