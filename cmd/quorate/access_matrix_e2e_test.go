package main_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	quoratev1beta1 "github.com/quorate/quorate/client/gen/quorate/v1beta1"
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/rpc/procedures"
)

// matrixText is the configuration of the matrix. Each role that has verbs at nodes is bound at node t:a to an account
// of its name, and each role on the cluster to the account c-ROLE.
const matrixText = `access:
  bindings:
    - {role: root, subjects: [account admin]}
%strees:
  other: {resources: {cores: {unit: count}}, limits: {cores: 1000}}
  t:
    resources:
      cores: {unit: count}
      machine: {items: {names: [m1, m2]}}
    limits: {cores: 1000000, machine: 2}
    nodes:
      a:
        limits: {cores: 900000}
        bindings:
          - {role: holder, subjects: [account owner]}
%s        nodes:
          b: {limits: {cores: 800000}}
          c: {}
      s: {}
`

// A matrixCaller is one column of the matrix.
type matrixCaller struct {
	name  string
	token string
}

// rolesBound are the names of the built-in roles that can be bound at a node, or on the cluster.
func rolesBound(atNode bool) []string {
	var names []string
	for _, role := range access.BuiltinRoles() {
		if !atNode || role.Verbs&access.NodeVerbs != 0 {
			names = append(names, role.Name)
		}
	}
	return names
}

// matrixCluster starts a guarded cluster with one account for each column.
func matrixCluster(t *testing.T) (
	list []serverFlags, processes []*process, admin *client.Client, callers []matrixCaller,
) {
	t.Helper()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte(strings.Repeat("s", 43)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	list = threeServers(t)
	for i := range list {
		list[i].more = append(list[i].more, "--bootstrap-secret-file", secret)
		processes = append(processes, startProcess(t, list[i].commandLine()...))
	}
	var atCluster, atNode strings.Builder
	for _, role := range rolesBound(false) {
		fmt.Fprintf(&atCluster, "    - {role: %s, subjects: [account c-%s]}\n", role, role)
	}
	for _, role := range rolesBound(true) {
		fmt.Fprintf(&atNode, "          - {role: %s, subjects: [account %s]}\n", role, role)
	}
	for i := range list {
		awaitReady(t, processes[i], list[i])
	}
	token := filepath.Join(dir, "admin")
	root := " --token-file " + token
	playSteps(t, list[0], []step{
		{"token create --secret-file " + secret + " --out " + token, 0, ""},
		{"apply -f " + manifestFile(t, fmt.Sprintf(matrixText, atCluster.String(), atNode.String())) + root, 0, ""},
		{"limit set t:a cores=900001" + root, 0, ""}, // for RollBack
		{"access set guarded --force" + root, 0, "guarded"},
	})
	admin, err := client.New([]string{list[0].baseURL()}, client.WithTokenFile(token))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"owner", "dummy"}
	names = append(names, rolesBound(true)...)
	for _, role := range rolesBound(false) {
		names = append(names, "c-"+role)
	}
	callers = []matrixCaller{{name: "anonymous"}}
	for _, name := range append(names, "stranger") {
		callers = append(callers, matrixCaller{name, newAccount(t, admin, name)})
	}
	return list, processes, admin, callers
}

func newAccount(t *testing.T, admin *client.Client, name string) (token string) {
	t.Helper()
	_, err := admin.Access.CreateAccount(t.Context(),
		&adminv1.CreateAccountRequest{Account: &adminv1.Account{Name: name}})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := admin.Access.CreateToken(t.Context(), &adminv1.CreateTokenRequest{Account: name})
	if err != nil {
		t.Fatal(err)
	}
	return answer.GetSecret()
}

// matrixPlaces are the places of the matrix, in JSON.
var matrixPlaces = map[string]struct{ tree, node string }{
	"": {}, "a": {"t", "a"}, "b": {"t", "a/b"}, "root": {"t", ""}, "s": {"t", "s"}, "other": {"other", ""},
}

// matrixCodes are the cells of the matrix. An answer without a record is a point.
var matrixCodes = map[connect.Code]string{
	0: "+", connect.CodePermissionDenied: "-", connect.CodeUnauthenticated: "u", connect.CodeNotFound: "n",
	connect.CodeFailedPrecondition: "f", connect.CodeInvalidArgument: "i", connect.CodeAlreadyExists: "e",
	connect.CodeResourceExhausted: "r", connect.CodeAborted: "x",
}

