package conformance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/verify"
)

// randomTree is a tree whose nodes are called n1, n2 and so on, wherever they are.
type randomTree struct {
	*quoratev1.Tree
	limits map[string]int64 // by path, of the limited ones
	count  int
}

func amount(n int64) map[string]*quoratev1.Limit {
	return map[string]*quoratev1.Limit{"r": {Value: &quoratev1.Limit_Amount{Amount: n}}}
}

// drawTree draws a tree of up to four levels in which the limits of children add up to at most their parent's.
func drawTree(t *rapid.T) *randomTree {
	tree := &randomTree{
		Tree: &quoratev1.Tree{
			Name: "t", Policy: rapid.SampledFrom([]string{"strict", "nested"}).Draw(t, "policy"),
			Resources: []*quoratev1.Resource{{Name: "r", Unit: quoratev1.Unit_UNIT_COUNT}},
		},
		limits: map[string]int64{},
	}
	limit := rapid.Int64Range(-1, 100).Draw(t, "limit")
	if limit >= 0 {
		tree.Limits, tree.limits[""] = amount(limit), limit
	} else {
		tree.Limits = map[string]*quoratev1.Limit{"r": {Value: &quoratev1.Limit_Unlimited{Unlimited: true}}}
		limit = 1000
	}
	tree.draw(t, "", limit, 4)
	return tree
}

func (tree *randomTree) draw(t *rapid.T, above string, room int64, depth int) {
	for range rapid.IntRange(0, 3).Draw(t, "children") {
		if depth == 0 || tree.count == 30 {
			return
		}
		tree.count++
		path := strings.TrimPrefix(fmt.Sprintf("%s/n%d", above, tree.count), "/")
		node := &quoratev1.Node{Path: path}
		limit := rapid.Int64Range(0, room).Draw(t, "limit")
		if rapid.Bool().Draw(t, "set") {
			node.Limits = amount(limit)
		} else {
			limit = 0 // what unset means
		}
		tree.Nodes, tree.limits[path] = append(tree.Nodes, node), limit
		room -= limit
		tree.draw(t, path, limit, depth-1)
	}
}

func toldOf(t *testing.T, url, project string) int64 {
	t.Helper()
	status, text := call(t, http.MethodGet, url+"/keystone/v3/limits?service_id=t&resource_name=r&project_id="+project, "")
	var body struct {
		Limits []struct {
			Limit int64 `json:"resource_limit"`
		} `json:"limits"`
	}
	if err := json.Unmarshal([]byte(text), &body); err != nil || status != http.StatusOK || len(body.Limits) != 1 {
		t.Fatalf("%d %s: %v", status, text, err)
	}
	return body.Limits[0].Limit
}

// TestSharesKeepEveryLimit: projects of a strict tree that all use what they are told exceed no limit, at any depth,
// with and without claims in the ledger. Without any they leave nothing unused.
func TestSharesKeepEveryLimit(t *testing.T) {
	cluster, url := startServer(t)
	claims := 0
	verify.Check(t, func(rt *rapid.T) {
		tree := drawTree(rt)
		applyTree(t, cluster, tree.Tree)
		held := ""
		if len(tree.GetNodes()) > 0 && rapid.Bool().Draw(rt, "claim") {
			claims++
			held = fmt.Sprint("c", claims)
			hold(t, cluster, held, tree.GetNodes()[rapid.IntRange(0, len(tree.GetNodes())-1).Draw(rt, "node")].GetPath())
		}
		below := map[string]int64{}
		for _, node := range tree.GetNodes() {
			path := node.GetPath()
			names := strings.Split(path, "/")
			limit := toldOf(t, url, names[len(names)-1])
			below[""] += limit
			for i := range names {
				below[strings.Join(names[:i+1], "/")] += limit
			}
		}
		for path, limit := range tree.limits {
			if below[path] > limit {
				rt.Errorf("what projects below %q are told adds up to %d, above the limit %d", path, below[path], limit)
			}
			if path != "" && held == "" && below[path] != limit {
				rt.Errorf("what projects at and below %q are told adds up to %d of %d", path, below[path], limit)
			}
		}
		if held != "" {
			release(t, cluster, held)
		}
	})
}

