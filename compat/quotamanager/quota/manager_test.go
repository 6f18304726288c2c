package quota_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat"
	"github.com/quorate/quorate/compat/quotamanager/quota"
	"github.com/quorate/quorate/internal/servertest/inprocess"
)

func walkForest(t *testing.T, cluster *client.Client, options ...quota.Option) *quota.Manager {
	t.Helper()
	m := newManager(t, cluster, options...)
	r := readRecording(t, recordings+"/walk-forest.json")
	if err := m.AddForest("Context-Service"); err != nil {
		t.Fatal(err)
	}
	for _, tree := range r.Trees {
		if _, err := m.AddTreeFromStruct(tree); err != nil {
			t.Fatal(err)
		}
		if err := m.AddTreeToForest("Context-Service", tree.MetaData.Name); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func addJob(t *testing.T, m *quota.Manager, id string, cpu int) {
	t.Helper()
	info, err := quota.NewConsumerInfo(quota.JConsumer{Kind: "Consumer", Spec: quota.JConsumerSpec{
		ID: id, Trees: []quota.JConsumerTreeSpec{
			{TreeName: "ContextTree", GroupID: "Context-5", Request: map[string]int{"cpu": cpu}},
			{TreeName: "ServiceTree", GroupID: "Srvc-X", Request: map[string]int{"cpu": cpu, "disk": 1}},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.AddConsumer(info); err != nil {
		t.Fatal(err)
	}
}

func usage(m *quota.Manager) string {
	var text []string
	for _, name := range m.GetTreeNames() {
		text = append(text, fmt.Sprint(name, m.GetTreeController(name).GetNodes()[0].Allocated))
	}
	return strings.Join(text, " ")
}

func mustAllocate(t *testing.T, allocate func(place, id string) (*quota.AllocationResponse, error), place, id string) {
	t.Helper()
	if r, err := allocate(place, id); err != nil || !r.IsAllocated() {
		t.Fatalf("%s on %s: %v", id, place, err)
	}
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error is %v, want one that says %q", err, part)
		}
	}
}

// TestConsumersOfOneTreeAlone: a consumer with requests on two trees is allocated on one of them, on the other, and on
// both together.
func TestConsumersOfOneTreeAlone(t *testing.T) {
	t.Parallel()
	m := walkForest(t, startCluster(t))
	addJob(t, m, "job", 2)
	mustAllocate(t, m.Allocate, "ContextTree", "job")
	if got := usage(m); got != "ContextTree[2] ServiceTree[0 0]" {
		t.Errorf("on one tree: %s", got)
	}
	if !m.IsAllocated("ContextTree", "job") || m.IsAllocated("ServiceTree", "job") ||
		m.IsAllocatedForest("Context-Service", "job") {
		t.Error("on one tree: the job is allocated elsewhere")
	}
	_, err := m.Allocate("ContextTree", "job")
	wantError(t, err, "consumer job already allocated on tree ContextTree")
	_, err = m.AllocateForest("Context-Service", "job")
	wantError(t, err, "consumer job already allocated on forest Context-Service")
	mustAllocate(t, m.Allocate, "ServiceTree", "job")
	if !m.IsAllocatedForest("Context-Service", "job") {
		t.Error("the job is on both trees, and not on the forest")
	}
	if !m.DeAllocate("ContextTree", "job") || m.DeAllocate("ContextTree", "job") {
		t.Error("DeAllocate ends it once")
	}
	if got := usage(m); got != "ContextTree[0] ServiceTree[2 1]" {
		t.Errorf("after the end on one tree: %s", got)
	}
	if !m.DeAllocateForest("Context-Service", "job") || usage(m) != "ContextTree[0] ServiceTree[0 0]" {
		t.Errorf("after the end on the forest: %s", usage(m))
	}
	for range 3 { // each time under another id
		mustAllocate(t, m.AllocateForest, "Context-Service", "job")
		if !m.DeAllocate("ServiceTree", "job") || m.DeAllocate("ServiceTree", "job") ||
			usage(m) != "ContextTree[2] ServiceTree[0 0]" || m.IsAllocatedForest("Context-Service", "job") {
			t.Errorf("after the end on one tree of the forest: %s", usage(m))
		}
		mustAllocate(t, m.Allocate, "ServiceTree", "job")
		if !m.IsAllocatedForest("Context-Service", "job") || usage(m) != "ContextTree[2] ServiceTree[2 1]" {
			t.Errorf("on both trees again: %s", usage(m))
		}
		if !m.DeAllocateForest("Context-Service", "job") {
			t.Error("the job is not released")
		}
	}
}

// TestErrorsOfAllocations: calls with unknown names are refused, and denials name all limits.
func TestErrorsOfAllocations(t *testing.T) {
	t.Parallel()
	m := walkForest(t, startCluster(t))
	addJob(t, m, "large", 20)
	addJob(t, m, "medium", 5)
	addJob(t, m, strings.Repeat("x", 120), 1)
	for what, call := range map[string]func() (*quota.AllocationResponse, error){
		"invalid tree name none":                      func() (*quota.AllocationResponse, error) { return m.Allocate("none", "large") },
		"invalid forest name none":                    func() (*quota.AllocationResponse, error) { return m.AllocateForest("none", "large") },
		"consumer who does not exist":                 func() (*quota.AllocationResponse, error) { return m.Allocate("ContextTree", "who") },
		"longer than 128 bytes: use a shorter id":     func() (*quota.AllocationResponse, error) { return m.Allocate("ContextTree", strings.Repeat("x", 120)) },
		"ServiceTree:Srvc-X holds 0 of 3 cpu":         func() (*quota.AllocationResponse, error) { return m.AllocateForest("Context-Service", "medium") },
		"ContextTree holds 0 of 10 cpu, 20 requested": func() (*quota.AllocationResponse, error) { return m.AllocateForest("Context-Service", "large") },
	} {
		_, err := call()
		wantError(t, err, what)
	}
	if ok, err := m.RemoveConsumer("none"); ok || err == nil {
		t.Error("an unknown consumer was removed")
	}
	if m.DeAllocate("none", "large") || m.DeAllocateForest("none", "large") || m.IsAllocated("ContextTree", "large") {
		t.Error("the job was never allocated")
	}
}

// TestEmptyTree: a tree that is added by its name has no nodes until its cache is edited.
func TestEmptyTree(t *testing.T) {
	t.Parallel()
	m := newManager(t, startCluster(t))
	if name, err := m.AddTreeByName("T"); name != "T" || err != nil {
		t.Fatal(name, err)
	}
	if _, err := m.AddTreeByName("T"); err == nil {
		t.Error("the tree was added twice")
	}
	if got := m.GetTreeController("T"); got.GetQuotaSize() != 3 || len(got.GetNodes()) != 1 || got.IsAllocated() {
		t.Errorf("the tree is %v", got)
	}
	if err := addConsumer(m, `{"kind":"Consumer","spec":{"id":"a","trees":[{"treeName":"T","groupID":"B","request":{"cpu":1}}]}}`); err != nil {
		t.Fatal(err)
	}
	_, err := m.Allocate("T", "a")
	wantError(t, err, `group "B", which is not a node of tree "T"`)
	cache := m.GetTreeCache("T")
	err = cache.AddNodeSpecsFromString(`{"A": {"parent": "nil", "quota": {"cpu": "2"}},
		"B": {"parent": "A", "quota": {"cpu": "1"}}, "X": {"parent": "Y", "quota": {"cpu": "1"}}}`)
	if err != nil {
		t.Fatal(err)
	}
	unallocated, response, err := m.UpdateTree("T")
	if err != nil || len(unallocated) > 0 || response.RootNodeName != "A" || response.IsClean() ||
		!slices.Equal(response.DanglingNodeNames, []string{"X"}) {
		t.Errorf("the update answers %v, %v, %v", unallocated, response, err)
	}
	mustAllocate(t, m.Allocate, "T", "a")
	wantError(t, m.DeleteTree("T"), "T")
	m.DeAllocate("T", "a")
	if err := m.DeleteTree("T"); err != nil || len(m.GetTreeNames()) > 0 || m.GetTreeCache("T") != nil {
		t.Errorf("the tree is not deleted: %v", err)
	}
}

// TestForests lists forests, and moves trees between them.
func TestForests(t *testing.T) {
	t.Parallel()
	m := walkForest(t, startCluster(t))
	if err := m.AddForest("Empty"); err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"Context-Service": {"ContextTree", "ServiceTree"}, "Empty": {}}
	if diff := cmp.Diff(want, m.GetForestTreeNames()); diff != "" {
		t.Error(diff)
	}
	wantError(t, m.AddForest("Empty"), "duplicate forest name Empty")
	wantError(t, m.AddTreeToForest("None", "ContextTree"), "unknown forest name None")
	wantError(t, m.AddTreeToForest("Empty", "None"), "unknown tree name None")
	wantError(t, m.AddTreeToForest("Empty", "ContextTree"), "a tree is in one forest")
	wantError(t, m.DeleteTreeFromForest("Empty", "ContextTree"), "forest Empty does not include tree ContextTree")
	addJob(t, m, "job", 1)
	mustAllocate(t, m.AllocateForest, "Context-Service", "job")
	if f := m.GetForestController("Context-Service"); !f.IsConsumerAllocated("job") || !f.IsAllocated() ||
		!slices.Equal(f.GetTreeNames(), []string{"ContextTree", "ServiceTree"}) {
		t.Errorf("the forest is %v", f)
	}
	for _, cpu := range []string{"7", "8"} {
		if err := m.GetTreeCache("ServiceTree").AddNodeSpecsFromString(
			`{"Srvc-Y": {"parent": "Root", "quota": {"cpu": "` + cpu + `", "disk": "4"}}}`); err != nil {
			t.Fatal(err)
		}
		if cpu == "7" {
			if _, responses, err := m.UpdateForest("Context-Service"); err != nil || len(responses) != 2 {
				t.Errorf("the update answers %v, %v", responses, err)
			}
		} else if _, _, _, responses, err := m.UpdateAll(); err != nil || len(responses["Context-Service"]) != 2 {
			t.Errorf("the update answers %v, %v", responses, err)
		}
		if text := m.String(); !strings.Contains(text, "--|Srvc-Y: isHard=false; quota=["+cpu+" 4]") {
			t.Errorf("the tree is %s", text)
		}
	}
	if !m.DeAllocateForest("Context-Service", "job") {
		t.Error("the job is not released")
	}
	if err := m.DeleteTreeFromForest("Context-Service", "ContextTree"); err != nil {
		t.Error(err)
	}
	if err := m.AddTreeToForest("Empty", "ContextTree"); err != nil {
		t.Error(err)
	}
	if err := m.DeleteForest("Context-Service"); err != nil {
		t.Error(err)
	}
	if got := m.GetForestNames(); !slices.Equal(got, []string{"Empty"}) || len(m.GetTreeNames()) != 2 {
		t.Errorf("the forests are %v, the trees %v", got, m.GetTreeNames())
	}
	wantError(t, m.DeleteForest("Context-Service"), "forest Context-Service does not exist")
}

// TestModes: a Manager has a mode of its own.
func TestModes(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	m, other := walkForest(t, cluster), newManager(t, cluster)
	if fresh := quota.NewManager(cluster); fresh.GetModeString() != "mode set to Maintenance" {
		t.Error("a new Manager is not in maintenance")
	}
	addJob(t, m, "beyond", 20)
	m.SetMode(quota.Maintenance)
	if other.GetMode() != quota.Normal {
		t.Error("the mode of one Manager is that of another one")
	}
	mustAllocate(t, m.AllocateForest, "Context-Service", "beyond")
	m.DeAllocateForest("Context-Service", "beyond")
	m.SetMode(quota.Normal)
	_, err := m.AllocateForest("Context-Service", "beyond")
	wantError(t, err, "resource_exhausted")
}

// TestAnotherProcess: a second Manager takes over the trees and the consumers of the first.
func TestAnotherProcess(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	first := walkForest(t, cluster)
	addJob(t, first, "job", 1)
	for range 2 { // the second allocation has another id
		mustAllocate(t, first.AllocateForest, "Context-Service", "job")
		first.DeAllocateForest("Context-Service", "job")
	}
	mustAllocate(t, first.AllocateForest, "Context-Service", "job")
	first.Close()

	second := newManager(t, cluster)
	if cache := second.GetTreeCache("ContextTree"); !slices.Equal(cache.GetNodeNames(),
		first.GetTreeCache("ContextTree").GetNodeNames()) {
		t.Errorf("the cache has the nodes %v", cache.GetNodeNames())
	}
	if _, response, err := second.UpdateTree("ContextTree"); err != nil || !response.IsClean() {
		t.Errorf("the cache from the cluster: %v, %v", response, err)
	}
	if !second.IsAllocatedForest("Context-Service", "job") || second.GetForestController("Context-Service") == nil {
		t.Error("the second Manager does not know the job or the forest")
	}
	second = walkForest(t, cluster) // the same trees
	addJob(t, second, "job", 1)
	_, err := second.AllocateForest("Context-Service", "job")
	wantError(t, err, "already allocated")
	if !second.DeAllocateForest("Context-Service", "job") || usage(second) != "ContextTree[0] ServiceTree[0 0]" {
		t.Errorf("after the release: %s", usage(second))
	}
	third := newManager(t, cluster)
	tree := readRecording(t, recordings+"/walk-forest.json").Trees[0]
	tree.Spec.Nodes["Root"].Quota["cpu"] = "11"
	_, err = third.AddTreeFromStruct(tree)
	wantError(t, err, "already exists in the cluster with other content")
}

// TestForgottenAllocations: a new process finds the allocations of consumers that were allocated again, although the
// cluster has forgotten the ones before.
func TestForgottenAllocations(t *testing.T) {
	t.Parallel()
	url := inprocess.Start(t, nil)
	first := walkForest(t, newClient(t, url))
	addJob(t, first, "job", 1)
	mustAllocate(t, first.AllocateForest, "Context-Service", "job")
	first.DeAllocateForest("Context-Service", "job")
	mustAllocate(t, first.AllocateForest, "Context-Service", "job")
	m := newManager(t, newClient(t, url, client.WithInterceptors(forgetful("job"))))
	if !m.IsAllocatedForest("Context-Service", "job") {
		t.Error("the job is not found")
	}
	if !m.DeAllocateForest("Context-Service", "job") || usage(first) != "ContextTree[0] ServiceTree[0 0]" {
		t.Errorf("after the release: %s", usage(first))
	}
}

func forgetful(id string) connect.UnaryInterceptorFunc {
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
			if get, ok := r.Any().(*quoratev1.GetAllocationRequest); ok && get.GetId() == id {
				return nil, connect.NewError(connect.CodeNotFound, errors.New("forgotten"))
			}
			return next(ctx, r)
		}
	}
}

// TestManagersAtOnce: when several processes allocate a consumer at the same time, it is counted once.
func TestManagersAtOnce(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	m := walkForest(t, cluster)
	var others []*quota.Manager
	for range 4 {
		other := newManager(t, cluster)
		addJob(t, other, "job", 1)
		others = append(others, other)
	}
	addJob(t, m, "job", 1)
	for range 5 {
		var running sync.WaitGroup
		for _, other := range others {
			running.Go(func() { _, _ = other.AllocateForest("Context-Service", "job") })
		}
		running.Wait()
		if got := usage(m); got != "ContextTree[1] ServiceTree[1 1]" {
			t.Fatalf("the job is counted as %s", got)
		}
		if !m.DeAllocateForest("Context-Service", "job") {
			t.Fatal("the job is not released")
		}
	}
}

// TestUndo: a try is taken back exactly, or kept by the next call, or by the end of its window.
func TestUndo(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	m := walkForest(t, cluster)
	addJob(t, m, "a", 1)
	addJob(t, m, "b", 1)
	mustAllocate(t, m.TryAllocateForest, "Context-Service", "a")
	wantError(t, m.UndoAllocateForest("Context-Service", "b"), "failed undo allocate")
	if err := m.UndoAllocateForest("Context-Service", "a"); err != nil || usage(m) != "ContextTree[0] ServiceTree[0 0]" {
		t.Errorf("after the undo: %v, %s", err, usage(m))
	}
	wantError(t, m.UndoAllocateForest("Context-Service", "a"), "failed undo allocate")

	mustAllocate(t, m.TryAllocate, "ContextTree", "a")
	mustAllocate(t, m.Allocate, "ContextTree", "b")
	wantError(t, m.UndoAllocate("ContextTree", "a"), "was kept already")
	if got := stateOf(t, cluster, "a@ContextTree"); got != quoratev1.AllocationState_ALLOCATION_STATE_HELD {
		t.Errorf("the try is %v after the next call", got)
	}

	hasty := newManager(t, cluster, quota.WithUndoWindow(20*time.Millisecond))
	addJob(t, hasty, "c", 1)
	mustAllocate(t, hasty.TryAllocate, "ContextTree", "c")
	for deadline := time.Now().Add(2 * time.Minute); stateOf(t, cluster, "c@ContextTree") !=
		quoratev1.AllocationState_ALLOCATION_STATE_HELD; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the try is not kept at the end of its window")
		}
	}
	wantError(t, hasty.UndoAllocate("ContextTree", "c"), "failed undo allocate")
}