const matrixLegend = `Who may call what. Each letter is a caller, in this order:
+ answered, . answered with nothing, - permission_denied, u unauthenticated, n not_found, i invalid_argument,
f failed_precondition, e already_exists, r resource_exhausted, x aborted
`

// TestAccessMatrix makes each call as a caller of each role at the leader, and compares what was allowed with
// testdata/access_matrix.golden. In make verify, one caller of each kind must get the same at the followers, over the
// other protocols. With -args -rewrite it writes that file.
func TestAccessMatrix(t *testing.T) {
	t.Parallel()
	list, _, admin, callers := matrixCluster(t)
	leader := matrixLeader(t, admin, list)
	owner := matrixClient(t, list[0], callers, "owner")
	runs := []matrixRun{
		{name: "connect-leader", server: list[leader], protocol: connect.WithProtoJSON()},
		{name: "grpc-follower", server: list[(leader+1)%3], protocol: connect.WithGRPC()},
		{name: "web-follower", server: list[(leader+2)%3], protocol: connect.WithGRPCWeb()},
	}
	var first []string
	for i, run := range runs[:verify.Scale(1, len(runs))] {
		columns := callersFor(i == 0, callers)
		run.since = prepareMatrix(t, owner, run.name, columns)
		rows := run.rows(t, columns)
		if i == 0 {
			first = rows
			continue
		}
		for j, row := range rows {
			if want := cellsOf(first[j], callers, columns); row != want {
				t.Errorf("%s answers\n%s\n%s answers\n%s", runs[0].name, want, run.name, row)
			}
		}
	}
	var text strings.Builder
	text.WriteString(matrixLegend)
	for i, caller := range callers {
		fmt.Fprintf(&text, "%3d %s\n", i+1, caller.name)
	}
	text.WriteString(strings.Join(first, "\n") + "\n")
	compareMatrix(t, text.String())
}

func callersFor(all bool, callers []matrixCaller) []matrixCaller {
	if all {
		return callers
	}
	return slices.DeleteFunc(slices.Clone(callers), func(c matrixCaller) bool {
		return !slices.Contains(modeCallers, c.name)
	})
}

func cellsOf(row string, all, some []matrixCaller) string {
	var cells strings.Builder
	for i, c := range all {
		if slices.Contains(some, c) {
			cells.WriteString(row[i : i+1])
		}
	}
	return cells.String() + row[len(all):]
}

func compareMatrix(t *testing.T, got string) {
	t.Helper()
	file := filepath.Join("testdata", "access_matrix.golden")
	if isRewriting() {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s: want (-), got (+):\n%s", file, diff)
	}
}

// TestAccessMatrixIsComplete: each method for clients is in the matrix.
func TestAccessMatrixIsComplete(t *testing.T) {
	t.Parallel()
	for _, file := range procedures.PublicFiles() {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				name := string(service.Name()) + "/" + string(service.Methods().Get(j).Name())
				if name == "AccessService/Bootstrap" { // failures of it are limited by address; it has tests of its own
					continue
				}
				if !slices.ContainsFunc(matrixCalls, func(c matrixCall) bool { return c.method == name }) {
					t.Errorf("%s is not in the matrix", name)
				}
			}
		}
	}
}

