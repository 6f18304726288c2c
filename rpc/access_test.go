package rpc

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/authn"
	"github.com/quorate/quorate/internal/manifest"
	"github.com/quorate/quorate/quota"
)

// accessAs is a client that sends the token of a caller.
func (d *testServer) accessAs(a as) accessCalls {
	return accessCalls{
		adminv1connect.NewAccessServiceClient(a, d.url), quoratev1connect.NewIdentityServiceClient(a, d.url),
	}
}

// accessCalls are the calls for rights.
type accessCalls struct {
	adminv1connect.AccessServiceClient
	quoratev1connect.IdentityServiceClient
}

var admin = byToken(adminToken)

const testSecret = "0123456789abcdef0123456789abcdef"

func secretNode(t *testing.T) *testServer {
	t.Helper()
	c := newFakeCluster()
	c.bootstrapSecret, c.wall = sha256.Sum256([]byte(testSecret)), time.Now().UnixMilli()
	d := openServer(t, c, "n1")
	c.lead("n1")
	return d
}

func wantRefused(t *testing.T, err error, code connect.Code, field, says string) {
	t.Helper()
	if connect.CodeOf(err) != code || !strings.Contains(err.Error(), says) {
		t.Fatalf("got %v, want %s saying %q", err, code, says)
	}
	if p := problemOf(t, err); p.GetField() != field || !p.GetNotApplied() {
		t.Errorf("got %v, want field %q", p, field)
	}
}

// checkSecret checks that a token is what a server with the book would take, and that its record is shown.
func (d *testServer) checkSecret(t *testing.T, secret string, shown *adminv1.Token) access.Token {
	t.Helper()
	token, err := authn.ParseToken(secret)
	if err != nil {
		t.Fatal(err)
	}
	record, found := d.node.Book().Token(access.TokenID(token.ID()))
	if !found || record.Hash != token.Hash() {
		t.Fatalf("the book has %+v, %v", record, found)
	}
	if shown.GetId() != token.ID().String() || !strings.Contains(secret, shown.GetId()) ||
		shown.GetAccount() != record.Account || shown.GetEndsAt().AsTime().UnixMilli() != record.Ends {
		t.Errorf("shown %v, want %+v", shown, record)
	}
	return record
}

func TestBootstrapMakesTheFirstAdministrator(t *testing.T) {
	d := secretNode(t)
	bootstrap := func(r *adminv1.BootstrapRequest) (*adminv1.BootstrapResponse, error) {
		return d.accessAs("").Bootstrap(t.Context(), r)
	}
	_, err := bootstrap(&adminv1.BootstrapRequest{Secret: testSecret[1:]})
	wantRefused(t, err, connect.CodeUnauthenticated, "", "neither the bootstrap secret")
	before := time.Now()
	made, err := bootstrap(&adminv1.BootstrapRequest{Secret: testSecret})
	if err != nil {
		t.Fatal(err)
	}
	record := d.checkSecret(t, made.GetSecret(), made.GetToken())
	life := time.UnixMilli(record.Ends).Sub(before).Round(time.Minute)
	if record.Account != "admin" || life != 24*time.Hour {
		t.Errorf("made %+v, which lives %s", record, life)
	}
	if made.GetWrite().GetIndex() == 0 || !d.node.Book().HasAdministrator(d.node.wall) {
		t.Errorf("made %v, and there is no administrator", made)
	}
	_, err = bootstrap(&adminv1.BootstrapRequest{Secret: testSecret, Account: "other"})
	if connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("with a spent secret: %v", err)
	}
	_, err = oneNode(t).accessAs("").Bootstrap(t.Context(), &adminv1.BootstrapRequest{Secret: testSecret})
	wantRefused(t, err, connect.CodeFailedPrecondition, "", "bootstrap-secret-file")
}

