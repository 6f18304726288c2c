package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"

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

// recovering is a cluster whose leader believes that all members are healthy. One of them answers again after some
// calls.
type recovering struct {
	quoratev1connect.UnimplementedClusterServiceHandler
	calls, well int32
}

func (c *recovering) ListMembers(
	context.Context, *quoratev1.ListMembersRequest,
) (*quoratev1.ListMembersResponse, error) {
	one, two := fakeMember(1, quoratev1.Seat_SEAT_VOTER), fakeMember(2, quoratev1.Seat_SEAT_VOTER)
	one.Healthy, two.Healthy = true, true
	return &quoratev1.ListMembersResponse{
		LeaderId: "n1", Voters: 2, HealthyVoters: 2, Members: []*quoratev1.MemberHealth{one, two},
	}, nil
}

func (c *recovering) GetStatus(context.Context, *quoratev1.GetStatusRequest) (*quoratev1.GetStatusResponse, error) {
	call := atomic.AddInt32(&c.calls, 1)
	two := &quoratev1.Member{Id: "n2", Reachable: call > 1}
	if call >= c.well {
		two.LastIndex = 7
	}
	return &quoratev1.GetStatusResponse{
		Members: []*quoratev1.Member{{Id: "n1", Reachable: true, LastIndex: 7}, two},
	}, nil
}

// TestClusterWaitAsksTheMembers: the view of the leader is older than the command, so that the members are asked until
// they answer and have data.
func TestClusterWaitAsksTheMembers(t *testing.T) {
	cluster := &recovering{well: 3}
	path, handler := quoratev1connect.NewClusterServiceHandler(cluster)
	code, stdout, stderr := runQuorate(serve(t, path, handler), "", "cluster", "wait", "--voters", "2", "--healthy",
		"--timeout", "1m")
	if calls := atomic.LoadInt32(&cluster.calls); code != 0 || calls != 3 || !strings.Contains(stdout, "n2") {
		t.Errorf("exit code %d after %d calls, want 0 after 3\n%s%s", code, calls, stdout, stderr)
	}
	cluster = &recovering{well: 1 << 30}
	path, handler = quoratev1connect.NewClusterServiceHandler(cluster)
	code, _, stderr = runQuorate(serve(t, path, handler), "", "cluster", "wait", "--healthy", "--timeout", "1s")
	if code != 8 || !strings.Contains(stderr, "n2 has no data") && !strings.Contains(stderr, "n2 does not answer") {
		t.Errorf("exit code %d, want 8 and the member that has no data\n%s", code, stderr)
	}
}