func applyTree(t *testing.T, cluster *client.Client, tree *quoratev1.Tree) {
	t.Helper()
	r := &quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{tree}, Prune: true}
	if _, err := cluster.Trees.ApplyTrees(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

// hold allocates one of the resource at a node, if that is possible.
func hold(t *testing.T, cluster *client.Client, id, node string) {
	t.Helper()
	_, err := cluster.Allocations.Allocate(t.Context(), &quoratev1.AllocateRequest{
		Id: id, Claims: []*quoratev1.Claim{{Tree: "t", Node: node, Amounts: map[string]int64{"r": 1}}},
	})
	if err != nil {
		t.Logf("not held: %v", err)
	}
}

func release(t *testing.T, cluster *client.Client, id string) {
	t.Helper()
	if _, err := cluster.Allocations.Release(t.Context(), &quoratev1.ReleaseRequest{Id: id}); err != nil {
		t.Logf("not released: %v", err)
	}
}

// TestNumbers: what a project is told under policies that allow overcommitment, in trees whose use is in the ledger,
// and where policies are mixed.
func TestNumbers(t *testing.T) {
	cluster, url := startServer(t)
	const tree = `trees: {t: {policy: %s, labels: %s, resources: {r: {unit: count}}, limits: {r: 100}, nodes: {` +
		`a: {limits: {r: 40}, nodes: {b: {limits: {r: 10}}, c: {limits: {r: 20}}}}, d: {%s}}}}`
	for i, c := range []struct {
		policy, labels, d string
		want              map[string]int64
	}{
		{"strict", "{}", "limits: {r: 60}", map[string]int64{"a": 10, "b": 10, "c": 20, "d": 60}},
		{"strict", "{keystone/usage: ledger}", "limits: {r: 60}", map[string]int64{"a": 37, "b": 10, "c": 20, "d": 60}},
		{"capped", "{}", "limits: {r: 90}", map[string]int64{"a": 37, "b": 10, "c": 20, "d": 90}},
		{"capped", "{}", "", map[string]int64{"a": 37, "b": 10, "c": 20, "d": 97}},
		{"open", "{}", "limits: {r: 500}", map[string]int64{"a": 37, "b": 10, "c": 20, "d": 97}},
		{"loose", "{}", "limits: {r: 60}", map[string]int64{"a": 37, "b": 10, "c": 20, "d": 60}},
		{"tight", "{}", "limits: {r: 60}", map[string]int64{"a": 10, "b": 10, "c": 20, "d": 60}},
		{
			"capped", "{}", "limits: {r: 60}, policy: strict, nodes: {e: {limits: {r: 50}}}",
			map[string]int64{"a": 37, "d": 60, "e": 50},
		},
	} {
		apply(t, cluster, "policies: {loose: {base: strict, sum: unchecked}, tight: {base: open, sum: within-limit}}\n"+
			fmt.Sprintf(tree, c.policy, c.labels, c.d))
		_, err := cluster.Allocations.Allocate(t.Context(), &quoratev1.AllocateRequest{
			Id: fmt.Sprint("held", i), Claims: []*quoratev1.Claim{{Tree: "t", Node: "a/b", Amounts: map[string]int64{"r": 3}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		for project, want := range c.want {
			if got := toldOf(t, url, project); got != want {
				t.Errorf("%s %s %s: %s is told %d, want %d", c.policy, c.labels, c.d, project, got, want)
			}
		}
		release(t, cluster, fmt.Sprint("held", i))
	}
}

// TestTwoTreesOfOneService: a service is told nothing if two trees answer for the same resource.
func TestTwoTreesOfOneService(t *testing.T) {
	cluster, url := startServer(t)
	apply(t, cluster, `trees:
  one: {labels: {keystone/service: s}, resources: {r: {unit: count}}, nodes: {p: {}}}
  two: {labels: {keystone/service: s}, resources: {r: {unit: count}}, nodes: {p: {}}}
  three: {labels: {keystone/service: s, keystone/region: north}, resources: {r: {unit: count}}, nodes: {p: {}}}
`)
	status, text := call(t, http.MethodGet, url+"/keystone/v3/limits?service_id=s&project_id=p", "")
	if status != http.StatusConflict || !strings.Contains(text, "trees one and two both limit r of service s") {
		t.Errorf("%d %s", status, text)
	}
	status, text = call(t, http.MethodGet, url+"/keystone/v3/limits?service_id=s&region_id=north&project_id=p", "")
	if status != http.StatusOK || !strings.Contains(text, `"id":"three:p:r"`) {
		t.Errorf("%d %s", status, text)
	}
	const body = `{"registered_limits": [{"service_id": "s", "region_id": "north", "resource_name": "x", "default_limit": 1}]}`
	status, text = call(t, http.MethodPost, url+"/keystone/v3/registered_limits", body)
	if status != http.StatusCreated || !strings.Contains(text, `"id":"three:x"`) {
		t.Errorf("%d %s", status, text)
	}
	if status, text = call(t, http.MethodGet, url+"/keystone/v3/services", ""); strings.Count(text, `"id":"s"`) != 1 {
		t.Errorf("%d %s", status, text)
	}
}
