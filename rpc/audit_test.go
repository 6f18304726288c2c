package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/audit"
)

type notedRecords struct {
	mu   sync.Mutex
	list []audit.Record
	// blocked is the error of Require.
	blocked error
}

func (n *notedRecords) Note(r audit.Record) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, r)
}

func (n *notedRecords) Require(_ context.Context, list ...audit.Record) error {
	if n.blocked != nil {
		return n.blocked
	}
	for _, r := range list {
		n.Note(r)
	}
	return nil
}

func (n *notedRecords) Recent() (records []audit.Record, newest uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]audit.Record(nil), n.list...), uint64(len(n.list))
}

// take returns what was noted since the last time, as soon as there is anything: a call is recorded when it has ended.
// If nothing is wanted it waits for a moment only.
func (n *notedRecords) take(want string) string {
	for begun, i := time.Now(), 0; i < 100 || want != "" && time.Since(begun) < 2*time.Minute; i++ {
		n.mu.Lock()
		list := n.list
		n.list = nil
		n.mu.Unlock()
		var texts []string
		for _, r := range list {
			texts = append(texts, fmt.Sprintf("%s %s %s by %s%s %s", r.Kind, r.Outcome, r.Action, r.Actor.Kind, r.Actor.User,
				r.Detail))
		}
		if len(texts) > 0 {
			return strings.Join(texts, "\n")
		}
		time.Sleep(time.Millisecond)
	}
	return ""
}

func auditedNode(t *testing.T) (*testServer, *notedRecords) {
	t.Helper()
	c, log := newFakeCluster(), &notedRecords{}
	c.audit = log
	d := openServer(t, c, "n1")
	c.lead("n1")
	d.applyCERN(t)
	d.node.bookWith(t, access.Guarded)
	return d, log
}

func (d *testServer) auditAs(a as) adminv1connect.AuditServiceClient {
	return adminv1connect.NewAuditServiceClient(a, d.url)
}

// TestCallsAreRecorded: refusals, and calls that the ledger does not record; nothing else.
func TestCallsAreRecorded(t *testing.T) {
	d, log := auditedNode(t)
	plain := byToken(plainToken)
	revoked := as(tokenOf(access.TokenID{6: 9}).Reveal())
	request := func(method, body string, a as) {
		r, err := http.NewRequestWithContext(t.Context(), "POST", d.url+"/quorate."+method, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := a.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	for _, tc := range []struct {
		method, body string
		caller       as
		want         string
	}{
		{
			"admin.v1.AccessService/ListAccounts", `{}`, plain,
			"refusal refused AccessService/ListAccounts by accountaccount/plain permission_denied",
		},
		{
			"admin.v1.AccessService/ListAccounts", `{}`, "",
			"refusal refused AccessService/ListAccounts by anonymous unauthenticated",
		},
		{"v1.TreeService/GetTree", `{"name":"cern"}`, revoked, "refusal refused TreeService/GetTree by anonymous unauthenticated"},
		{"admin.v1.AuditService/ListRecords", `{}`, admin, "call done AuditService/ListRecords by accountaccount/admin "},
		{
			"admin.v1.AccessService/Bootstrap", `{"secret":"no"}`, "",
			"call failed AccessService/Bootstrap by anonymous failed_precondition",
		},
		{"admin.v1.AccessService/ListAccounts", `{}`, admin, ""},
		{"v1.IdentityService/WhoAmI", `{}`, plain, ""},
	} {
		request(tc.method, tc.body, tc.caller)
		if got := log.take(tc.want); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.method, got, tc.want)
		}
	}
}

