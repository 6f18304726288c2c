package main_test

import (
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	quoratev1beta1 "github.com/quorate/quorate/client/gen/quorate/v1beta1"
	"github.com/quorate/quorate/client/gen/quorate/v1beta1/quoratev1beta1connect"
)

// busyTree has two cores, two named machines and a node "warm", on which the tests check that every server records.
func busyTree() *quoratev1.Tree {
	cores := map[string]*quoratev1.Limit{"cores": {Value: &quoratev1.Limit_Amount{Amount: 2}}}
	return &quoratev1.Tree{
		Name: "busy", Nodes: []*quoratev1.Node{{Path: "team", Limits: cores}, {Path: "team/ci"}, {Path: "warm"}},
		Resources: []*quoratev1.Resource{
			{Name: "cores"}, {
				Name: "machine", Unit: quoratev1.Unit_UNIT_ITEMS,
				Items: &quoratev1.ItemSpec{Names: []string{"m1", "m2"}},
			},
		},
	}
}

func busyRequest(id, node string) *quoratev1.AllocateRequest {
	return &quoratev1.AllocateRequest{
		Id:     id,
		Claims: []*quoratev1.Claim{{Tree: "busy", Node: node, Amounts: map[string]int64{"cores": 1}}},
	}
}

// beBusy causes grants, waits, an expiry and releases: one lease expires and its capacity goes to a waiting request. It
// returns the log index of the last change. The lease is long until the request waits.
func (f serverFlags) beBusy(t *testing.T) uint64 {
	t.Helper()
	lease := busyRequest("lease", "team/ci")
	lease.TtlMs = time.Hour.Milliseconds()
	lease.Claims[0].Items = []*quoratev1.ItemPick{{Resource: "machine", Count: 1}}
	waits := busyRequest("waits", "team/ci")
	waits.Mode = quoratev1.Mode_MODE_WAIT
	for _, r := range []*quoratev1.AllocateRequest{lease, busyRequest("held", "team"), waits} {
		granted, err := whileUnavailable(t, f.allocationClient().Allocate, r)
		if err != nil || (granted.GetAllocation().GetFence() == 0) != (r == waits) {
			t.Fatalf("%s: %v, %v", r.GetId(), granted, err)
		}
	}
	if _, err := whileUnavailable(t, f.allocationClient().Renew,
		&quoratev1.RenewRequest{Id: "lease", TtlMs: 1000}); err != nil {
		t.Fatal(err)
	}
	awaitCondition(t, "the request still waits", func() bool {
		granted, err := whileUnavailable(t, f.allocationClient().Allocate, waits)
		if err != nil {
			t.Fatal(err)
		}
		return granted.GetAllocation().GetFence() > 0
	})
	released, err := whileUnavailable(t, f.allocationClient().Release, &quoratev1.ReleaseRequest{Id: "held"})
	if err != nil {
		t.Fatal(err)
	}
	return released.GetWrite().GetIndex()
}

// activityClient reads the activity of a node or resource from one server, at a log index or later.
func (f serverFlags) activityClient(t *testing.T, node, resource string,
	index uint64,
) ([]*quoratev1beta1.ActivityStep, error) {
	t.Helper()
	client := quoratev1beta1connect.NewActivityServiceClient(fresh, f.baseURL())
	answer, err := client.GetActivity(t.Context(), &quoratev1beta1.GetActivityRequest{
		Tree: "busy", Node: node, Resource: resource, Read: &quoratev1.ReadOptions{MinIndex: index},
	})
	if err == nil && answer.GetRead().GetServedBy() != f.id {
		t.Errorf("%s was asked, %s answered", f.id, answer.GetRead().GetServedBy())
	}
	return answer.GetSteps(), err
}

// sumSteps adds up counters over all steps. Values that describe a state are those of the last step.
func sumSteps(steps []*quoratev1beta1.ActivityStep) *quoratev1beta1.ActivityStep {
	all := &quoratev1beta1.ActivityStep{}
	for _, step := range steps {
		all.Granted, all.Released, all.Lost = all.GetGranted()+step.GetGranted(), all.GetReleased()+step.GetReleased(),
			all.GetLost()+step.GetLost()
		all.Held, all.Waiting, all.States = step.GetHeld(), step.GetWaiting(), step.GetStates()
		all.LongestWaitMs = max(all.GetLongestWaitMs(), step.GetLongestWaitMs())
	}
	return all
}

