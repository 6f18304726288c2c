package plain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// fakeCluster answers with its fields; nil answers are errors.
type fakeCluster struct {
	status *adminv1.GetStatusResponse
	health *adminv1.ListMembersResponse
	err    error
}

func (c *fakeCluster) GetStatus(
	context.Context, *adminv1.GetStatusRequest,
) (*adminv1.GetStatusResponse, error) {
	return c.status, c.err
}

func (c *fakeCluster) ListMembers(
	context.Context, *adminv1.ListMembersRequest,
) (*adminv1.ListMembersResponse, error) {
	return c.health, c.err
}

type fakeTrees struct {
	list   *quoratev1.ListTreesResponse
	usage  *quoratev1.GetUsageResponse
	err    error
	asked  []*quoratev1.GetUsageRequest
	listed *quoratev1.ListTreesRequest
}

func (f *fakeTrees) ListTrees(
	_ context.Context, r *quoratev1.ListTreesRequest,
) (*quoratev1.ListTreesResponse, error) {
	f.listed = r
	return f.list, f.err
}

func (f *fakeTrees) GetUsage(_ context.Context, r *quoratev1.GetUsageRequest) (*quoratev1.GetUsageResponse, error) {
	f.asked = append(f.asked, r)
	return f.usage, nil
}

func amount(n int64) *quoratev1.Limit {
	return &quoratev1.Limit{Value: &quoratev1.Limit_Amount{Amount: n}}
}

func newFake() (*fakeCluster, *fakeTrees) {
	ends := timestamppb.New(time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC))
	cluster := &fakeCluster{
		status: &adminv1.GetStatusResponse{
			ServedBy: "n1", LeaderId: "n1", ClusterName: "lab", Term: 3, CommitIndex: 90, AppliedIndex: 90, Revision: 4,
			HeldAllocations: 5, LedgerBytes: 1 << 20, LedgerBytesLimit: 1 << 30,
			Member: &adminv1.Member{Id: "n1"},
		},
		health: &adminv1.ListMembersResponse{Voters: 3, HealthyVoters: 3, FailureTolerance: 1, Members: []*adminv1.Member{
			{
				Id: "n1", Role: adminv1.Role_ROLE_LEADER, Seat: adminv1.Seat_SEAT_VOTER, Reachable: true, AppliedIndex: 90,
				Version: "v1", FeatureLevel: 9, CertificateEndsAt: ends,
			},
			{Id: "n2", Seat: adminv1.Seat_SEAT_VOTER, Problem: "the disk is full"},
			{
				Id: "n3", Role: adminv1.Role_ROLE_FOLLOWER, Seat: adminv1.Seat_SEAT_NON_VOTER, Reachable: true,
				AppliedIndex: 88, Version: "v1", FeatureLevel: 9,
			},
		}},
	}
	headroom := int64(0)
	trees := &fakeTrees{
		list: &quoratev1.ListTreesResponse{
			Trees:    []*quoratev1.TreeSummary{{Name: "cern", NodeCount: 2, ClaimCount: 5}},
			Revision: 4, Read: &quoratev1.ReadInfo{Index: 90, ServedBy: "n1"},
		},
		usage: &quoratev1.GetUsageResponse{Nodes: []*quoratev1.NodeUsage{{
			Node: "atlas",
			Resources: []*quoratev1.ResourceUsage{
				{Resource: "cores", Unit: quoratev1.Unit_UNIT_COUNT, Effective: amount(60), Subtree: 60, Headroom: &headroom},
				{Resource: "memory", Unit: quoratev1.Unit_UNIT_BYTES, Effective: amount(1 << 30), Subtree: 3 << 30, Over: 2 << 30},
				{Resource: "unused", Effective: &quoratev1.Limit{Value: &quoratev1.Limit_Unlimited{Unlimited: true}}},
			},
		}}},
	}
	return cluster, trees
}

func get(t *testing.T, c *fakeCluster, f *fakeTrees, accept string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, Path, nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	NewHandler(API{Cluster: c, Trees: f}).ServeHTTP(w, r)
	return w
}

const wantText = `Quorate cluster lab
From node n1, index 90, revision 4, up to date

Cluster
3 of 3 voters are healthy; the cluster survives the loss of 1 more.
answered by      n1
leader           n1
term             3
committed index  90
applied index    90
revision         4
allocations      5
ledger size      1Mi of 1Gi

Members
MEMBER  ROLE               VERSION  LEVEL  APPLIED  BEHIND  CERTIFICATE ENDS      LAST BACKUP  PROBLEM
n1      leader             v1       9      90       0       2027-01-02T03:04:05Z  -
n2      unknown                     0      -        -       -                     -            the disk is full
n3      follower, no vote  v1       9      88       2       -                     -

Tree cern
2 nodes, 5 claims held. The fullest nodes:
NODE        RESOURCE  USED  LIMIT  HEADROOM  STATE
cern:atlas  cores     60    60     0         full
cern:atlas  memory    3Gi   1Gi    no limit  over by 2Gi
`

