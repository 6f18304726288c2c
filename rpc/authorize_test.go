package rpc

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/authn"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/rpc/observe"
	"github.com/quorate/quorate/rpc/procedures"
)

// as is an HTTP client that sends the token of one caller; the empty one is anonymous.
type as string

func (a as) Do(r *http.Request) (*http.Response, error) {
	if a != "" {
		r.Header.Set("Authorization", "Bearer "+string(a))
	}
	return overHTTP2.Do(r)
}

func byToken(id access.TokenID) as { return as(tokenOf(id).Reveal()) }

func tokenOf(id access.TokenID) authn.Token {
	token, err := authn.NewToken(io.MultiReader(bytes.NewReader(id[:]), strings.NewReader(strings.Repeat("s", 32))))
	if err != nil || access.TokenID(token.ID()) != id {
		panic(fmt.Sprint("no token has this id: ", err))
	}
	return token
}

// newToken is the record that a server stores of tokenOf.
func (c *fakeCluster) newToken(id access.TokenID) access.NewToken {
	return access.NewToken{ID: id, Hash: tokenOf(id).Hash(), Ends: c.wall + access.DefaultTokenLife}
}

// Tokens of the accounts that accessNode makes.
var (
	adminToken    = access.TokenID{7: 1}
	operatorToken = access.TokenID{7: 2}
	plainToken    = access.TokenID{7: 3}
)

// changeBook applies changes that must succeed.
func (c *fakeCluster) changeBook(t *testing.T, changes ...access.Command) {
	t.Helper()
	for _, change := range changes {
		outcomes, _ := c.apply(quota.ChangeAccess{Change: change})
		if outcomes[0].Refused != nil {
			t.Fatalf("%T: %v", change, outcomes[0].Refused)
		}
	}
}

func (c *fakeCluster) useSection(t *testing.T, section access.Section) {
	t.Helper()
	if outcomes, _ := c.apply(quota.ApplyTrees{Access: &section}); outcomes[0].Refused != nil {
		t.Fatal(outcomes[0].Refused)
	}
}

func (c *fakeCluster) bookWith(t *testing.T, mode access.Mode) {
	t.Helper()
	c.wall = time.Now().UnixMilli()
	token := func(account string, id access.TokenID) access.Command {
		return access.CreateToken{
			Account: account, Token: c.newToken(id), Ceiling: access.AllVerbs,
		}
	}
	c.useSection(t, access.Section{Bindings: []access.Binding{
		{Role: access.RoleRoot, To: []access.Subject{{Kind: access.AccountSubject, Name: "admin"}}},
		{Role: "cluster-operator", To: []access.Subject{{Kind: access.AccountSubject, Name: "ops"}}},
	}})
	c.changeBook(t,
		access.Bootstrap{
			Secret: [32]byte{9}, Account: "admin", Token: c.newToken(adminToken),
		},
		access.CreateAccount{Account: access.Account{Name: "ops"}}, token("ops", operatorToken),
		access.CreateAccount{Account: access.Account{Name: "plain"}}, token("plain", plainToken),
		access.SetMode{Mode: mode},
	)
}

// accessNode starts a cluster of one node with the book of bookWith, and the CERN tree.
func accessNode(t *testing.T, mode access.Mode) *testServer {
	t.Helper()
	d := oneNode(t)
	d.node.bookWith(t, mode)
	return d
}

func (d *testServer) metric(t *testing.T, series string) string {
	t.Helper()
	_, rest, found := strings.Cut(send(t, "GET", d.url+"/metrics", "").body, series+" ")
	if !found {
		return "nothing"
	}
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

func (d *testServer) clusterAs(a as) adminv1connect.ClusterServiceClient {
	return adminv1connect.NewClusterServiceClient(a, d.url)
}

func TestGuardedClusterAsksTheVerbOfTheMethod(t *testing.T) {
	d := accessNode(t, access.Guarded)
	level := func(a as) error {
		_, err := d.clusterAs(a).GetLevel(t.Context(), &adminv1.GetLevelRequest{})
		return err
	}
	for name, c := range map[string]struct {
		caller as
		code   connect.Code // 0 if the call is served
		says   string
		reason string
	}{
		"an operator": {byToken(operatorToken), 0, "", ""},
		"root":        {byToken(adminToken), 0, "", ""},
		"without the verb": {
			byToken(plainToken), connect.CodePermissionDenied,
			"account/plain does not have cluster.read on the cluster", "FORBIDDEN",
		},
		"anonymous": {"", connect.CodeUnauthenticated, "cluster.read on the cluster", "UNAUTHENTICATED"},
		"an unknown token": {
			byToken(access.TokenID{1}), connect.CodeUnauthenticated, "is not known", "TOKEN_UNKNOWN",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := level(c.caller)
			if c.code == 0 {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if connect.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %v, want %s saying %q", err, c.code, c.says)
			}
			if p := problemOf(t, err); p.GetReason() != c.reason || !p.GetNotApplied() {
				t.Errorf("got %v, want the reason %s", p, c.reason)
			}
		})
	}
	d.node.changeBook(t, access.RevokeToken{ID: operatorToken})
	if err := level(byToken(operatorToken)); connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("with a revoked token: %v", err)
	}
}

func TestMethodsThatAskTheClusterRefuseStrangers(t *testing.T) {
	d := accessNode(t, access.Guarded)
	asked := 0
	for path, known := range d.procedures {
		if known.Rule.Scope != procedures.ScopeCluster {
			continue
		}
		asked++
		body, kind := "{}", "application/json"
		if known.Streams {
			body, kind = "\x00\x00\x00\x00\x02{}", "application/connect+json"
		}
		got := send(t, "POST", d.url+path, body, "Content-Type", kind,
			"Authorization", "Bearer "+string(byToken(plainToken)))
		if !strings.Contains(got.body, "permission_denied") || !strings.Contains(got.body, known.Rule.Verb.String()) {
			t.Errorf("%s answers %d %s", path, got.status, got.body)
		}
	}
	if asked < 20 {
		t.Errorf("only %d methods ask the cluster", asked)
	}
}

