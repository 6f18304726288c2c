package quota_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/compat/quotamanager/quota"
)

// recordings are calls of the library with its answers; quota/ledger plays the same on its own calls. Among them are
// the walk-throughs of the library's documentation: walk-tree, walk-forest and walk-cache.
const recordings = "../../../quota/ledger/testdata/quotamanager"

type call struct {
	Do, Tree, Forest, ID, Node, To, Mode, Text string
	Spec                                       json.RawMessage
}

type recording struct {
	Mode    string
	Trees   []quota.JQuotaTree
	Forests []struct {
		Name  string
		Trees []string
	}
	Ops []call
}

// reply is what the library answered to a call, and the trees after it if they had changed.
type reply struct {
	Setup, OK bool
	Preempted []string
	State     map[string]json.RawMessage
}

// fault says where the Manager answers otherwise than the library, on purpose.
type fault struct {
	why      string
	opposite []int // calls whose answer is the opposite
	from     int   // the first call after which lines differ
	until    int   // the first one after which they do not
	lines    map[string]string
	ends     int // the first call that is not made
}

var faults = map[string]fault{
	"rename-chain": {
		why:  "renames compose, so the consumer stays at its node",
		from: 6, until: 99, lines: map[string]string{"T R [2] [a]": "T R [2] []", "T X2 [0] []": "T X2 [1] [a]"},
	},
	"walk-cache": {why: "a node that a claim belongs to is not removed", opposite: []int{11}, ends: 12},
	"lost-victim": {
		why:      "a refused request changes nothing: h keeps its place, and can still be released",
		opposite: []int{9}, from: 5, until: 9,
		lines: map[string]string{"T H [0] []": "T H [2] [h]", "T R [4] []": "T R [6] []"},
	},
	"maintenance": {
		why:      "all trees or none, also when forced: f is held nowhere; a try is for the Normal mode",
		opposite: []int{8, 10, 11, 13}, from: 7, until: 99,
		lines: map[string]string{
			"TB B1 [1] [f]": "TB B1 [0] []", "TB RB [1] []": "TB RB [0] []",
			"TB B1 [2] [f h]": "TB B1 [0] []", "TB RB [2] []": "TB RB [0] []",
			"TA A2 [1] [h]": "TA A2 [0] []", "TA RA [11] [b]": "TA RA [10] [b]",
			"TA A2 [1] [h z]": "TA A2 [0] [z]", "TA RA [2] [b]": "TA RA [1] [b]",
		},
	},
	"readme-documents": {why: `the key "trees:" of the README's consumer is an error`, opposite: []int{2, 4}},
}

// TestRecordedCalls makes the recorded calls on a real server and compares answers, preempted consumers, usage and the
// node of every consumer after each call. All recordings use one cluster, so many ids have been used before.
func TestRecordedCalls(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(recordings + "/*.json")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d recordings: %v", len(files), err)
	}
	cluster := startCluster(t)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { clearCluster(t, cluster) })
			makeCalls(t, cluster, readRecording(t, file), readReplies(t, file+"l"), faults[name])
		})
	}
}