// TestRecoveryOverTheAPI: the leader accepts the secret that was prepared on its machine once.
func TestRecoveryOverTheAPI(t *testing.T) {
	const secret = "a-secret-of-a-recovery-with-a-length"
	offer, offered, broken := RecoveryOffer{Secret: sha256.Sum256([]byte(secret))}, false, error(nil)
	c := newFakeCluster()
	c.wall = time.Now().UnixMilli()
	c.recovery = func() (RecoveryOffer, bool, error) { return offer, offered, broken }
	d := openServer(t, c, "n1")
	c.lead("n1")
	bootstrap := func(secret string) error {
		_, err := d.accessAs("").Bootstrap(t.Context(), &adminv1.BootstrapRequest{Secret: secret})
		return err
	}
	wantRefused(t, bootstrap(secret), connect.CodeFailedPrecondition, "", "quorate access recover")
	broken = errors.New("the mode of /secret/path")
	wantRefused(t, bootstrap(secret), connect.CodeFailedPrecondition, "", "the log of that server says why")
	if err := bootstrap(secret); strings.Contains(err.Error(), "/secret/path") {
		t.Errorf("a stranger is told %v", err)
	}
	offered, broken = true, nil
	wantRefused(t, bootstrap(secret[1:]), connect.CodeUnauthenticated, "", "the machine of the leader, n1")
	offer.Recoveries = 1
	wantRefused(t, bootstrap(secret), connect.CodeFailedPrecondition, "recoveries", "begin a new recovery")
	offer.Recoveries = 0
	if err := bootstrap(secret); err != nil {
		t.Fatal(err)
	}
	if last := d.node.Book().LastRecovery(); last.Member != "n1" || last.Account != "admin" {
		t.Errorf("the last recovery is %+v", last)
	}
	wantRefused(t, bootstrap(secret), connect.CodeFailedPrecondition, "secret", "has been used")
	offer.Secret = sha256.Sum256([]byte("another" + secret))
	wantRefused(t, bootstrap("another"+secret), connect.CodeFailedPrecondition, "recoveries", "the count is 1")
}