func matrixClient(t *testing.T, f serverFlags, callers []matrixCaller, name string) *client.Client {
	t.Helper()
	at := slices.IndexFunc(callers, func(c matrixCaller) bool { return c.name == name })
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(callers[at].token), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := client.New([]string{f.baseURL()}, client.WithTokenFile(file))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func matrixLeader(t *testing.T, admin *client.Client, list []serverFlags) int {
	t.Helper()
	leader := -1
	awaitCondition(t, "no leader is known", func() bool {
		status, err := admin.Cluster.GetStatus(t.Context(), &adminv1.GetStatusRequest{})
		leader = slices.IndexFunc(list, func(f serverFlags) bool { return f.id == status.GetLeaderId() })
		return err == nil && leader >= 0
	})
	return leader
}

// prepareMatrix gives the account "owner" objects that the callers of a run try to see and to end. It returns the index
// before.
func prepareMatrix(t *testing.T, owner *client.Client, run string, callers []matrixCaller) (since uint64) {
	t.Helper()
	now, err := owner.Trees.ListTrees(t.Context(), &quoratev1.ListTreesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	batch := &quoratev1.BatchAllocateRequest{}
	for _, c := range callers {
		for _, kind := range []string{"kept", "released", "batch", "lease", "cancelled", "confirmed"} {
			r := &quoratev1.AllocateRequest{
				Namespace: "frontend/matrix",
				Id:        kind + "-" + run + "-" + c.name,
				Claims:    []*quoratev1.Claim{{Tree: "t", Node: "a/b", Amounts: map[string]int64{"cores": 1}}},
			}
			switch kind {
			case "lease":
				r.TtlMs = time.Hour.Milliseconds()
			case "cancelled", "confirmed":
				r.Mode, r.ReserveMs = quoratev1.Mode_MODE_RESERVE, time.Hour.Milliseconds()
			}
			batch.Requests = append(batch.Requests, r)
		}
	}
	// One is queued, and one is denied.
	for _, mode := range []quoratev1.Mode{quoratev1.Mode_MODE_WAIT, quoratev1.Mode_MODE_REJECT} {
		batch.Requests = append(batch.Requests, &quoratev1.AllocateRequest{
			Id: fmt.Sprintf("%s-%d", run, mode), Mode: mode,
			Claims: []*quoratev1.Claim{{Tree: "t", Node: "a/b", Amounts: map[string]int64{"cores": 800_000}}},
		})
	}
	// The first run makes request 1, which stays open, and 2, which is withdrawn.
	for _, amount := range []int64{700_001, 700_002} {
		if _, err := owner.Requests.RequestLimits(t.Context(), &quoratev1beta1.RequestLimitsRequest{
			Tree: "t", Node: "a/b", Reason: "matrix",
			Limits: map[string]*quoratev1.Limit{"cores": {Value: &quoratev1.Limit_Amount{Amount: amount}}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := owner.Allocations.BatchAllocate(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range answer.GetOutcomes() {
		if isLast := i == len(batch.GetRequests())-1; isLast != (o.GetGranted() == nil) {
			t.Fatal(o)
		}
	}
	return now.GetRead().GetIndex()
}

type matrixRun struct {
	name     string
	server   serverFlags
	protocol connect.ClientOption
	since    uint64 // the index before it
	// stale is set to ask for stale reads, mayFail if calls may fail for want of a leader or of time.
	stale, mayFail bool
}

func (r matrixRun) rows(t *testing.T, callers []matrixCaller) []string {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	var rows []string
	for _, c := range matrixCalls {
		for place := range strings.SplitSeq(c.places, " ") {
			var row strings.Builder
			for _, caller := range callers {
				row.WriteString(r.call(t, transport, len(rows), c.method, c.body, place, caller))
			}
			rows = append(rows, fmt.Sprintf("%s  %s", row.String(), strings.TrimSpace(c.method+" "+place)))
		}
	}
	return rows
}

func (r matrixRun) call(
	t *testing.T, transport *http.Transport, row int, method, body, place string, caller matrixCaller,
) string {
	t.Helper()
	method, _, _ = strings.Cut(method, " (")
	at := matrixPlaces[place]
	body = strings.NewReplacer("PLACE", fmt.Sprintf(`"tree": %q, "node": %q`, at.tree, at.node),
		"TREE", fmt.Sprintf("%q", at.tree), "WHO", r.name+"-"+caller.name, "NEW", fmt.Sprintf("%s-%s-%d", r.name, caller.name, row), "SINCE", strconv.FormatUint(r.since, 10)).Replace(body)
	descriptor := methodNamed(t, method)
	request := dynamicpb.NewMessage(descriptor.Input())
	if err := protojson.Unmarshal([]byte(body), request); err != nil {
		t.Fatalf("%s: %s: %v", method, body, err)
	}
	within := patience
	if r.stale {
		askStale(request)
		within = 400 * time.Millisecond // without a leader, others only wait
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	answer, err := r.send(ctx, transport, descriptor, request, caller.token)
	// A busy machine may have delayed the leader. What was carried out all the same mostly has the same answer again.
	for !r.mayFail && codeOf(err) == connect.CodeUnavailable && ctx.Err() == nil {
		pauseFor(ctx, 50*time.Millisecond)
		answer, err = r.send(ctx, transport, descriptor, request, caller.token)
	}
	if err == nil && isEmpty(answer) {
		return "."
	}
	cell, known := matrixCodes[codeOf(err)]
	if !known && r.mayFail {
		return "x"
	}
	if !known {
		t.Errorf("%s: %s as %s over %s: %v", method, body, caller.name, r.name, err)
		return "?"
	}
	return cell
}