func readRecording(t *testing.T, file string) recording {
	t.Helper()
	var r recording
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func readReplies(t *testing.T, file string) []reply {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var replies []reply
	state := map[string]json.RawMessage{}
	for line := range bytes.Lines(text) {
		var r reply
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if r.State == nil {
			r.State = state
		}
		state = r.State
		if !r.Setup {
			replies = append(replies, r)
		}
	}
	return replies
}

func makeCalls(t *testing.T, cluster *client.Client, r recording, replies []reply, f fault) {
	t.Helper()
	m := setUp(t, cluster, r)
	if len(r.Ops) != len(replies) {
		t.Fatalf("%d calls but %d answers", len(r.Ops), len(replies))
	}
	if f.ends > 0 {
		r.Ops = r.Ops[:f.ends]
	}
	unordered := cmp.Options{cmpopts.EquateEmpty(), cmpopts.SortSlices(strings.Compare)}
	for i, c := range r.Ops {
		want := replies[i]
		if slices.Contains(f.opposite, i) {
			want.OK = !want.OK
		}
		ok, preempted := makeCall(t, m, c)
		if ok != want.OK {
			t.Errorf("call %d, %s %s: answered %t, want %t (%s)", i, c.Do, c.ID, ok, want.OK, f.why)
		}
		if diff := cmp.Diff(want.Preempted, preempted, unordered); diff != "" {
			t.Errorf("call %d, %s %s: preempted (-want +got):\n%s", i, c.Do, c.ID, diff)
		}
		lines := linesOf(t, want.State)
		for j, line := range lines {
			if ours, known := f.lines[line]; known && i >= f.from && i < f.until {
				lines[j] = ours
			}
		}
		if slices.Contains(f.opposite, i) && c.Do == "updateTree" {
			continue // the library changed the tree, and the Manager refused to
		}
		if diff := cmp.Diff(lines, presentLines(m), unordered); diff != "" {
			t.Fatalf("call %d, %s %s: the trees (-want +got):\n%s", i, c.Do, c.ID, diff)
		}
	}
}

func setUp(t *testing.T, cluster *client.Client, r recording) *quota.Manager {
	t.Helper()
	m := newManager(t, cluster)
	for _, tree := range r.Trees {
		if _, err := m.AddTreeFromStruct(tree); err != nil {
			t.Fatal(err)
		}
	}
	for _, forest := range r.Forests {
		if err := m.AddForest(forest.Name); err != nil {
			t.Fatal(err)
		}
		for _, tree := range forest.Trees {
			if err := m.AddTreeToForest(forest.Name, tree); err != nil {
				t.Fatal(err)
			}
		}
	}
	if r.Mode == "maintenance" {
		m.SetMode(quota.Maintenance)
	}
	return m
}

// makeCall returns whether a call succeeded, and which consumers were preempted.
func makeCall(t *testing.T, m *quota.Manager, c call) (bool, []string) {
	t.Helper()
	allocating := map[string]func(place, id string) (*quota.AllocationResponse, error){
		"allocate": m.Allocate, "tryAllocate": m.TryAllocate,
		"allocateForest": m.AllocateForest, "tryAllocateForest": m.TryAllocateForest,
	}
	if allocate, found := allocating[c.Do]; found {
		response, err := allocate(c.Tree+c.Forest, c.ID)
		if err != nil {
			t.Logf("%s %s: %v", c.Do, c.ID, err)
			return false, nil
		}
		return response.IsAllocated() && response.GetConsumerID() == c.ID, response.GetPreemptedIds()
	}
	simple := map[string]func() error{
		"undoAllocate":       func() error { return m.UndoAllocate(c.Tree, c.ID) },
		"undoAllocateForest": func() error { return m.UndoAllocateForest(c.Forest, c.ID) },
		"addTree":            func() error { _, err := m.AddTreeFromString(c.Text); return err },
		"addConsumer":        func() error { return addConsumer(m, c.Text+string(c.Spec)) },
		"removeConsumer":     func() error { _, err := m.RemoveConsumer(c.ID); return err },
		"cacheSetNode":       func() error { return setNode(m, c) },
		"cacheRenameNode":    func() error { return m.GetTreeCache(c.Tree).RenameNode(c.Node, c.To) },
		"updateTree":         func() error { _, _, err := m.UpdateTree(c.Tree); return err },
	}
	if do, found := simple[c.Do]; found {
		err := do()
		if err != nil {
			t.Logf("%s %s: %v", c.Do, c.ID, err)
		}
		return err == nil, nil
	}
	switch c.Do {
	case "deAllocate":
		return m.DeAllocate(c.Tree, c.ID), nil
	case "deAllocateForest":
		return m.DeAllocateForest(c.Forest, c.ID), nil
	case "isAllocated":
		return m.IsAllocated(c.Tree, c.ID), nil
	case "setMode":
		return m.SetMode(map[string]quota.Mode{"maintenance": quota.Maintenance}[c.Mode]), nil
	case "cacheDeleteNode":
		m.GetTreeCache(c.Tree).DeleteNode(c.Node)
		return true, nil
	case "list":
		return len(m.GetTreeNames()) > 0, nil
	}
	t.Fatalf("unknown call %q", c.Do)
	return false, nil
}

func addConsumer(m *quota.Manager, text string) error {
	info, err := quota.NewConsumerInfoFromString(text)
	if err != nil {
		return err
	}
	_, err = m.AddConsumer(info)
	return err
}

func setNode(m *quota.Manager, c call) error {
	return m.GetTreeCache(c.Tree).AddNodeSpecsFromString(fmt.Sprintf("{%q: %s}", c.Node, c.Spec))
}

// linesOf writes a line for each node: its tree, usage and consumers.
func linesOf(t *testing.T, recorded map[string]json.RawMessage) []string {
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
			slices.Sort(n.Consumers)
			lines = append(lines, fmt.Sprint(name, " ", node, " ", n.Alloc, " ", n.Consumers))
		}
	}
	return lines
}

// presentLines has the form of linesOf.
func presentLines(m *quota.Manager) []string {
	var lines []string
	for _, name := range m.GetTreeNames() {
		tree := m.GetTreeController(name)
		for _, node := range tree.GetNodes() {
			lines = append(lines, fmt.Sprint(name, " ", node.Name, " ", node.Allocated, " ", node.ConsumerIDs))
		}
	}
	return lines
}
