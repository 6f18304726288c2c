package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/gen/quorate/v1/quoratev1connect"
)

func serve(t *testing.T, path string, handler http.Handler) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// nodesOnly is a server that knows the nodes of a tree, parents before children.
type nodesOnly struct {
	quoratev1connect.UnimplementedTreeServiceHandler
	nodes []string
}

func (s *nodesOnly) GetUsage(_ context.Context, r *quoratev1.GetUsageRequest) (*quoratev1.GetUsageResponse, error) {
	answer, found := &quoratev1.GetUsageResponse{}, false
	for _, n := range s.nodes {
		below, isBelow := strings.CutPrefix(n, strings.TrimPrefix(r.GetNode()+"/", "/"))
		found = found || n == r.GetNode()
		if n == r.GetNode() || isBelow && !strings.Contains(below, "/") {
			answer.Nodes = append(answer.Nodes, &quoratev1.NodeUsage{Node: n})
		}
	}
	if !found {
		return nil, connectError(connect.CodeNotFound, "tree %s has no node %s", r.GetTree(), r.GetNode())
	}
	return answer, nil
}

// TestSimilarNodesAreSuggested: a misspelled part of a path is replaced by the name that was meant, if one is similar.
func TestSimilarNodesAreSuggested(t *testing.T) {
	path, handler := quoratev1connect.NewTreeServiceHandler(&nodesOnly{nodes: []string{
		"", "atlas", "atlas/physics", "atlas/physics/higgs", "cms",
	}})
	server := serve(t, path, handler)
	for line, want := range map[string]string{
		"cern:atlsa":                 "did you mean:             cern:atlas\n",
		"cern:atlas/phisics/higgs":   "did you mean:             cern:atlas/physics/higgs\n",
		"cern:atlas/physics/nothing": "",
		"cern:lhcb":                  "",
	} {
		code, _, stderr := runQuorate(server, "", "usage", line)
		hint := strings.Contains(stderr, "did you mean")
		if code != 1 || hint != (want != "") || !strings.Contains(stderr, want) {
			t.Errorf("usage %s: exit code %d, want 1 and %q in\n%s", line, code, want, stderr)
		}
	}
}

// recovering is a cluster of which one member answers again after some calls.
type recovering struct {
	adminv1connect.UnimplementedClusterServiceHandler
	calls, well int32
}

func (c *recovering) ListMembers(
	context.Context, *adminv1.ListMembersRequest,
) (*adminv1.ListMembersResponse, error) {
	one, two := fakeMember(1, adminv1.Seat_SEAT_VOTER), fakeMember(2, adminv1.Seat_SEAT_VOTER)
	one.Healthy, two.Healthy = true, atomic.AddInt32(&c.calls, 1) >= c.well
	if !two.GetHealthy() {
		two.Problem = "n2 does not answer"
	}
	return &adminv1.ListMembersResponse{
		LeaderId: "n1", Voters: 2, HealthyVoters: 2, Members: []*adminv1.Member{one, two},
	}, nil
}

// TestClusterWaitAsksAgain: the members are asked until all of them are healthy.
func TestClusterWaitAsksAgain(t *testing.T) {
	cluster := &recovering{well: 3}
	path, handler := adminv1connect.NewClusterServiceHandler(cluster)
	code, stdout, stderr := runQuorate(serve(t, path, handler), "", "cluster", "wait", "--voters", "2", "--healthy",
		"--timeout", "1m")
	if calls := atomic.LoadInt32(&cluster.calls); code != 0 || calls != 3 || !strings.Contains(stdout, "n2") {
		t.Errorf("exit code %d after %d calls, want 0 after 3\n%s%s", code, calls, stdout, stderr)
	}
	cluster = &recovering{well: 1 << 30}
	path, handler = adminv1connect.NewClusterServiceHandler(cluster)
	code, _, stderr = runQuorate(serve(t, path, handler), "", "cluster", "wait", "--healthy", "--timeout", "1s")
	if code != 8 || !strings.Contains(stderr, "n2 does not answer") {
		t.Errorf("exit code %d, want 8 and the member that has no data\n%s", code, stderr)
	}
}
