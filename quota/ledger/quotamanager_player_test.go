package ledger_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

type managerCase struct {
	Mode  string
	Trees []managerTree
	Ops   []managerOp
}

type managerTree struct {
	Metadata struct{ Name string }
	Spec     struct {
		ResourceNames []string
		Nodes         map[string]managerNode
	}
}

type managerNode struct {
	Parent, Hard string
	Quota        map[string]string
}

type managerOp struct {
	Do, Tree, ID, Node, To, Mode string
	Spec                         json.RawMessage
	Text                         string
}

type managerConsumer struct {
	Spec struct {
		ID    string
		Trees []struct {
			TreeName, GroupID string
			Request           map[string]int64
			Priority, Type    int64
			UnPreemptable     bool
		}
	}
}

// managerAnswer is what the quota manager answered, and how it stood afterwards if that had changed.
type managerAnswer struct {
	Setup, OK bool
	Preempted []string
	State     map[string]json.RawMessage
}

type manager struct {
	t         *testing.T
	ledger    *ledger.Ledger
	now       quota.Instant
	trees     map[string]managerTree       // as edited
	paths     map[string]map[string]string // of the nodes in the ledger, by tree and name
	consumers map[string]managerConsumer
	forced    bool
	moves     []quota.Move // of the next update
	try       string       // the id of the last try
}

func newManager(t *testing.T, c managerCase) *manager {
	t.Helper()
	bounds := quota.DefaultBounds()
	bounds.TombstoneSpan = 100
	m := &manager{
		t: t, ledger: ledger.New(bounds), trees: map[string]managerTree{},
		paths: map[string]map[string]string{}, consumers: map[string]managerConsumer{}, forced: c.Mode == "maintenance",
	}
	for _, tree := range c.Trees {
		m.addTree(tree)
	}
	return m
}

func (m *manager) apply(c quota.Command) ledger.Outcome {
	out := m.ledger.Apply(quota.Stamp{At: m.now}, c)
	if err := m.ledger.Check(); err != nil {
		m.t.Fatalf("%+v: %v", c, err)
	}
	return out
}

func (m *manager) play(op managerOp) (bool, []string) {
	switch op.Do {
	case "addTree":
		var tree managerTree
		if json.Unmarshal([]byte(op.Text), &tree) != nil {
			return false, nil
		}
		return m.addTree(tree), nil
	case "addConsumer":
		return m.addConsumer(op), nil
	case "removeConsumer":
		delete(m.consumers, op.ID)
		return true, nil
	case "setMode":
		m.forced = op.Mode == "maintenance"
		return true, nil
	case "cacheSetNode":
		var n managerNode
		if err := json.Unmarshal(op.Spec, &n); err != nil {
			m.t.Fatal(err)
		}
		m.edit(op.Tree, op.Node, op.Node, func(nodes map[string]managerNode) { nodes[op.Node] = n })
		return true, nil
	case "cacheDeleteNode":
		m.edit(op.Tree, op.Node, op.Node, func(nodes map[string]managerNode) { delete(nodes, op.Node) })
		return true, nil
	case "cacheRenameNode":
		m.edit(op.Tree, op.Node, op.To, func(nodes map[string]managerNode) { rename(nodes, op.Node, op.To) })
		return true, nil
	case "updateTree":
		defer func() { m.moves = nil }()
		return m.addTree(m.trees[op.Tree]), nil
	case "isAllocated":
		a, refused := m.ledger.Reader().Allocation(op.ID)
		return refused == nil && !a.Ended, nil
	case "deAllocate", "deAllocateForest":
		out := m.apply(quota.Release{ID: op.ID})
		return out.Refused == nil && !out.Repeated, nil
	case "undoAllocate", "undoAllocateForest":
		return m.undo(op.ID), nil
	case "list":
		return true, nil
	case "allocate", "allocateForest", "tryAllocate", "tryAllocateForest":
		return m.allocate(op)
	}
	m.t.Fatalf("what is the call %q?", op.Do)
	return false, nil
}

// edit changes the nodes of a tree before its next update, and notes which of them move. One of them may get another
// name.
func (m *manager) edit(tree, from, to string, change func(map[string]managerNode)) {
	nodes, names := m.trees[tree].Spec.Nodes, map[string]string{}
	for node := range nodes {
		names[m.path(tree, node)] = node
	}
	change(nodes)
	for _, path := range slices.Sorted(maps.Keys(names)) {
		node := names[path]
		if node == from {
			node = to
		}
		if _, still := nodes[node]; still && m.path(tree, node) != path {
			m.moves = append(m.moves, quota.Move{From: path, To: m.path(tree, node)})
		}
	}
}

func rename(nodes map[string]managerNode, from, to string) {
	nodes[to] = nodes[from]
	delete(nodes, from)
	for name, n := range nodes {
		if n.Parent == from {
			n.Parent = to
			nodes[name] = n
		}
	}
}

func (m *manager) addConsumer(op managerOp) bool {
	text := op.Text
	if text == "" {
		text = string(op.Spec)
	}
	var c managerConsumer
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		m.t.Fatal(err)
	}
	m.consumers[c.Spec.ID] = c
	return true
}

