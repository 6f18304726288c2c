package activity

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/quota"
)

func showing(t *testing.T, bounds Bounds, patterns ...string) *scene {
	t.Helper()
	s := newScene(t, bounds)
	for _, text := range patterns {
		pattern, err := ParseNodePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		s.shown.patterns = append(s.shown.patterns, pattern)
	}
	return s
}

func (s *scene) nodeLines(t *testing.T) []string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(s.page(t)) {
		if strings.HasPrefix(line, "quorate_node") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

func (s *scene) expectNodeLines(t *testing.T, want ...string) {
	t.Helper()
	if got := strings.Join(s.nodeLines(t), "\n"); got != strings.Join(want, "\n") {
		t.Errorf("the page has\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// TestShownAdvisoryLimits: an advisory limit has a series of its own, and does not limit the headroom.
func TestShownAdvisoryLimits(t *testing.T) {
	s := showing(t, Bounds{}, "t:c")
	s.do(t, want("one", "c"), quota.SetLimits{Tree: "t", Node: "c", Limits: []quota.ResourceLimit{
		{Resource: "cores", Limit: quota.AdvisoryLimit(0)},
	}})
	s.tick(t, 0)
	s.expectNodeLines(t,
		`quorate_node_advisory_limit{node="c",resource="cores",tree="t"} 0`,
		`quorate_node_headroom{node="c",resource="cores",tree="t"} 1`,
		`quorate_node_used{node="c",resource="cores",tree="t"} 1`,
		`quorate_node_waiting{node="c",resource="cores",tree="t"} 0`,
		`quorate_nodes_left_out 0`)
}

// TestShownNodes: the page has limits, usage, headroom and waiting requests of the chosen nodes, and follows the
// configuration.
func TestShownNodes(t *testing.T) {
	s := showing(t, Bounds{}, "t", "t:a/*", "u*:x")
	s.do(t, want("one", "a/b"))
	s.do(t, waiting("two", "c"), waiting("three", "c"), waiting("four", "a/b")) // two is granted
	s.tick(t, 0)
	s.expectNodeLines(t,
		`quorate_node_headroom{node="",resource="cores",tree="t"} 0`,
		`quorate_node_headroom{node="a/b",resource="cores",tree="t"} 0`,
		`quorate_node_limit{node="",resource="cores",tree="t"} 2`,
		`quorate_node_used{node="",resource="cores",tree="t"} 2`,
		`quorate_node_used{node="a/b",resource="cores",tree="t"} 1`,
		`quorate_node_waiting{node="",resource="cores",tree="t"} 2`,
		`quorate_node_waiting{node="a/b",resource="cores",tree="t"} 1`,
		`quorate_nodes_left_out 0`)
	s.do(t, quota.Release{ID: "one"}, quota.Release{ID: "three"}, quota.Release{ID: "four"}, quota.ApplyTrees{
		Trees: []quota.TreeSpec{
			{
				Name: "t", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}},
				Nodes: []quota.NodeSpec{{}, {Path: "a"}, {Path: "c"}},
			},
			{
				Name: "u1", Resources: []quota.Resource{{Name: "disks", Unit: quota.Count}},
				Nodes: []quota.NodeSpec{{}, {Path: "x"}, {Path: "x/y"}},
			},
		},
	})
	s.tick(t, 0)
	s.expectNodeLines(t,
		`quorate_node_used{node="",resource="cores",tree="t"} 1`,
		`quorate_node_used{node="x",resource="disks",tree="u1"} 0`,
		`quorate_node_waiting{node="",resource="cores",tree="t"} 0`,
		`quorate_node_waiting{node="x",resource="disks",tree="u1"} 0`,
		`quorate_nodes_left_out 0`)
}

// TestShownNodesOfWaitingItems: items that requests wait for count like amounts.
func TestShownNodesOfWaitingItems(t *testing.T) {
	s := showing(t, Bounds{}, "i:*")
	s.do(t, quota.ApplyTrees{Trees: []quota.TreeSpec{{
		Name: "i",
		Resources: []quota.Resource{
			{Name: "machine", Unit: quota.Items, Items: &quota.ItemSpec{Names: []string{"m1"}}},
		},
		Nodes: []quota.NodeSpec{{}, {Path: "a"}},
	}}})
	for _, id := range []string{"one", "two"} {
		s.do(t, quota.Allocate{ID: id, Mode: quota.Wait, Claims: []quota.Claim{{
			Tree: "i", Node: "a", Picks: []quota.Pick{{Resource: "machine", Count: 1}},
		}}})
	}
	s.tick(t, 0)
	s.expectNodeLines(t,
		`quorate_node_used{node="a",resource="machine",tree="i"} 1`,
		`quorate_node_waiting{node="a",resource="machine",tree="i"} 1`,
		`quorate_nodes_left_out 0`)
}

// TestShownNodesAreBounded: nodes beyond the bounds are counted and not shown.
func TestShownNodesAreBounded(t *testing.T) {
	wide := func(nodes, resources int) quota.ApplyTrees {
		tree := quota.TreeSpec{Name: "w", Nodes: []quota.NodeSpec{{}}}
		for i := range nodes {
			tree.Nodes = append(tree.Nodes, quota.NodeSpec{Path: fmt.Sprintf("n%02d", i)})
		}
		for i := range resources {
			tree.Resources = append(tree.Resources, quota.Resource{Name: fmt.Sprintf("r%02d", i), Unit: quota.Count})
		}
		return quota.ApplyTrees{Trees: []quota.TreeSpec{tree}}
	}
	for _, test := range []struct {
		bounds             Bounds
		nodes, resources   int
		wantUsed, leftOver int
	}{
		{Bounds{Nodes: 9, Resources: 9, States: 9, Shown: 5, ShownPairs: 1000}, 7, 3, 15, 2},
		{Bounds{Nodes: 9, Resources: 9, States: 9, Shown: 50, ShownPairs: 10}, 7, 3, 9, 4},
		{Bounds{Nodes: 9, Resources: 9, States: 9, Shown: 50, ShownPairs: 21}, 7, 3, 21, 0},
	} {
		s := showing(t, test.bounds, "w:*")
		s.do(t, wide(test.nodes, test.resources))
		s.tick(t, 0)
		used := 0
		for _, line := range s.nodeLines(t) {
			if strings.HasPrefix(line, "quorate_node_used") {
				used++
			}
		}
		if used != test.wantUsed {
			t.Errorf("%+v: %d pairs are shown, want %d", test.bounds, used, test.wantUsed)
		}
		s.expectOnPage(t, fmt.Sprint("quorate_nodes_left_out ", test.leftOver))
	}
}

// TestCallersDoNotMakeShownNodes: a node that a request makes is not chosen, so callers cannot make the page larger.
func TestCallersDoNotMakeShownNodes(t *testing.T) {
	s := showing(t, Bounds{}, "y:*")
	s.do(t, quota.ApplyTrees{Trees: []quota.TreeSpec{{
		Name: "y", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}},
		Nodes: []quota.NodeSpec{{Policy: "project"}, {Path: "root"}},
	}}})
	made := want("made", "dynamic")
	made.Claims[0].Tree = "y"
	s.do(t, made)
	s.tick(t, 0)
	for _, line := range s.nodeLines(t) {
		if strings.Contains(line, "dynamic") {
			t.Errorf("the page has %s", line)
		}
	}
	if len(s.nodeLines(t)) != 3 {
		t.Errorf("the page has %q", s.nodeLines(t))
	}
}

func TestNodePatterns(t *testing.T) {
	for text, want := range map[string]string{
		"": "does not name a node", ":a": "does not name a node", "t:": "does not name a node", "t:a//b": "an empty name",
		"t:/a": "an empty name", "t:[a]": "only * stands for other characters", `t:\a`: "only *", "t?": "only *",
	} {
		if _, err := ParseNodePattern(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error that says %q", text, err, want)
		}
	}
	for _, test := range []struct {
		pattern, tree, node string
		matches             bool
	}{
		{"t", "t", "", true},
		{"t", "t", "a", false},
		{"t:*", "t", "a", true},
		{"t:*", "t", "", false},
		{"t:*", "t", "a/b", false},
		{"t:a/*", "t", "a/b", true},
		{"t:*/b", "t", "a/b", true},
		{"t:te*-1", "t", "team-1", true},
		{"*", "u", "", true},
		{"t*:a", "t2", "a", true},
		{"t*:a", "u", "a", false},
	} {
		p, err := ParseNodePattern(test.pattern)
		if err != nil || p.matches(test.tree, test.node) != test.matches {
			t.Errorf("%q matches %s:%s: want %t, %v", test.pattern, test.tree, test.node, test.matches, err)
		}
	}
}