// TestAuditRecordsInPages: filters, pages, and the right to see them.
func TestAuditRecordsInPages(t *testing.T) {
	d, log := auditedNode(t)
	since := time.UnixMilli(1_800_000_000_000)
	for i := range 2500 {
		user := "account/" + []string{"anna", "peter"}[i%2]
		d.node.records.Append(audit.Record{
			Kind: audit.Configuration, Action: []string{"SetLimits", "MoveNode"}[i/2%2], Actor: audit.Actor{User: user},
			WallMs:  since.UnixMilli() + int64(i),
			Changes: []audit.Change{{Tree: "cern", Node: []string{"atlas", "cms/x"}[i%2], Field: "limit cores", After: "1"}},
		})
	}
	list := func(request *adminv1.ListRecordsRequest) []*adminv1.AuditRecord {
		var all []*adminv1.AuditRecord
		for {
			page, err := d.auditAs(admin).ListRecords(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, page.GetRecords()...)
			if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
				return all
			}
			if len(page.GetRecords()) > 100 {
				t.Fatalf("a page has %d records", len(page.GetRecords()))
			}
		}
	}
	for name, tc := range map[string]struct {
		request *adminv1.ListRecordsRequest
		want    int
	}{
		"all":     {&adminv1.ListRecordsRequest{}, 2500},
		"user":    {&adminv1.ListRecordsRequest{User: "account/anna"}, 1250},
		"action":  {&adminv1.ListRecordsRequest{Action: "MoveNode", User: "account/peter"}, 625},
		"place":   {&adminv1.ListRecordsRequest{Tree: "cern", Node: "cms"}, 1250},
		"nowhere": {&adminv1.ListRecordsRequest{Tree: "cern", Node: "cm"}, 0},
		"since": {&adminv1.ListRecordsRequest{
			BeginsAt: timestamppb.New(since.Add(2490 * time.Millisecond)),
		}, 10},
		"refused": {&adminv1.ListRecordsRequest{Refused: true}, 0},
		"after":   {&adminv1.ListRecordsRequest{AfterRecord: 2495}, 5},
	} {
		if got := list(tc.request); len(got) != tc.want {
			t.Errorf("%s: %d records, want %d", name, len(got), tc.want)
		}
	}
	newest := list(&adminv1.ListRecordsRequest{NewestFirst: true})
	falls := slices.IsSortedFunc(newest, func(a, b *adminv1.AuditRecord) int {
		return cmp.Compare(b.GetNumber(), a.GetNumber())
	})
	if len(newest) != 2500 || newest[0].GetNumber() != 2500 || newest[2499].GetNumber() != 1 || !falls {
		t.Errorf("newest first: %d records, %d to %d", len(newest), newest[0].GetNumber(), newest[len(newest)-1].GetNumber())
	}
	if got := list(&adminv1.ListRecordsRequest{
		NewestFirst: true, AfterRecord: 2480, User: "account/peter", PageSize: 3,
	}); len(got) != 10 || got[0].GetNumber() != 2500 || got[9].GetNumber() != 2482 {
		t.Errorf("newest first, after 2480: %v", got)
	}
	last := list(&adminv1.ListRecordsRequest{AfterRecord: 2499})[0]
	if last.GetHash() != d.node.records.Head().Hash.String() || last.GetChanges()[0].GetAfter() != "1" {
		t.Errorf("got %v", last)
	}
	log.Note(audit.Record{Kind: audit.Refusal, Outcome: audit.Refused, Action: "X"})
	own := list(&adminv1.ListRecordsRequest{Source: adminv1.AuditSource_AUDIT_SOURCE_SERVER, Refused: true})
	if len(own) != 1 || own[0].GetAction() != "X" || own[0].GetHash() != "" {
		t.Errorf("of the server: %v", own)
	}
	ofCalls := &adminv1.ListRecordsRequest{
		Source: adminv1.AuditSource_AUDIT_SOURCE_SERVER, PageSize: 1, NewestFirst: true,
	}
	first, err := d.auditAs(admin).ListRecords(t.Context(), ofCalls)
	if err != nil || len(first.GetRecords()) != 1 {
		t.Fatalf("the newest record: %v, %v", first, err)
	}
	ofCalls.PageToken = first.GetNextPageToken() // the call itself was recorded too, before this page
	if before, err := d.auditAs(admin).ListRecords(t.Context(), ofCalls); err != nil || len(before.GetRecords()) != 1 ||
		proto.Equal(before.GetRecords()[0], first.GetRecords()[0]) {
		t.Errorf("after %v: %v, %v", first, before, err)
	}
	_, err = d.auditAs(byToken(plainToken)).ListRecords(t.Context(), &adminv1.ListRecordsRequest{})
	if connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("without the right: %v", err)
	}
}

// TestRequiredAudit: a change is proposed only when its intent is written; grants need none.
func TestRequiredAudit(t *testing.T) {
	c, log := newFakeCluster(), &notedRecords{}
	c.audit, c.auditRequired = log, true
	d := openServer(t, c, "n1")
	c.lead("n1")
	d.applyCERN(t)
	const asked = "intent asked ApplyTrees by anonymous actor test"
	if got := log.take(asked); got != asked {
		t.Errorf("got %q", got)
	}
	log.blocked = errors.New("the disk is full")
	change := &adminv1.CordonNodeRequest{Tree: "cern"}
	_, err := d.trees().CordonNode(t.Context(), change)
	if p := problemOf(t, err); p.GetReason() != "AUDIT_BLOCKED" || !p.GetNotApplied() ||
		connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("got %v", err)
	}
	if _, err := d.allocations().Allocate(t.Context(), request("a", "cern:physics/higgs", 1)); err != nil {
		t.Errorf("a grant: %v", err)
	}
	log.blocked = nil
	if _, err := d.trees().CordonNode(t.Context(), change); err != nil {
		t.Error(err)
	}
}

// TestRequiredAuditOfGrants: a grant is proposed only when its intent is written; a release needs none.
func TestRequiredAuditOfGrants(t *testing.T) {
	c, log := newFakeCluster(), &notedRecords{}
	c.audit, c.auditRequired, c.auditGrants = log, true, true
	d := openServer(t, c, "n1")
	c.lead("n1")
	d.applyCERN(t)
	log.take("anything")
	if _, err := d.allocations().Allocate(t.Context(), request("a", "cern:physics/higgs", 1)); err != nil {
		t.Fatal(err)
	}
	const asked = "intent asked Allocate by anonymous allocation a"
	if got := log.take(asked); got != asked {
		t.Errorf("got %q", got)
	}
	log.blocked = errors.New("the disk is full")
	_, err := d.allocations().Allocate(t.Context(), request("b", "cern:physics/higgs", 1))
	if p := problemOf(t, err); p.GetReason() != "AUDIT_BLOCKED" || !p.GetNotApplied() ||
		connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("got %v", err)
	}
	if _, err := d.allocations().Release(t.Context(), &quoratev1.ReleaseRequest{Id: "a"}); err != nil {
		t.Errorf("a release: %v", err)
	}
}