func TestAccountsOverTheAPI(t *testing.T) {
	d := accessNode(t, access.Guarded)
	client := d.accessAs(admin)
	ci := &adminv1.Account{Name: "ci", Description: "builds", Groups: []string{"robots", "builders"}}
	created, err := client.CreateAccount(t.Context(), &adminv1.CreateAccountRequest{Account: ci})
	if err != nil || created.GetWrite().GetIndex() == 0 {
		t.Fatalf("created %v, %v", created, err)
	}
	if _, err := client.CreateAccount(t.Context(), &adminv1.CreateAccountRequest{Account: ci}); err != nil {
		t.Errorf("repeated: %v", err)
	}
	other := proto.CloneOf(ci)
	other.Description = "another"
	_, err = client.CreateAccount(t.Context(), &adminv1.CreateAccountRequest{Account: other})
	wantRefused(t, err, connect.CodeAlreadyExists, "account.name", "exists with other content")
	_, err = client.CreateAccount(t.Context(), &adminv1.CreateAccountRequest{Account: &adminv1.Account{Name: "a b"}})
	wantRefused(t, err, connect.CodeInvalidArgument, "account.name", "not a name of an account")
	other.Disabled = true
	for _, change := range []*adminv1.UpdateAccountRequest{
		{Name: "ci", Description: &other.Description},
		{Name: "ci", Disabled: &other.Disabled},
		{Name: "ci"}, // and what is left out stays
	} {
		if _, err := client.UpdateAccount(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	_, err = client.UpdateAccount(t.Context(), &adminv1.UpdateAccountRequest{Name: "nobody"})
	wantRefused(t, err, connect.CodeNotFound, "name", "there is no account")
	_, err = client.UpdateAccount(t.Context(), &adminv1.UpdateAccountRequest{
		Name: "ci", Groups: &adminv1.AccountGroups{Names: []string{"a/b"}},
	})
	wantRefused(t, err, connect.CodeInvalidArgument, "groups.names[0]", "")
	var listed []*adminv1.Account
	for token := ""; ; {
		page, err := client.ListAccounts(t.Context(), &adminv1.ListAccountsRequest{PageSize: 2, PageToken: token})
		if err != nil || len(page.GetAccounts()) > 2 || page.GetRead().GetServedBy() != "n1" {
			t.Fatalf("page %v, %v", page, err)
		}
		listed = append(listed, page.GetAccounts()...)
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	names := make([]string, len(listed))
	for i, a := range listed {
		names[i] = a.GetName()
	}
	if !slices.Equal(names, []string{"admin", "ci", "ops", "plain"}) || listed[1].GetDescription() != "another" ||
		!listed[1].GetDisabled() || !slices.Equal(listed[1].GetGroups(), []string{"builders", "robots"}) {
		t.Errorf("listed %v", listed)
	}
	_, err = client.ListAccounts(t.Context(), &adminv1.ListAccountsRequest{PageToken: "dQ"})
	wantRefused(t, err, connect.CodeInvalidArgument, "page_token", "not a page token")
	if _, err := client.DeleteAccount(t.Context(), &adminv1.DeleteAccountRequest{Name: "ci"}); err != nil {
		t.Fatal(err)
	}
	_, err = client.DeleteAccount(t.Context(), &adminv1.DeleteAccountRequest{Name: "ci"})
	wantRefused(t, err, connect.CodeNotFound, "name", "no account")
	_, err = client.ListTokens(t.Context(), &adminv1.ListTokensRequest{Account: "ci"})
	wantRefused(t, err, connect.CodeNotFound, "account", "no account")
}

func TestTokensOverTheAPI(t *testing.T) {
	d := accessNode(t, access.Guarded)
	client := d.accessAs(admin)
	made, err := client.CreateToken(t.Context(), &adminv1.CreateTokenRequest{
		Account: "plain", Description: "for a test", LifeMs: 60_000, Verbs: []string{"hold", "usage.read"},
	})
	if err != nil {
		t.Fatal(err)
	}
	record := d.checkSecret(t, made.GetSecret(), made.GetToken())
	if record.Ceiling != access.SetOf(access.Hold, access.UsageRead) || record.Description != "for a test" ||
		made.GetWrite().GetIndex() == 0 {
		t.Errorf("made %v, kept %+v", made, record)
	}
	again, err := client.CreateToken(t.Context(), &adminv1.CreateTokenRequest{Account: "plain"})
	if err != nil || again.GetSecret() == made.GetSecret() {
		t.Errorf("a second token: %v", err)
	}
	for name, c := range map[string]struct {
		request     *adminv1.CreateTokenRequest
		code        connect.Code
		field, says string
	}{
		"unknown account": {&adminv1.CreateTokenRequest{Account: "nobody"}, connect.CodeNotFound, "account", "no account"},
		"unknown verb": {
			&adminv1.CreateTokenRequest{Account: "plain", Verbs: []string{"hold", "hodl"}},
			connect.CodeInvalidArgument, "verbs[1]", "not a verb",
		},
		"too long a life": {
			&adminv1.CreateTokenRequest{Account: "plain", LifeMs: access.MaxTokenLife + 1},
			connect.CodeInvalidArgument, "life_ms", "",
		},
	} {
		_, err := client.CreateToken(t.Context(), c.request)
		if connect.CodeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
			continue
		}
		wantRefused(t, err, c.code, c.field, c.says)
	}
	if _, err := client.RevokeToken(t.Context(), &adminv1.RevokeTokenRequest{Id: made.GetToken().GetId()}); err != nil {
		t.Fatal(err)
	}
	listed, err := client.ListTokens(t.Context(), &adminv1.ListTokensRequest{Account: "plain"})
	revoked := slices.IndexFunc(listed.GetTokens(), (*adminv1.Token).GetRevoked) // all are of the same time
	if err != nil || len(listed.GetTokens()) != 3 || revoked < 0 ||
		listed.GetTokens()[revoked].GetId() != made.GetToken().GetId() {
		t.Errorf("listed %v, %v", listed, err)
	}
	if text := fmt.Sprint(listed); strings.Contains(text, made.GetSecret()[len("qrt_")+14:]) {
		t.Error("a list shows a secret")
	}
	_, err = client.RevokeToken(t.Context(), &adminv1.RevokeTokenRequest{Id: access.TokenID{9}.String()})
	wantRefused(t, err, connect.CodeNotFound, "id", "no token")
	_, err = client.RevokeToken(t.Context(), &adminv1.RevokeTokenRequest{Id: "0000000000000"})
	wantRefused(t, err, connect.CodeInvalidArgument, "id", "not an id")
}

// TestTokensEnd checks that a token whose life is not named lives no longer than the section allows.
func TestTokensEnd(t *testing.T) {
	d := accessNode(t, access.Open)
	create := func(life int64) (*adminv1.CreateTokenResponse, error) {
		return d.accessAs(admin).CreateToken(t.Context(),
			&adminv1.CreateTokenRequest{Account: "plain", LifeMs: life})
	}
	lives := func(want time.Duration) {
		t.Helper()
		made, err := create(0)
		if err != nil {
			t.Fatal(err)
		}
		if got := time.Until(made.GetToken().GetEndsAt().AsTime()).Round(time.Hour); got != want {
			t.Errorf("the token lives %s, want %s", got, want)
		}
	}
	lives(90 * 24 * time.Hour)
	section := d.node.Book().Section()
	section.TokenLife = 48 * time.Hour.Milliseconds()
	d.node.wall = time.Now().Add(time.Minute).UnixMilli() // an entry is stamped after the call came
	d.node.useSection(t, section)
	lives(48 * time.Hour)
	_, err := create(section.TokenLife + 1)
	wantRefused(t, err, connect.CodeInvalidArgument, "life_ms", "at most 172800000")
}

func TestRotatingTokens(t *testing.T) {
	d := accessNode(t, access.Guarded)
	rotate := func(a as, r *adminv1.RotateTokenRequest) (*adminv1.RotateTokenResponse, error) {
		return d.accessAs(a).RotateToken(t.Context(), r)
	}
	d.node.changeBook(t, access.CreateToken{
		Account: "plain", Ceiling: access.SetOf(access.UsageRead),
		Token: d.node.newToken(access.TokenID{7: 4}),
	})
	made, err := rotate(byToken(access.TokenID{7: 4}), &adminv1.RotateTokenRequest{})
	if err != nil {
		t.Fatal(err)
	}
	record := d.checkSecret(t, made.GetSecret(), made.GetToken())
	old, _ := d.node.Book().Token(access.TokenID{7: 4})
	if record.Account != "plain" || record.Ceiling != access.SetOf(access.UsageRead) ||
		old.Ends != d.node.wall+access.DefaultOverlap {
		t.Errorf("made %+v, the old one is %+v", record, old)
	}
	// The other token of the account can do more than the caller's.
	_, err = rotate(byToken(access.TokenID{7: 4}), &adminv1.RotateTokenRequest{Id: plainToken.String()})
	wantRefused(t, err, connect.CodePermissionDenied, "", "does not have access.manage")
	_, err = rotate("", &adminv1.RotateTokenRequest{Id: plainToken.String()})
	wantRefused(t, err, connect.CodeUnauthenticated, "", "access.manage")
	_, err = rotate("", &adminv1.RotateTokenRequest{})
	wantRefused(t, err, connect.CodeInvalidArgument, "id", "no token of an account")
	made, err = rotate(admin, &adminv1.RotateTokenRequest{Id: plainToken.String(), OverlapMs: proto.Int64(0)})
	if err != nil || made.GetToken().GetAccount() != "plain" {
		t.Errorf("by an administrator: %v, %v", made, err)
	}
	if old, _ = d.node.Book().Token(plainToken); old.IsLive(d.node.wall) {
		t.Errorf("without an overlap, the old token lives: %+v", old)
	}
	_, err = rotate(admin, &adminv1.RotateTokenRequest{Id: plainToken.String()})
	wantRefused(t, err, connect.CodeFailedPrecondition, "id", "has ended")
}

func TestRefusalsOverTheAPI(t *testing.T) {
	d := accessNode(t, access.Guarded)
	client := d.accessAs(admin)
	leaked := &adminv1.RefusedCredential{
		Kind: adminv1.RefusedKind_REFUSED_KIND_USER, Name: "github/1", Reason: "it leaked",
		EndsAt: timestamppb.New(time.Now().Add(time.Hour).Truncate(time.Millisecond)),
	}
	answer, err := client.RefuseCredential(t.Context(), &adminv1.RefuseCredentialRequest{Refused: leaked})
	if err != nil || answer.GetWrite().GetIndex() == 0 {
		t.Fatalf("refused %v, %v", answer, err)
	}
	bad := proto.CloneOf(leaked)
	bad.EndsAt = nil
	_, err = client.RefuseCredential(t.Context(), &adminv1.RefuseCredentialRequest{Refused: bad})
	wantRefused(t, err, connect.CodeInvalidArgument, "refused.ends_at", "not a time to end")
	bad = proto.CloneOf(leaked)
	bad.Name = "me"
	_, err = client.RefuseCredential(t.Context(), &adminv1.RefuseCredentialRequest{Refused: bad})
	wantRefused(t, err, connect.CodeInvalidArgument, "refused.name", "not a user")
	listed, err := client.ListRefusedCredentials(t.Context(), &adminv1.ListRefusedCredentialsRequest{})
	if err != nil || len(listed.GetRefused()) != 1 || !proto.Equal(listed.GetRefused()[0], leaked) {
		t.Errorf("listed %v, %v", listed, err)
	}
	allow := &adminv1.AllowCredentialRequest{Kind: leaked.GetKind(), Name: leaked.GetName()}
	if _, err := client.AllowCredential(t.Context(), allow); err != nil {
		t.Fatal(err)
	}
	_, err = client.AllowCredential(t.Context(), allow)
	wantRefused(t, err, connect.CodeNotFound, "name", "no refusal")
}

func TestModeOverTheAPI(t *testing.T) {
	d := accessNode(t, access.Watching)
	set := func(mode quoratev1.AccessMode) (*adminv1.SetAccessModeResponse, error) {
		return d.accessAs(admin).SetAccessMode(t.Context(), &adminv1.SetAccessModeRequest{Mode: mode})
	}
	answer, err := set(quoratev1.AccessMode_ACCESS_MODE_GUARDED)
	if err != nil || answer.GetBefore() != quoratev1.AccessMode_ACCESS_MODE_WATCHING || answer.GetWrite().GetIndex() == 0 {
		t.Errorf("set %v, %v", answer, err)
	}
	_, err = set(quoratev1.AccessMode_ACCESS_MODE_OPEN)
	wantRefused(t, err, connect.CodeFailedPrecondition, "mode", "guarded")
}

// TestReadsAskTheBookThatTheyRead: a node that lags lets a call in, and the state that it reads knows better.
func TestReadsAskTheBookThatTheyRead(t *testing.T) {
	d := accessNode(t, access.Guarded)
	old := d.node.Book()
	d.node.changeBook(t, access.DeleteAccount{Name: "ops"})
	d.node.behind.Store(old)
	if _, err := d.accessAs(byToken(operatorToken)).
		ListAccounts(t.Context(), &adminv1.ListAccountsRequest{}); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("an operator reads accounts: %v", err)
	}
	d.node.changeBook(t, access.RevokeToken{ID: plainToken}, access.CreateAccount{Account: access.Account{Name: "second"}},
		access.CreateToken{
			Account: "second", Ceiling: access.AllVerbs,
			Token: d.node.newToken(access.TokenID{7: 9}),
		},
	)
	d.node.useSection(t, access.Section{Bindings: []access.Binding{
		{Role: access.RoleRoot, To: []access.Subject{{Kind: access.AccountSubject, Name: "second"}}},
	}})
	_, err := d.accessAs(admin).ListAccounts(t.Context(), &adminv1.ListAccountsRequest{})
	wantRefused(t, err, connect.CodePermissionDenied, "", "account/admin does not have access.read")
}

func (d *testServer) treeBindings(t *testing.T) {
	t.Helper()
	spec := quota.TreeSpec{Name: "guarded", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}}}
	bind := func(role, account string) []access.Binding {
		return []access.Binding{{Role: role, To: []access.Subject{{Kind: access.AccountSubject, Name: account}}}}
	}
	spec.Nodes = []quota.NodeSpec{
		{Policy: "strict", Bindings: bind("viewer", "ops")},
		{Path: "physics", Bindings: bind("node-admin", "plain")},
		{Path: "physics/higgs"},
	}
	outcomes, _ := d.node.apply(quota.ApplyTrees{Trees: []quota.TreeSpec{spec}})
	if outcomes[0].Refused != nil {
		t.Fatal(outcomes[0].Refused)
	}
}

