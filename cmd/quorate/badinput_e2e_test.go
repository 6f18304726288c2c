package main_test

import (
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// TestBadRequests sends every kind of invalid request to a real server and expects a clear error and no change of
// state.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	server := startServer(t, f)
	f.applyTree(t)
	f.allocateEach(t, "held")
	before := snapshotOf(t, f)
	allocate := func(change func(*quoratev1.AllocateRequest)) func() error {
		return func() error {
			r := oneClaim("x", 1)
			change(r)
			_, err := f.allocationClient().Allocate(t.Context(), r)
			return err
		}
	}
	apply := func(change func(*quoratev1.Tree)) func() error {
		return func() error {
			tree := smallTree()
			change(tree)
			_, err := f.treeClient().ApplyTrees(t.Context(),
				&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{tree}})
			return err
		}
	}
	curl := func(body string) func() error {
		return func() error {
			status, answer := httpPost(t, f.baseURL()+"/quorate.v1.AllocationService/Allocate", body)
			if status != 400 || !strings.Contains(answer, `"code":"invalid_argument"`) {
				return fmt.Errorf("HTTP %d %s", status, answer)
			}
			return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("%s", answer))
		}
	}
	for _, c := range []struct {
		name string
		call func() error
		code connect.Code
		says string
	}{
		{
			"unknown tree", allocate(func(r *quoratev1.AllocateRequest) { r.Claims[0].Tree = "u" }),
			connect.CodeNotFound, `no tree "u"`,
		},
		{
			"unknown node", allocate(func(r *quoratev1.AllocateRequest) { r.Claims[0].Node = "a/c" }),
			connect.CodeNotFound, `no node "a/c"`,
		},
		{"unknown resource", allocate(func(r *quoratev1.AllocateRequest) {
			r.Claims[0].Amounts = map[string]int64{"cpus": 1}
		}), connect.CodeNotFound, `no resource "cpus"`},
		{
			"negative amount", allocate(func(r *quoratev1.AllocateRequest) { r.Claims[0].Amounts["cores"] = -5 }),
			connect.CodeInvalidArgument, `claims[0].amounts["cores"]`,
		},
		{"overflowing amount", allocate(func(r *quoratev1.AllocateRequest) {
			r.Claims[0].Amounts["cores"] = math.MaxInt64
		}), connect.CodeInvalidArgument, "more than any request may name"},
		{
			"amount beyond 64 bits", curl(`{"id":"x","claims":[{"tree":"t","amounts":{"cores":"9223372036854775808"}}]}`),
			connect.CodeInvalidArgument, "9223372036854775808",
		},
		{
			"fractional amount", curl(`{"id":"x","claims":[{"tree":"t","amounts":{"cores":1.5}}]}`),
			connect.CodeInvalidArgument, "1.5",
		},
		{
			"amount in words", curl(`{"id":"x","claims":[{"tree":"t","amounts":{"cores":"five"}}]}`),
			connect.CodeInvalidArgument, "five",
		},
		{"unknown field", curl(`{"id":"x","claim":[]}`), connect.CodeInvalidArgument, `unknown field \"claim\"`},
		{"half a request", curl(`{"id":"x","claims":[{"tr`), connect.CodeInvalidArgument, "unexpected"},
		{
			"oversized request", curl(`{"id":"` + strings.Repeat("x", 5<<20) + `"}`), connect.CodeInvalidArgument,
			"larger than 4194304 bytes",
		},
		{"oversized label", allocate(func(r *quoratev1.AllocateRequest) {
			r.Labels = map[string]string{"l": strings.Repeat("x", 257)}
		}), connect.CodeInvalidArgument, "labels"},
		{"id of another request", allocate(func(r *quoratev1.AllocateRequest) {
			r.Id = "held"
			r.Claims[0].Amounts["cores"] = 2
		}), connect.CodeAlreadyExists, "other content"},
		{
			"duplicate node", apply(func(t *quoratev1.Tree) { t.Nodes = append(t.Nodes, &quoratev1.Node{Path: "a"}) }),
			connect.CodeInvalidArgument, `trees[0].nodes[2].path`,
		},
		{"duplicate resource", apply(func(t *quoratev1.Tree) {
			t.Resources = append(t.Resources, t.GetResources()[0])
		}), connect.CodeInvalidArgument, "trees[0].resources[1].name"},
		{"duplicate tree", func() error {
			_, err := f.treeClient().ApplyTrees(t.Context(),
				&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{smallTree(), smallTree()}})
			return err
		}, connect.CodeInvalidArgument, "trees[1].name"},
		{
			"a path in a circle", apply(func(t *quoratev1.Tree) { t.Nodes[1].Path = "a/../a" }),
			connect.CodeInvalidArgument, `".."`,
		},
		{
			"a node without its parent", apply(func(t *quoratev1.Tree) { t.Nodes[1].Path = "c/b" }),
			connect.CodeInvalidArgument, "c/b",
		},
		{
			"a malformed path", apply(func(t *quoratev1.Tree) { t.Nodes[1].Path = "/a" }),
			connect.CodeInvalidArgument, `"/a"`,
		},
		{
			"too deep a tree", apply(func(t *quoratev1.Tree) { t.Nodes[1].Path = "a" + strings.Repeat("/a", 16) }),
			connect.CodeInvalidArgument, "17 levels",
		},
		{
			"unknown policy", apply(func(t *quoratev1.Tree) { t.Policy = "lenient" }),
			connect.CodeInvalidArgument, "lenient",
		},
		{"limit of an unknown resource", apply(func(t *quoratev1.Tree) {
			t.Limits = map[string]*quoratev1.Limit{"cpus": t.GetLimits()["cores"]}
		}), connect.CodeInvalidArgument, "cpus"},
		{"negative limit", apply(func(t *quoratev1.Tree) {
			t.Limits = map[string]*quoratev1.Limit{"cores": {Value: &quoratev1.Limit_Amount{Amount: -1}}}
		}), connect.CodeInvalidArgument, `limits["cores"]`},
		{
			"a node that is in use", apply(func(t *quoratev1.Tree) { t.Nodes = nil }),
			connect.CodeFailedPrecondition, "release",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.call(); connect.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %s saying %q", err, c.code, c.says)
			}
			if after := snapshotOf(t, f); !proto.Equal(before, after) {
				t.Errorf("it changed %v to %v", before, after)
			}
		})
	}
	server.stopCleanly(t)
}

