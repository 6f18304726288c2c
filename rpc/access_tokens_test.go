package rpc

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/internal/access"
)

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