func stateOf(t *testing.T, cluster *client.Client, id string) quoratev1.AllocationState {
	t.Helper()
	answer, err := cluster.Allocations.GetAllocation(t.Context(), &quoratev1.GetAllocationRequest{Id: id})
	if err != nil {
		t.Fatal(err)
	}
	return answer.GetAllocation().GetState()
}

// TestUpdatesKeepOtherSettings: what a QuotaTree document does not have stays when a tree is updated.
func TestUpdatesKeepOtherSettings(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	m := walkForest(t, cluster)
	now, err := cluster.Trees.GetTree(t.Context(), &quoratev1.GetTreeRequest{Name: "ContextTree"})
	if err != nil {
		t.Fatal(err)
	}
	tree := now.GetTree()
	tree.RequireReason = false
	tree.Leases = &quoratev1.LeaseSettings{MaxTtlMs: 60_000}
	for _, n := range tree.GetNodes() {
		if n.GetPath() == "Org-A" {
			n.Applications = compat.AtMost(7)
		}
	}
	if _, err := cluster.Trees.ApplyTrees(t.Context(),
		&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{tree}}); err != nil {
		t.Fatal(err)
	}
	cache := m.GetTreeCache("ContextTree")
	for from, to := range map[string]string{"Org-A": "Org-Z", "Context-1": "Context-9"} {
		if err := cache.RenameNode(from, to); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := m.UpdateTree("ContextTree"); err != nil {
		t.Fatal(err)
	}
	now, err = cluster.Trees.GetTree(t.Context(), &quoratev1.GetTreeRequest{Name: "ContextTree"})
	if err != nil {
		t.Fatal(err)
	}
	applications := map[string]int64{}
	for _, n := range now.GetTree().GetNodes() {
		applications[n.GetPath()] = n.GetApplications().GetAmount()
	}
	if _, found := applications["Org-Z/Context-9"]; !found || applications["Org-Z"] != 7 ||
		now.GetTree().GetLeases().GetMaxTtlMs() != 60_000 || now.GetTree().GetForest() != "Context-Service" {
		t.Errorf("the tree has become %v", now.GetTree())
	}
}