func snapshotOf(t *testing.T, f serverFlags) *quoratev1.ListAllocationsResponse {
	t.Helper()
	tree, err := f.treeClient().GetTree(t.Context(), &quoratev1.GetTreeRequest{Name: "t"})
	if err != nil {
		t.Fatal(err)
	}
	held, err := f.allocationClient().ListAllocations(t.Context(), &quoratev1.ListAllocationsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	held.NextPageToken, held.Read = tree.GetTree().String()+fmt.Sprint(tree.GetRevision()), nil
	return held
}

// TestBadStarts starts servers that must refuse to start. Each prints the reason in one line and exits with code 1, or
// with 2 if its settings are invalid.
func TestBadStarts(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	server := startServer(t, f)
	f.applyTree(t)
	f.allocateEach(t, "held")
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = busy.Close() }()
	other := func(change func(*serverFlags)) []string {
		o := singleServer(t)
		change(&o)
		return o.commandLine()
	}
	const failure, usage = 1, 2
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{
			"a second server on the same folder", other(func(o *serverFlags) { o.dir = f.dir }), failure,
			"is in use by another server",
		},
		{
			"another id on the same folder", other(func(o *serverFlags) { o.dir, o.id = f.dir, "n2" }), failure,
			`belongs to node "n1"`,
		},
		{"another cluster on the same folder", other(func(o *serverFlags) {
			o.dir, o.more = f.dir, []string{"--cluster-name", "x"}
		}), failure, `belongs to cluster "quorate"`},
		{
			"the API's port is in use", other(func(o *serverFlags) { o.http = busy.Addr().String() }),
			failure, "--http-addr",
		},
		{
			"raft's port is in use", other(func(o *serverFlags) { o.raft = busy.Addr().String() }), failure,
			busy.Addr().String(),
		},
		{
			"the port of gossip is in use", other(func(o *serverFlags) { o.gossip = busy.Addr().String() }), failure,
			busy.Addr().String(),
		},
		{"the port of profiles is in use", other(func(o *serverFlags) {
			o.more = []string{"--pprof-addr", busy.Addr().String()}
		}), failure, busy.Addr().String()},
		{"no id", other(func(o *serverFlags) { o.id = "" }), usage, "set --id, QUORATE_SERVER_ID"},
		{"a bad id", other(func(o *serverFlags) { o.id = "n 1" }), failure, `"n 1"`},
		{"no folder", other(func(o *serverFlags) { o.dir = "" }), usage, "set --data-dir, QUORATE_SERVER_DATA_DIR"},
		{"a folder that is a file", other(func(o *serverFlags) { o.dir = binary }), failure, "not a directory"},
		{
			"an even number of nodes", other(func(o *serverFlags) { o.more = []string{"--bootstrap-expect", "2"} }),
			failure, "allowed are 1, 3, 5 or 7",
		},
		{
			"an address without a port", other(func(o *serverFlags) { o.raft = "127.0.0.1" }), usage,
			`raft-addr is "127.0.0.1"`,
		},
		{
			"an unknown log level", other(func(o *serverFlags) { o.more = []string{"--log-level", "loud"} }), usage,
			"loud",
		},
		{"a file that is not there", []string{"server", "run", "--config", "/nowhere.yaml"}, usage, "/nowhere.yaml"},
		{
			"half a file",
			[]string{"server", "run", "--config", writeConfig(t, "id: n1\njoin: [\"127.0.0.1:1\"\n")},
			usage, ".yaml:2:",
		},
		{
			"a typo in the file",
			[]string{"server", "run", "--config", writeConfig(t, "id: n1\ndata_dir: x\n")},
			usage,
			".yaml:2:1: unknown field \"data_dir\"",
		},
		{"a wrong type in the file", []string{
			"server", "run", "--config",
			writeConfig(t, "id: n1\nbootstrap-expect: three\n"),
		}, usage, ".yaml:2:19:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			end := runCommand(t, c.args...)
			if end.code != c.code || !strings.Contains(end.stderr, c.says) {
				t.Errorf("exit code %d, %q; want %d and %q", end.code, end.stderr, c.code, c.says)
			}
			if lines := strings.Count(strings.TrimSpace(end.stderr), "\n"); lines > 0 {
				t.Errorf("%d lines instead of one:\n%s", lines+1, end.stderr)
			}
		})
	}
	if f.usedCores(t) != 1 {
		t.Error("the server that runs was disturbed")
	}
	server.stopCleanly(t)
}

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "quorate.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
