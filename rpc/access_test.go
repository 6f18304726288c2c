package rpc

import (
	"crypto/sha256"
	"errors"
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

// TestTokensEnd checks that a token whose life is not named lives no longer than the section allows.
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