func TestWatchingCountsAndServes(t *testing.T) {
	d := accessNode(t, access.Watching)
	const series = `quorate_access_would_refuse_total{verb="cluster.read"}`
	if _, err := d.clusterAs("").GetLevel(t.Context(), &adminv1.GetLevelRequest{}); err != nil {
		t.Errorf("refused: %v", err)
	}
	status, err := d.clusterAs(byToken(plainToken)).GetStatus(t.Context(), &adminv1.GetStatusRequest{})
	if err != nil || status.GetTerm() == 0 {
		t.Errorf("status %v, %v", status, err)
	}
	if got := d.metric(t, series); got != "2" {
		t.Errorf("counted %s, want 2", got)
	}
	if _, err := d.clusterAs(byToken(operatorToken)).
		GetLevel(t.Context(), &adminv1.GetLevelRequest{}); err != nil {
		t.Errorf("refused: %v", err)
	}
	if got := d.metric(t, series); got != "2" {
		t.Errorf("counted %s after a call with the right, want 2", got)
	}
}

// TestWatchingLogsWhatItWouldRefuse: a call before it begins and a command while it is carried out are logged with the
// user, the verb, the node and the procedure, and no more lines in a second than there may be.
func TestWatchingLogsWhatItWouldRefuse(t *testing.T) {
	d := accessNode(t, access.Watching)
	log := d.listen()
	if _, err := d.clusterAs(byToken(plainToken)).GetLevel(t.Context(), &adminv1.GetLevelRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.allocationsAs(byToken(plainToken)).Allocate(t.Context(), request("a", "cern:physics", 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.clusterAs("").GetLevel(t.Context(), &adminv1.GetLevelRequest{}); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`user=account/plain verb=cluster.read node="the cluster" procedure=/quorate.admin.v1.ClusterService/GetLevel`,
		`user=account/plain verb=hold node=cern:physics procedure=/quorate.v1.AllocationService/Allocate`,
		`user=anonymous verb=cluster.read node="the cluster"`,
	} {
		if text := log.String(); !strings.Contains(text, "[INFO]") || !strings.Contains(text, line) {
			t.Errorf("not logged: %s\nin: %s", line, text)
		}
	}
	for range 10 * observe.MaxFailureLines {
		if _, err := d.clusterAs("").GetLevel(t.Context(), &adminv1.GetLevelRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(log.String(), "would refuse"); n > 5*observe.MaxFailureLines {
		t.Errorf("%d lines are logged", n)
	}
}

func TestOpenClusterAsksNothing(t *testing.T) {
	d := oneNode(t)
	for _, caller := range []as{"", byToken(access.TokenID{1})} {
		if _, err := d.clusterAs(caller).GetLevel(t.Context(), &adminv1.GetLevelRequest{}); err != nil {
			t.Errorf("refused: %v", err)
		}
	}
	if got := d.metric(t, `quorate_access_would_refuse_total{verb="cluster.read"}`); got != "0" {
		t.Errorf("counted %s, want 0", got)
	}
}

func TestStatusForEveryone(t *testing.T) {
	d := accessNode(t, access.Guarded)
	whole, err := d.clusterAs(byToken(operatorToken)).GetStatus(t.Context(), &adminv1.GetStatusRequest{})
	if err != nil || whole.GetTerm() == 0 || whole.GetMember().GetId() != "n1" || whole.GetRevision() == 0 {
		t.Errorf("an operator sees %v, %v", whole, err)
	}
	for _, caller := range []as{"", byToken(plainToken)} {
		got, err := d.clusterAs(caller).GetStatus(t.Context(), &adminv1.GetStatusRequest{})
		want := &adminv1.GetStatusResponse{ServedBy: "n1", LeaderId: "n1", ClusterName: "test"}
		if err != nil || got.String() != want.String() {
			t.Errorf("%q sees %v, %v", caller, got, err)
		}
		list, err := d.clusterAs(caller).ListMembers(t.Context(), &adminv1.ListMembersRequest{})
		if err != nil || len(list.GetMembers()) > 0 || list.GetLeaderId() != "n1" {
			t.Errorf("%q sees the members %v, %v", caller, list, err)
		}
	}
	d.node.lead("")
	got, err := d.clusterAs("").GetStatus(t.Context(), &adminv1.GetStatusRequest{})
	if err != nil || got.GetProblem() == "" || strings.Contains(got.GetProblem(), "quorate status") {
		t.Errorf("without a leader: %v, %v", got, err)
	}
}

func TestReflectionNeedsAnIdentity(t *testing.T) {
	d := accessNode(t, access.Guarded)
	list := func(a as) error {
		stream := grpcreflect.NewClient(a, d.url, connect.WithGRPC()).NewStream(t.Context())
		defer func() { _, _ = stream.Close() }()
		_, err := stream.ListServices()
		return err
	}
	if err := list(""); connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("anonymous: %v", err)
	}
	if err := list(byToken(plainToken)); err != nil {
		t.Errorf("with an identity: %v", err)
	}
	for _, path := range []string{"/livez", "/readyz"} {
		if got := send(t, "GET", d.url+path, ""); got.status != http.StatusOK {
			t.Errorf("%s answers %d %s", path, got.status, got.body)
		}
	}
	got := send(t, "POST", d.url+"/grpc.health.v1.Health/Check", "{}", "Content-Type", "application/json")
	if got.status != http.StatusOK {
		t.Errorf("health answers %d %s", got.status, got.body)
	}
}