func awaitCondition(t *testing.T, what string, says func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !says(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %v: %s", patience, what)
		}
	}
}

// TestEveryServerRecordsActivity: followers record and report activity as the leader does. Denials are counted once in
// the cluster.
func TestEveryServerRecordsActivity(t *testing.T) {
	t.Parallel()
	flags := threeServers(t)
	var servers []*process
	for _, f := range flags {
		servers = append(servers, startProcess(t, f.commandLine()...))
	}
	for i, f := range flags {
		awaitReady(t, servers[i], f)
	}
	if _, err := whileUnavailable(t, flags[0].treeClient().ApplyTrees,
		&quoratev1.ApplyTreesRequest{Trees: []*quoratev1.Tree{busyTree()}}); err != nil {
		t.Fatal(err)
	}
	if _, err := whileUnavailable(t, flags[0].allocationClient().Allocate, busyRequest("warm", "warm")); err != nil {
		t.Fatal(err)
	}
	for _, f := range flags {
		awaitCondition(t, f.id+" does not look", func() bool {
			_, err := f.activityClient(t, "warm", "", 0)
			return err == nil
		})
	}
	index := flags[1].beBusy(t)
	for _, f := range flags {
		f.hasSeenIt(t, index)
	}
	if _, err := flags[2].activityClient(t, "nowhere", "", 0); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("a node that is not there: %v", err)
	}
	for _, f := range flags {
		beDenied(t, f)
	}
	expectDenials(t, flags, map[string]int{"busy resource": 3 * (5 + joinedDenials), "busy items": 3})
	for _, p := range servers {
		p.stopCleanly(t)
	}
}

func (f serverFlags) hasSeenIt(t *testing.T, index uint64) {
	t.Helper()
	var ci *quoratev1beta1.ActivityStep
	awaitCondition(t, f.id+" has not seen it", func() bool {
		steps, err := f.activityClient(t, "team/ci", "", index)
		if err != nil {
			return false
		}
		ci = sumSteps(steps)
		return ci.GetGranted() == 2 && ci.GetHeld() == 1 && ci.GetWaiting() == 0
	})
	if ci.GetLost() != 1 || ci.GetReleased() != 0 || ci.GetLongestWaitMs() < 500 ||
		ci.GetLongestWaitMs() > patience.Milliseconds() {
		t.Errorf("%s says %v", f.id, ci)
	}
	team, err := f.activityClient(t, "team", "", index)
	if all := sumSteps(team); err != nil || all.GetGranted() != 3 || all.GetReleased() != 1 {
		t.Errorf("%s says %v of the team, %v", f.id, all, err)
	}
	machines, err := f.activityClient(t, "", "machine", index)
	if all := sumSteps(machines); err != nil || all.GetGranted() != 1 || all.GetLost() != 1 || all.GetHeld() != 0 ||
		all.GetStates()["free"] != 2 {
		t.Errorf("%s says %v of the machines, %v", f.id, all, err)
	}
	awaitCondition(t, f.id+" does not report it", func() bool {
		_, page := httpGet(t, f.baseURL()+"/metrics")
		for _, line := range []string{
			`quorate_grants_total{cluster="quorate",from="queue",tree="busy"} 1`,
			`quorate_ends_total{cluster="quorate",outcome="expired",tree="busy"} 1`,
			`quorate_ends_total{cluster="quorate",outcome="released",tree="busy"} 1`,
			`quorate_lease_duration_seconds_count{cluster="quorate",tree="busy"} 1`,
			`quorate_wait_duration_seconds_count{cluster="quorate",tree="busy"} 1`,
			`quorate_held_claims{cluster="quorate",tree="busy"} 2`,
			`quorate_items{cluster="quorate",resource="machine",state="free",tree="busy"} 2`,
		} {
			if !strings.Contains(page, "\n"+line+"\n") {
				return false
			}
		}
		return true
	})
}