// TestText checks that columns are aligned, and that nothing that is not asked for needs a leader.
func TestText(t *testing.T) {
	c, f := newFake()
	got := get(t, c, f, "text/plain")
	if got.Code != http.StatusOK || got.Body.String() != wantText {
		t.Errorf("%d\n%s\nwant\n%s", got.Code, got.Body, wantText)
	}
	want := quoratev1.Consistency_CONSISTENCY_STALE
	if f.listed.GetRead().GetConsistency() != want || f.asked[0].GetRead().GetConsistency() != want {
		t.Error("a read is not stale")
	}
	f.list.Read.AgeMs = 65_300
	if text := get(t, c, f, "text/plain").Body.String(); !strings.Contains(text, "revision 4, 1m5s old\n") {
		t.Errorf("the age is missing:\n%s", text)
	}
}

// TestHostileText checks that text of others becomes neither markup nor a command for a terminal.
func TestHostileText(t *testing.T) {
	c, f := newFake()
	c.status.Problem = "<script>alert(1)</script>\x1b[2J\u202e"
	html := get(t, c, f, "text/html,*/*").Body.String()
	if strings.Contains(html, "<script") || !strings.Contains(html, "&lt;script&gt;") {
		t.Errorf("markup was not escaped:\n%s", html)
	}
	if text := get(t, c, f, "text/plain").Body.String(); strings.ContainsAny(text, "\x1b\u202e") {
		t.Errorf("the text has control characters: %q", text)
	}
}

// TestHTML checks the parts that people and browsers rely on: the policy, one heading, tables with headers.
func TestHTML(t *testing.T) {
	c, f := newFake()
	got := get(t, c, f, "*/*")
	body := got.Body.String()
	if !strings.HasPrefix(got.Header().Get("Content-Security-Policy"), "default-src 'none'; ") ||
		got.Header().Get("Cache-Control") != "no-store" || got.Header().Get("Vary") != "Accept" {
		t.Errorf("headers: %v", got.Header())
	}
	if strings.Count(body, "<h1>") != 1 || !strings.Contains(body, `<th scope="col">Used</th>`) ||
		!strings.Contains(body, `<th scope="row"><bdi>cern:atlas</bdi></th><td><bdi>cores</bdi></td>`) {
		t.Errorf("the page is\n%s", body)
	}
}

// TestThePageIsBounded checks that a thousand trees make no long page, and that the page says what it leaves out.
func TestThePageIsBounded(t *testing.T) {
	c, f := newFake()
	for i := range 999 {
		f.list.Trees = append(f.list.Trees, &quoratev1.TreeSummary{Name: fmt.Sprintf("t%d", i)})
	}
	for i := range 100 {
		f.usage.Nodes[0].Resources = append(f.usage.Nodes[0].Resources,
			&quoratev1.ResourceUsage{Resource: fmt.Sprintf("r%d", i), Subtree: 1})
	}
	text := get(t, c, f, "text/plain").Body.String()
	if len(f.asked) != 50 || f.asked[0].GetPageSize() != 5 || !f.asked[0].GetFullestFirst() {
		t.Errorf("%d trees were asked for, first %v", len(f.asked), f.asked[0])
	}
	if rows := strings.Count(text, "cern:atlas"); rows > 20 {
		t.Errorf("a node has %d rows", rows)
	}
	if !strings.Contains(text, "There are 950 more trees.") {
		t.Errorf("nothing says that there are more:\n%.2000s", text)
	}
}

// TestWhatCannotBeReadIsSaid checks callers without rights, and a cluster that does not answer.
func TestWhatCannotBeReadIsSaid(t *testing.T) {
	c, f := newFake()
	c.status.Member, c.health = nil, &adminv1.ListMembersResponse{}
	f.list.Trees, f.list.Filtered = nil, true
	text := get(t, c, f, "text/plain").Body.String()
	if strings.Contains(text, "term") || !strings.Contains(text, "no tree that you may see") {
		t.Errorf("a caller without rights sees\n%s", text)
	}
	f.err = connect.NewError(connect.CodePermissionDenied, errors.New("not you"))
	if text := get(t, c, f, "text/plain").Body.String(); !strings.Contains(text, "not you") {
		t.Errorf("the refusal is missing:\n%s", text)
	}
	for code, want := range map[connect.Code]int{
		connect.CodeUnauthenticated: 401, connect.CodePermissionDenied: 403, connect.CodeUnavailable: 503,
		connect.CodeInternal: 500,
	} {
		c.err = connect.NewError(code, errors.New("no answer"))
		got := get(t, c, f, "text/plain")
		if got.Code != want || got.Body.String() != "Quorate\nno answer\n" {
			t.Errorf("%v: %d %q", code, got.Code, got.Body)
		}
	}
}

func TestOnlyGet(t *testing.T) {
	c, f := newFake()
	w := httptest.NewRecorder()
	NewHandler(API{Cluster: c, Trees: f}).ServeHTTP(w, httptest.NewRequest(http.MethodPost, Path, nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d %v", w.Code, w.Header())
	}
}