// allocate waits until tombstones are gone: the quota manager lets an id be used again at once.
func (m *manager) allocate(op managerOp) (bool, []string) {
	try := strings.HasPrefix(op.Do, "try")
	if try && m.forced && !strings.HasSuffix(op.Do, "Forest") {
		return false, nil
	}
	m.now += 1000
	request := quota.Allocate{ID: op.ID, Claims: m.claims(op)}
	switch {
	case m.forced:
		request.Mode = quota.Force
	case try:
		request.Mode, request.ReserveFor, m.try = quota.Reserve, 1000, op.ID
	}
	out := m.apply(request)
	if out.Decision == nil {
		return false, nil
	}
	var preempted []string
	for _, p := range out.Decision.Preempted {
		preempted = append(preempted, p.ID)
	}
	return out.Decision.Granted, preempted
}

// undo takes the last try back, which may have been refused.
func (m *manager) undo(id string) bool {
	if m.forced || m.try != id {
		return false
	}
	m.try = ""
	m.apply(quota.Cancel{ID: id})
	return true
}

func (m *manager) claims(op managerOp) []quota.Claim {
	var claims []quota.Claim
	for _, tree := range m.consumers[op.ID].Spec.Trees {
		if op.Tree != "" && op.Tree != tree.TreeName {
			continue
		}
		c := quota.Claim{Tree: tree.TreeName, Node: m.path(tree.TreeName, tree.GroupID)}
		c.Standing = quota.Standing{Priority: tree.Priority, Type: tree.Type, Unpreemptable: tree.UnPreemptable}
		for _, r := range slices.Sorted(maps.Keys(tree.Request)) {
			c.Amounts = append(c.Amounts, quota.Component{Resource: r, Amount: quota.Amount(tree.Request[r])})
		}
		claims = append(claims, c)
	}
	return claims
}

func (m *manager) path(tree, name string) string {
	n, known := m.trees[tree].Spec.Nodes[name]
	switch {
	case !known:
		return name
	case n.Parent == "" || n.Parent == "nil":
		return ""
	}
	return strings.TrimPrefix(m.path(tree, n.Parent)+"/"+name, "/")
}

func (m *manager) addTree(tree managerTree) bool {
	name := tree.Metadata.Name
	m.trees[name] = tree
	m.paths[name] = map[string]string{}
	spec := quota.TreeSpec{Name: name, Moves: m.moves}
	for _, r := range slices.Sorted(slices.Values(tree.Spec.ResourceNames)) {
		spec.Resources = append(spec.Resources, quota.Resource{Name: r, Unit: quota.Count})
	}
	for _, node := range m.connected(name) {
		n := tree.Spec.Nodes[node]
		hard, _ := strconv.ParseBool(n.Hard) // missing is soft
		ours := quota.NodeSpec{Path: m.path(name, node), Hard: hard}
		m.paths[name][node] = ours.Path
		if ours.Path == "" {
			ours.Policy = "borrowing"
		}
		for _, r := range slices.Sorted(maps.Keys(n.Quota)) {
			amount, err := strconv.Atoi(n.Quota[r])
			if err != nil {
				m.t.Fatal(err)
			}
			ours.Limits = append(ours.Limits,
				quota.ResourceLimit{Resource: r, Limit: quota.AtMost(quota.Amount(amount))})
		}
		spec.Nodes = append(spec.Nodes, ours)
	}
	slices.SortFunc(spec.Nodes, func(a, b quota.NodeSpec) int { return strings.Compare(a.Path, b.Path) })
	out := m.apply(quota.ApplyTrees{Trees: []quota.TreeSpec{spec}})
	if out.Refused != nil {
		m.t.Fatal(out.Refused)
	}
	return true
}

// connected are the nodes from which a way leads up to a root; the quota manager leaves the others out.
func (m *manager) connected(tree string) []string {
	nodes := m.trees[tree].Spec.Nodes
	var list []string
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		n, known := nodes[node]
		for known && n.Parent != "" && n.Parent != "nil" {
			n, known = nodes[n.Parent]
		}
		if known {
			list = append(list, node)
		}
	}
	return list
}

// state has a line for every node: what is held in its subtree, and who is counted there, in order.
func (m *manager) state() []string {
	var lines []string
	for name, paths := range m.paths {
		for node, path := range paths {
			page, refused := m.ledger.Reader().Usage(quota.UsageQuery{Tree: name, Node: path, Max: 1})
			if refused != nil {
				m.t.Fatal(refused)
			}
			var amounts []quota.Amount
			for _, r := range page.Nodes[0].Resources {
				amounts = append(amounts, r.Subtree)
			}
			lines = append(lines, fmt.Sprint(name, " ", node, " ", amounts, " ", ledger.Sitting(m.ledger.Reader(), name, path)))
		}
	}
	slices.Sort(lines)
	return lines
}

func stateOf(t *testing.T, recorded map[string]json.RawMessage) []string {
	t.Helper()
	var lines []string
	for name, text := range recorded {
		if name == "lost" {
			continue
		}
		var tree struct {
			Nodes map[string]struct {
				Alloc     []int64
				Consumers []string
			}
		}
		if err := json.Unmarshal(text, &tree); err != nil {
			t.Fatal(err)
		}
		for node, n := range tree.Nodes {
			lines = append(lines, fmt.Sprint(name, " ", node, " ", n.Alloc, " ", n.Consumers))
		}
	}
	slices.Sort(lines)
	return lines
}
