package main_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
)

func clientWithToken(t *testing.T, token string, servers ...serverFlags) *client.Client {
	t.Helper()
	c, err := client.New(strings.Split(serverURLs(servers), ","), client.WithTokenSource(
		func(context.Context) (string, error) { return token, nil }))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// tokenIn reads a token of guardedCluster.
func tokenIn(t *testing.T, tokens, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(tokens, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// coresOfPhysics is a request at the node where hans and heidi hold.
func coresOfPhysics(id string) *quoratev1.AllocateRequest {
	return &quoratev1.AllocateRequest{Id: id, Claims: []*quoratev1.Claim{
		{Tree: "cern", Node: "atlas/physics", Amounts: map[string]int64{"cores": 1}},
	}}
}

func isRefused(err error) bool { return connect.CodeOf(err) == connect.CodeUnauthenticated }

// TestTokensCountOnAllServersAtOnce: when a token was made, all servers know it, and when it was revoked, none takes it
// any more, neither for a write nor for a linearizable read.
func TestTokensCountOnAllServersAtOnce(t *testing.T) {
	t.Parallel()
	list, _, tokens := guardedCluster(t)
	root := tokenIn(t, tokens, "admin")
	usage := &quoratev1.GetUsageRequest{Tree: "cern", Node: "atlas/physics"}
	for i := range 12 {
		makes, uses := list[i%3], list[(i+1+i/3%2)%3]
		made, err := clientWithToken(t, root, makes).Access.CreateToken(t.Context(),
			&adminv1.CreateTokenRequest{Account: "hans"})
		if err != nil {
			t.Fatal(err)
		}
		holder := clientWithToken(t, made.GetSecret(), uses)
		if _, err := holder.Trees.GetUsage(t.Context(), usage); err != nil {
			t.Errorf("%s does not know a token that %s has made: %v", uses.id, makes.id, err)
		}
		if _, err := holder.Allocations.Allocate(t.Context(), coresOfPhysics(fmt.Sprint("on-all-", i))); err != nil {
			t.Errorf("%s does not know a token that %s has made: %v", uses.id, makes.id, err)
		}
		if _, err := clientWithToken(t, root, makes).Access.RevokeToken(t.Context(),
			&adminv1.RevokeTokenRequest{Id: made.GetToken().GetId()}); err != nil {
			t.Fatal(err)
		}
		if _, err := holder.Trees.GetUsage(t.Context(), usage); !isRefused(err) {
			t.Errorf("%s reads for a token that %s has revoked: %v", uses.id, makes.id, err)
		}
		if _, err := holder.Allocations.Release(t.Context(),
			&quoratev1.ReleaseRequest{Id: fmt.Sprint("on-all-", i)}); !isRefused(err) {
			t.Errorf("%s writes for a token that %s has revoked: %v", uses.id, makes.id, err)
		}
	}
}

// TestWritesWhileTheirTokenIsRevoked: callers write with a token at all servers while it is revoked and the leader
// dies. What is granted, answered or not, was granted before the revocation.
func TestWritesWhileTheirTokenIsRevoked(t *testing.T) {
	t.Parallel()
	list, processes, tokens := guardedCluster(t)
	stolen := tokenIn(t, tokens, "hans")
	admin := clientWithToken(t, tokenIn(t, tokens, "admin"), list...)
	var writers sync.WaitGroup
	var mu sync.Mutex
	var granted []uint64 // indexes
	begun := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for i, f := range list {
		writer := clientWithToken(t, stolen, f)
		writers.Go(func() {
			for n := 0; ctx.Err() == nil && n < 30; n++ {
				if n == 3 && i == 0 {
					close(begun)
				}
				answer, err := writer.Allocations.Allocate(ctx, coresOfPhysics(fmt.Sprintf("writer-%d-%d", i, n%12)))
				if isRefused(err) {
					return
				}
				if err == nil && !answer.GetWrite().GetRepetition() {
					mu.Lock()
					granted = append(granted, answer.GetWrite().GetIndex())
					mu.Unlock()
				}
			}
		})
	}
	<-begun
	died := slices.IndexFunc(list, func(f serverFlags) bool { return f.id == leaderID(t, admin) })
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		_ = processes[died].Process.Signal(syscall.SIGKILL)
	}()
	revoked, err := admin.Access.RevokeToken(t.Context(),
		&adminv1.RevokeTokenRequest{Id: strings.Split(stolen, "_")[1]})
	if err != nil {
		t.Fatal(err)
	}
	<-killed
	stop()
	writers.Wait()
	for _, index := range granted {
		if index > revoked.GetWrite().GetIndex() {
			t.Errorf("index %d was granted, and the token was revoked at %d", index, revoked.GetWrite().GetIndex())
		}
	}
	before, err := admin.Allocations.ListAllocations(t.Context(), &quoratev1.ListAllocationsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range list {
		if i == died {
			continue
		}
		_, err := clientWithToken(t, stolen, f).Allocations.Allocate(t.Context(), coresOfPhysics("later"))
		if !isRefused(err) {
			t.Errorf("%s: %v", f.id, err)
		}
	}
	after, err := admin.Allocations.ListAllocations(t.Context(), &quoratev1.ListAllocationsRequest{})
	if err != nil || len(after.GetAllocations()) != len(before.GetAllocations()) || len(granted) == 0 {
		t.Errorf("%d allocations, then %d; %d were granted; %v", len(before.GetAllocations()),
			len(after.GetAllocations()), len(granted), err)
	}
}

// TestStreamsOfARevokedTokenEnd: a watch and a stream of calls that began with a token end when it is revoked, at the
// leader and at a follower, and a call on such a stream does nothing.
func TestStreamsOfARevokedTokenEnd(t *testing.T) {
	t.Parallel()
	list, _, tokens := guardedCluster(t)
	admin := clientWithToken(t, tokenIn(t, tokens, "admin"), list...)
	stolen := "Bearer " + tokenIn(t, tokens, "hans")
	watches := make([]*connect.ServerStreamForClient[quoratev1.WatchEventsResponse], len(list))
	calls := make([]*connect.BidiStreamForClientSimple[quoratev1.AllocateStreamRequest,
		quoratev1.AllocateStreamResponse], len(list))
	for i, f := range list {
		api := quoratev1connect.NewAllocationServiceClient(headerClient{http2, stolen}, f.baseURL())
		var err error
		events := quoratev1connect.NewEventServiceClient(headerClient{http2, stolen}, f.baseURL())
		if watches[i], err = events.WatchEvents(t.Context(), &quoratev1.WatchEventsRequest{}); err != nil {
			t.Fatal(err)
		}
		if calls[i], err = api.AllocateStream(t.Context()); err != nil {
			t.Fatal(err)
		}
		answer, err := callOnStream(calls[i], 1, coresOfPhysics(fmt.Sprint("on-stream-", i)))
		if err != nil || answer.GetFailure() != nil {
			t.Fatalf("%v, %v", answer, err)
		}
	}
	if _, err := admin.Access.RevokeToken(t.Context(),
		&adminv1.RevokeTokenRequest{Id: strings.Split(stolen, "_")[1]}); err != nil {
		t.Fatal(err)
	}
	for i, f := range list {
		answer, err := callOnStream(calls[i], 2, coresOfPhysics(fmt.Sprint("after-", i)))
		if err == nil && answer.GetFailure().GetCode() != "unauthenticated" {
			t.Errorf("%s answers a call on a stream of a revoked token: %v", f.id, answer)
		}
		for watches[i].Receive() {
			if a := watches[i].Msg().GetChange().GetAllocation(); strings.HasPrefix(a.GetId(), "after-") {
				t.Errorf("%s tells of %s", f.id, a.GetId())
			}
		}
		if !isRefused(watches[i].Err()) {
			t.Errorf("the watch of %s ended with %v", f.id, watches[i].Err())
		}
		if _, err := admin.Allocations.GetAllocation(t.Context(),
			&quoratev1.GetAllocationRequest{Id: fmt.Sprint("after-", i)}); connect.CodeOf(err) != connect.CodeNotFound {
			t.Errorf("a call on a stream of a revoked token was applied: %v", err)
		}
	}
}

func callOnStream(
	s *connect.BidiStreamForClientSimple[quoratev1.AllocateStreamRequest, quoratev1.AllocateStreamResponse],
	number uint64, r *quoratev1.AllocateRequest,
) (*quoratev1.AllocateStreamResponse, error) {
	_ = s.Send(&quoratev1.AllocateStreamRequest{ // what is wrong is in the answer
		Number: number, Request: &quoratev1.AllocateStreamRequest_Allocate{Allocate: r},
	})
	return s.Receive()
}

func leaderID(t *testing.T, admin *client.Client) string {
	t.Helper()
	status, err := admin.Cluster.GetStatus(t.Context(), &adminv1.GetStatusRequest{})
	if err != nil || status.GetLeaderId() == "" {
		t.Fatalf("%v, %v", status, err)
	}
	return status.GetLeaderId()
}

// TestForgedHeaders: no header of a client makes a server believe who it is, whether it has a token or not.
func TestForgedHeaders(t *testing.T) {
	t.Parallel()
	list, _, tokens := guardedCluster(t)
	for _, name := range []string{
		"Quorate-Relayed-By", "Quorate-Via", "Quorate-Caller", "Quorate-User", "quorate-anything", "Client-Cert",
		"Client-Cert-Chain",
	} {
		for token, normally := range map[string]int{"": http.StatusNotFound, tokenIn(t, tokens, "carl"): 404} {
			for value, want := range map[string]int{"n1": http.StatusBadRequest, "": normally} {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
					list[1].baseURL()+"/quorate.v1.TreeService/GetUsage",
					strings.NewReader(`{"tree": "cern", "node": "atlas/physics"}`))
				if err != nil {
					t.Fatal(err)
				}
				request.Header.Set("Content-Type", "application/json")
				if token != "" {
					request.Header.Set("Authorization", "Bearer "+token)
				}
				if value != "" {
					request.Header.Set(name, value)
				}
				if status, answer := sendRequest(t, request); status != want {
					t.Errorf("%s: %q: %d %s, want %d", name, value, status, answer, want)
				}
			}
		}
	}
}

// roleOfAnna is a section that gives anna a role of her own.
const roleOfAnna = `access:
  roles: {helper: [usage.read, holders.read, data.read]}
  bindings:
    - {role: root, subjects: ["account admin"]}
    - {role: helper, subjects: ["account anna"]}
`

// TestEscalation: no one gets a right by a binding, a custom role, a move or a rollback that the caller could not give.
func TestEscalation(t *testing.T) {
	t.Parallel()
	list, _, tokens := guardedCluster(t)
	as := func(name, command string) string { return command + " --token-file " + filepath.Join(tokens, name) }
	file := func(text string) string { return " -f " + manifestFile(t, text) }
	with := func(old, new string) string {
		text := strings.Replace(guardedTree, old, new, 1)
		if text == guardedTree {
			t.Fatalf("%q is not in the tree", old)
		}
		return text
	}
	roles := with("access:\n", "access:\n  roles: {helper: [usage.read, holders.read, data.read]}\n")
	playSteps(t, list[0], []step{
		// A role that was defined for others cannot be given by someone who lacks its verbs.
		{as("admin", "apply"+file(roles)), 0, "helper"},
		{as("anna", "apply --at cern:atlas"+file(subtreeWith("helper", "anna"))), 4, ""},
		{as("anna", "apply --at cern:atlas"+file(subtreeWith("operator", "anna"))), 4, ""},
		{as("anna", "apply --at cern:atlas"+file(subtreeWith("root", "eve"))), 4, ""},
		{as("anna", "apply --at cern:atlas"+file(subtreeWith("limit-admin", "eve"))), 0, "eve"},
		{as("anna", "apply"+file(roleOfAnna)), 4, "access.manage"},
		{as("ops", "apply"+file(roleOfAnna)), 4, "access.manage"},
		// A node takes its bindings along, so both parents are asked.
		{as("peter", "node move cern:atlas/physics physics"), 1, "there is no"},
		{as("peter", "node move cern:atlas/physics cms/physics"), 1, "there is no"},
		{as("carl", "node move cern:cms atlas/cms"), 1, "there is no"},
		{as("anna", "node move cern:atlas/physics cms/physics"), 1, "there is no"},
		// What was taken away does not come back by a rollback of someone who could not give it.
		{as("admin", "apply"+file(with("[\"account carl\"]", "[\"account ops\"]"))), 0, "ops"},
		{as("carl", "revision rollback 1"), 4, "config.read"},
		{as("anna", "revision rollback 1"), 4, "config.read"},
		{as("hans", "revision rollback 1"), 4, "config.read"},
		{as("carl", "access check limits.set cern:cms"), 1, "no"},
	})
}

// TestARollbackGivesNoRights: who may roll back limits of every tree, and not give bindings, takes a limit back, and
// does not bring back the rights of another.
func TestARollbackGivesNoRights(t *testing.T) {
	t.Parallel()
	list, _, tokens := guardedCluster(t)
	as := func(name, command string) string { return command + " --token-file " + filepath.Join(tokens, name) }
	const curator = `  roles: {curator: [config.read, limits.set, nodes.manage]}
  bindings:
    - {role: curator, subjects: ["account heidi"]}
`
	curated := strings.Replace(guardedTree, "  bindings:\n", curator, 1)
	withoutCarl := strings.Replace(curated, `["account carl"]`, `["account ops"]`, 1)
	playSteps(t, list[0], []step{
		{as("admin", "apply -f "+manifestFile(t, curated)), 0, "revision 4"},
		{as("admin", "limit set cern:cms cores=39"), 0, "revision 5"},
		{as("heidi", "revision rollback 4"), 0, "cern:cms  limit cores: 39 -> 40"},
		{as("admin", "apply -f "+manifestFile(t, withoutCarl)), 0, "revision 7"},
		{as("admin", "limit set cern:cms cores=38"), 0, "revision 8"},
		{as("heidi", "revision rollback 7"), 0, "cern:cms  limit cores: 38 -> 40"},
	})
	for _, f := range list {
		playSteps(t, f, []step{
			{as("heidi", "revision rollback 6 --dry-run"), 4, "bindings.grant"},
			{as("heidi", "revision rollback 6"), 4, "bindings.grant"},
			{as("carl", "access check limits.set cern:cms"), 1, "no"},
		})
	}
	playSteps(t, list[0], []step{{as("admin", "revision rollback 6"), 0, "account carl"}})
}

// TestAServerAloneKeepsTheGuard: after a start without a leader a server does not know yet that its cluster is guarded,
// unless it has noted it: it must not answer everyone from what it has on disk.
func TestAServerAloneKeepsTheGuard(t *testing.T) {
	t.Parallel()
	list, processes, tokens := guardedCluster(t)
	as := func(name, command string) string { return command + " --token-file " + filepath.Join(tokens, name) }
	note := filepath.Join(list[0].dir, "access.json")
	awaitCondition(t, "the guard is not noted", func() bool {
		text, err := os.ReadFile(note)
		return err == nil && strings.Contains(string(text), `"guarded"`)
	})
	for _, p := range processes {
		p.stopCleanly(t)
	}
	processes[0] = startProcess(t, list[0].commandLine()...)
	awaitCondition(t, "the server does not answer", func() bool {
		answer, err := http.Get(list[0].baseURL() + "/livez")
		return err == nil && answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	})
	playSteps(t, list[0], []step{
		{"allocation list --stale --timeout 6s", 6, "has not caught up"},
		{"revision list --stale --timeout 6s", 6, "has not caught up"},
		{"status --stale --timeout 6s", 6, "callers with cluster.read see why"},
	})
	for i := 1; i < len(list); i++ {
		processes[i] = startProcess(t, list[i].commandLine()...)
	}
	awaitReady(t, processes[0], list[0])
	playSteps(t, list[0], []step{
		{as("hans", "allocation list"), 0, ""},
		{"revision list --stale", 0, "filtered"},
	})
}

// subtreeWith is the text of cern:atlas with one more binding at physics.
func subtreeWith(role, account string) string {
	return strings.Replace(atlasText, "- {role: holder,", "- {role: "+role+", subjects: [\"account "+account+
		"\"]}\n      - {role: holder,", 1)
}

// TestRefusalsAreNotWritten: calls of callers without the right change nothing, and do not make the log longer either:
// otherwise anybody could fill the disks.
func TestRefusalsAreNotWritten(t *testing.T) {
	t.Parallel()
	list, _, tokens := guardedCluster(t)
	root := clientWithToken(t, tokenIn(t, tokens, "admin"), list...)
	written := func() uint64 {
		t.Helper()
		status, err := root.Cluster.GetStatus(t.Context(), &adminv1.GetStatusRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return status.GetCommitIndex()
	}
	if _, err := root.Allocations.Allocate(t.Context(), coresOfPhysics("of-root")); err != nil {
		t.Fatal(err)
	}
	before, calls := written(), 0
	for _, token := range []string{"", tokenIn(t, tokens, "carl")} {
		for _, f := range list {
			c := clientWithToken(t, token, f)
			for method, call := range callsWithoutRights(t.Context(), c) {
				calls++
				if code := connect.CodeOf(call()); !slices.Contains(refusalCodes, code) {
					t.Errorf("%s is answered %v", method, code)
				}
			}
		}
	}
	// The cluster writes for itself now and then, for example when its leader changes.
	if after := written(); after-before > uint64(calls)/4 {
		t.Errorf("%d refused calls wrote %d entries", calls, after-before)
	}
}

// refusalCodes are the codes of calls that are refused for their rights.
var refusalCodes = []connect.Code{connect.CodePermissionDenied, connect.CodeUnauthenticated, connect.CodeNotFound}

// callsWithoutRights may be made neither by anonymous callers nor by the administrator of cms.
func callsWithoutRights(ctx context.Context, c *client.Client) map[string]func() error {
	limits := map[string]*quoratev1.Limit{"cores": {Value: &quoratev1.Limit_Amount{Amount: 41}}}
	return map[string]func() error{
		"Allocate": func() error {
			_, err := c.Allocations.Allocate(ctx, coresOfPhysics("of-others"))
			return err
		},
		"Release": func() error {
			_, err := c.Allocations.Release(ctx, &quoratev1.ReleaseRequest{Id: "of-root"})
			return err
		},
		"Renew": func() error {
			_, err := c.Allocations.Renew(ctx, &quoratev1.RenewRequest{Id: "of-root", Fence: 1})
			return err
		},
		"SetLimits": func() error {
			_, err := c.Trees.SetLimits(ctx, &quoratev1.SetLimitsRequest{Tree: "cern", Node: "cms", Limits: limits})
			return err
		},
		"MoveNode": func() error {
			_, err := c.Trees.MoveNode(ctx, &quoratev1.MoveNodeRequest{Tree: "cern", Node: "cms", NewNode: "cms2"})
			return err
		},
		"ApplyTrees": func() error { // what it needs is known only with its plan
			_, err := c.Trees.ApplyTrees(ctx, &quoratev1.ApplyTreesRequest{
				Subtree: &quoratev1.SubtreeText{Tree: "cern", Node: "cms", Text: &quoratev1.Tree{
					Name: "cern", Resources: []*quoratev1.Resource{{Name: "cores", Unit: quoratev1.Unit_UNIT_COUNT}},
					Nodes: []*quoratev1.Node{{Path: "cms", Limits: limits}},
				}},
			})
			return err
		},
		"CreateAccount": func() error {
			_, err := c.Access.CreateAccount(ctx, &adminv1.CreateAccountRequest{Account: &adminv1.Account{Name: "evil"}})
			return err
		},
	}
}

// TestForeignIDsAndFences: who knows the id and the fence of another user's allocation, reservation or place in the
// queue can neither use nor see it, and cannot make one of its own there.
func TestForeignIDsAndFences(t *testing.T) {
	t.Parallel()
	list, _, tokens := guardedCluster(t)
	as := func(name, command string) string { return command + " --token-file " + filepath.Join(tokens, name) }
	at := " --at cern:atlas/physics --amount cores="
	playSteps(t, list[0], []step{
		{as("hans", "allocate --id lease --ttl 1h"+at+"1"), 0, "granted"},
		{as("hans", "allocate --id pending --reserve 1h"+at+"1"), 0, "reserved"},
		{as("hans", "allocate --id queued --wait 1h --async"+at+"40"), 9, ""},
	})
	for _, f := range list {
		playSteps(t, f, []step{
			{as("heidi", "renew lease --fence 1 --namespace account/hans"), 1, "no allocation"},
			{as("heidi", "release lease --namespace account/hans"), 1, "no allocation"},
			{as("heidi", "allocation confirm pending --namespace account/hans"), 1, "no allocation"},
			{as("heidi", "release pending --restore --namespace account/hans"), 1, "no allocation"},
			{as("heidi", "explain lease --namespace account/hans"), 1, "no allocation"},
			{as("heidi", "allocate --namespace account/hans --id lease --ttl 1h"+at+"1"), 4, "another namespace"},
			{as("heidi", "allocate --namespace account/hans --id unknown"+at+"1"), 4, "another namespace"},
			{as("heidi", "renew lease --fence 1"), 1, "no allocation"},
			{as("heidi", "allocation list"), 0, ""},
		})
	}
	end := runCommand(t, "allocation", "list", "--server", list[0].baseURL(), "--token-file",
		filepath.Join(tokens, "heidi"))
	if strings.Contains(end.stdout, "lease") || strings.Contains(end.stdout, "pending") {
		t.Errorf("heidi sees\n%s", end.stdout)
	}
	playSteps(t, list[0], []step{
		{as("hans", "renew lease --fence 1"), 0, ""},
		{as("hans", "allocation confirm pending"), 0, ""},
	})
}