func TestWhoAmIAndCanI(t *testing.T) {
	d := accessNode(t, access.Guarded)
	d.treeBindings(t)
	me, err := d.accessAs(byToken(operatorToken)).WhoAmI(t.Context(), &quoratev1.WhoAmIRequest{})
	if err != nil || me.GetUser() != "account/ops" || me.GetKind() != "account" || me.GetEndsAt() == nil ||
		me.GetMode() != quoratev1.AccessMode_ACCESS_MODE_GUARDED ||
		!slices.Contains(me.GetClusterVerbs(), "cluster.operate") ||
		slices.Contains(me.GetClusterVerbs(), "access.read") || me.GetRead().GetServedBy() != "n1" {
		t.Errorf("ops is %v, %v", me, err)
	}
	me, err = d.accessAs("").WhoAmI(t.Context(), &quoratev1.WhoAmIRequest{})
	if err != nil || me.GetKind() != "anonymous" || me.GetUser() != "" || len(me.GetClusterVerbs()) > 0 {
		t.Errorf("anonymous is %v, %v", me, err)
	}
	_, err = d.accessAs(byToken(access.TokenID{9})).WhoAmI(t.Context(), &quoratev1.WhoAmIRequest{})
	wantRefused(t, err, connect.CodeUnauthenticated, "", "is not known")

	ask := func(verb, place string) *quoratev1.AccessQuestion {
		tree, node, _ := strings.Cut(place, ":")
		return &quoratev1.AccessQuestion{Verb: verb, Tree: tree, Node: node}
	}
	questions := []*quoratev1.AccessQuestion{
		ask("limits.set", "guarded:physics/higgs"), ask("limits.set", "guarded:"), ask("usage.read", "guarded:physics"),
		ask("usage.read", "guarded:nowhere"), ask("usage.read", "nowhere:"), ask("cluster.read", ""),
		ask("cluster.read", ":physics"),
		{Verb: "cluster.read"},
	}
	for name, c := range map[string]struct {
		caller as
		want   []bool
	}{
		"plain":     {byToken(plainToken), []bool{true, false, true, false, false, false, false, false}},
		"ops":       {byToken(operatorToken), []bool{false, false, true, false, false, true, false, true}},
		"admin":     {admin, []bool{true, true, true, false, false, true, false, true}},
		"anonymous": {"", make([]bool, 8)},
	} {
		answer, err := d.accessAs(c.caller).CanI(t.Context(), &quoratev1.CanIRequest{Questions: questions})
		if err != nil || !slices.Equal(answer.GetAllowed(), c.want) {
			t.Errorf("%s can %v, %v, want %v", name, answer.GetAllowed(), err, c.want)
		}
	}
	_, err = d.accessAs("").CanI(t.Context(), &quoratev1.CanIRequest{Questions: append(questions[:1:1], ask("fly", ""))})
	wantRefused(t, err, connect.CodeInvalidArgument, "questions[1].verb", "not a verb")
}

