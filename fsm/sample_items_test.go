package fsm

import (
	"testing"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

func itemsConfiguration() quota.ApplyTrees {
	return quota.ApplyTrees{Meta: quota.ChangeMeta{Actor: "eva"}, Trees: []quota.TreeSpec{{
		Name: "lab",
		TreeSettings: quota.TreeSettings{
			Leases:   quota.LeaseSettings{Default: 60_000, Max: 3_600_000, Grace: 5000},
			Overtake: 90_000,
		},
		Resources: []quota.Resource{
			{Name: "bench", Unit: quota.Items, Items: &quota.ItemSpec{
				Names: []string{"b1", "b2", "b3", "b4"}, Released: "dirty", Expired: "lost",
				Turns: []quota.Turn{{From: "dirty", To: "free", After: 9_000_000}},
			}},
			{Name: "cpu", Unit: quota.Count},
			{
				Name: "slice", Unit: quota.Items,
				Items: &quota.ItemSpec{Min: 1, Max: 3, Lifespan: 9_000_000, TTL: 30_000, Queueing: quota.BestEffort},
			},
		},
		Nodes: []quota.NodeSpec{
			{Policy: "open", Queueing: quota.Strict},
			{Path: "team", Limits: []quota.ResourceLimit{
				{Resource: "bench", Limit: quota.AtMost(5)},
				{Resource: "cpu", Limit: quota.AtMost(4)},
			}},
		},
	}}}
}

func askItems(id string, picks ...quota.Pick) quota.Allocate {
	return quota.Allocate{ID: id, Claims: []quota.Claim{{Tree: "lab", Node: "team", Picks: picks}}}
}

func askCores(id string, amount quota.Amount) quota.Allocate {
	return quota.Allocate{
		ID: id, Claims: []quota.Claim{
			{Tree: "lab", Node: "team", Amounts: quota.Vector{{Resource: "cpu", Amount: amount}}},
		},
	}
}

func waitingFor(request quota.Allocate, priority int64) quota.Allocate {
	request.Mode, request.WaitFor, request.Keep, request.Priority = quota.Wait, 8_000_000, 3_000_000, priority
	request.Data = []quota.Label{{Key: "why", Value: "test"}}
	return request
}

func itemsFSM(t testing.TB) *FSM {
	t.Helper()
	f := New(Options{})
	bench := quota.ItemName{Tree: "lab", Resource: "bench", Name: "b1"}
	owner := quota.Principal{User: "ann"}
	held := askItems("held", quota.Pick{Resource: "bench", Count: 2, HeldState: "busy"},
		quota.Pick{Resource: "slice", Count: 1})
	held.Principal, held.TTL, held.Data = owner, 1_000_000, []quota.Label{{Key: "host", Value: "x"}}
	named := askItems("named", quota.Pick{Resource: "bench", Count: 1, Names: []string{"b4"}})
	lapses := askItems("lapses", quota.Pick{Resource: "slice", Count: 1})
	unclaimed := waitingFor(askCores("unclaimed", 4), 0)
	unclaimed.TTL = 3_000_000
	for index, entry := range []struct {
		at       quota.Instant
		commands []quota.Command
	}{
		{1, []quota.Command{itemsConfiguration()}},
		{2, []quota.Command{held, lapses, askCores("cores", 4), named, unclaimed}},
		{3, []quota.Command{
			quota.Renew{ID: "held", Data: []quota.Label{{Key: "host", Value: "y"}}, Items: []quota.ItemUpdate{{
				Item: bench, State: "cleaning", Data: []quota.Label{{Key: "password", Value: "secret"}},
			}}},
		}},
		{4, []quota.Command{
			quota.UpdateItems{
				Updates: []quota.ItemUpdate{
					{Item: quota.ItemName{Tree: "lab", Resource: "bench", Name: "b3"}, State: "broken"},
				},
			},
		}},
		{40_000, []quota.Command{quota.Expire{Most: 10}}},
		{40_001, []quota.Command{
			waitingFor(askItems("waits", quota.Pick{Resource: "bench", Count: 1}), -3),
			waitingFor(askItems(
				"for-b3", quota.Pick{Resource: "bench", Count: 1, State: "free", Names: []string{"b3"}}), 3),
			waitingFor(askCores("behind", 1), 0), waitingFor(askCores("left", 2), 0),
		}},
		{40_002, []quota.Command{quota.Cancel{ID: "left"}, quota.Release{ID: "cores"}}},
		{40_003, []quota.Command{
			quota.Release{
				ID: "held", Items: []quota.ItemName{{Tree: "lab", Resource: "slice", Name: "slice-1"}},
				ItemState: "worn",
			},
		}},
		{40_004, []quota.Command{
			quota.SetLimits{
				Tree: "lab", Node: "team",
				Limits: []quota.ResourceLimit{{Resource: "bench", Limit: quota.AtMost(6)}},
			},
		}},
	} {
		data, err := EncodeEntry(quota.Stamp{At: entry.at, Wall: 1_800_000_000_000 + int64(entry.at)}, entry.commands)
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range applyData(f, uint64(index+1), data).(Outcomes) {
			if o.Refused != nil || o.Decision != nil && !o.Decision.Granted && !o.Decision.Waiting {
				t.Fatalf("entry %d, command %d: %v %+v", index+1, i, o.Refused, o.Decision)
			}
		}
	}
	return f
}

// TestItemSamplesAreComplete checks that itemsFSM has at least one of every record and field about items and leases.
func TestItemSamplesAreComplete(t *testing.T) {
	image := itemsFSM(t).ledger.Snapshot()
	states := map[string]int{}
	for i := range image.Items() {
		states[i.State]++
	}
	for _, state := range []string{"cleaning", "busy", "broken", "worn", "leased", "free"} {
		if states[state] == 0 {
			t.Errorf("no item is %s: %v", state, states)
		}
	}
	lines := map[ledger.BlockerImage]bool{}
	for w := range image.Waiting() {
		lines[w.Line] = true
	}
	if len(lines) < 3 {
		t.Errorf("requests stand in the lines %v only", lines)
	}
	found := map[string]bool{}
	for a := range image.Held() {
		found["lease"] = found["lease"] || a.TTL > 0
		found["unclaimed"] = found["unclaimed"] || a.Unclaimed
		found["items"] = found["items"] || len(a.Items) > 0
		found["data"] = found["data"] || len(a.Data) > 0
	}
	for _, what := range []string{"lease", "unclaimed", "items", "data"} {
		if !found[what] {
			t.Errorf("nothing held has %s", what)
		}
	}
}