func TestWhoCan(t *testing.T) {
	d := accessNode(t, access.Guarded)
	d.treeBindings(t)
	whoCan := func(a as, verb, place string) (string, error) {
		tree, node, _ := strings.Cut(place, ":")
		answer, err := d.accessAs(a).WhoCan(t.Context(),
			&adminv1.WhoCanRequest{Verb: verb, Tree: tree, Node: node})
		var list []string
		for _, b := range answer.GetBindings() {
			list = append(list, fmt.Sprintf("%s:%s %s", b.GetTree(), b.GetNode(),
				strings.Join(manifest.SubjectTexts(b.GetBinding().GetSubjects()), ",")))
		}
		return strings.Join(list, "; "), err
	}
	plain := byToken(plainToken)
	for _, c := range []struct {
		caller            as
		verb, place, want string
	}{
		{
			admin, "usage.read", "guarded:physics/higgs",
			"guarded:physics account plain; guarded: account ops; : account admin",
		},
		{admin, "limits.set", "guarded:physics", "guarded:physics account plain; : account admin"},
		{admin, "limits.set", "guarded:", ": account admin"},
		{admin, "cluster.operate", "", ": account ops; : account admin"},
		{plain, "usage.read", "guarded:physics/higgs", "guarded:physics account plain; guarded: account ops"},
	} {
		if got, err := whoCan(c.caller, c.verb, c.place); err != nil || got != c.want {
			t.Errorf("%s at %q: %s, %v, want %s", c.verb, c.place, got, err, c.want)
		}
	}
	_, err := whoCan(admin, "hold", "guarded:nowhere")
	wantRefused(t, err, connect.CodeNotFound, "node", "no node")
	// Who may not see has the same answer for places that exist and that do not.
	_, exists := whoCan(plain, "hold", "guarded:")
	wantRefused(t, exists, connect.CodePermissionDenied, "", "bindings.grant")
	if _, none := whoCan(plain, "hold", "guarded:nowhere"); none == nil || none.Error() != exists.Error() {
		t.Errorf("a place that exists is refused by %v, another by %v", exists, none)
	}
	_, err = whoCan("", "hold", "guarded:physics")
	wantRefused(t, err, connect.CodeUnauthenticated, "", "access.read")
	_, err = whoCan(plain, "hold", "")
	wantRefused(t, err, connect.CodePermissionDenied, "", "access.read on the cluster")
}

func TestTokensAreMadeOnTheLeader(t *testing.T) {
	c := newFakeCluster()
	follower, leader := openServer(t, c, "n1"), openServer(t, c, "n2")
	c.lead("n2")
	c.bookWith(t, access.Open)
	made, err := follower.accessAs("").CreateToken(t.Context(), &adminv1.CreateTokenRequest{Account: "plain"})
	if err != nil {
		t.Fatal(err)
	}
	leader.checkSecret(t, made.GetSecret(), made.GetToken())
}
