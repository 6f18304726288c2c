package fsm

import (
	"testing"

	"github.com/quorate/quorate/quota"
)

// timedSamples are commands with what depends on time, holds, ranges and alternatives, by name, with every field set.
func timedSamples() map[string]quota.Command {
	return map[string]quota.Command{
		"advisory-limits": advisoryTree,
		"set-advisory":    quota.SetLimits{Tree: "advised", Node: "a", Limits: advisoryLimits(7)},
		"request-advisory": quota.RequestLimits{
			Tree: "advised", Node: "a", Limits: advisoryLimits(8), Reason: "to watch first",
		},
		"thresholds": warningTree,
		"range":      rangeSample,
		"any-of":     alternativesSample,
		"declared": quota.Allocate{ID: "corp/eva ci/declared", For: 3_600_000, Claims: []quota.Claim{
			{Tree: "warned", Node: "b", Amounts: quota.Vector{{Resource: "cpu", Amount: 0}}},
		}},
		"waiting-resize": quota.Resize{
			ID: "corp/eva ci/grows", Fence: 3, Generation: 2, WaitFor: 60_000, Claims: []quota.ClaimChange{
				{Tree: "resized", Node: "a", Amounts: quota.Vector{{Resource: "cpu", Amount: 7}}},
				{Tree: "resized", Node: "b", Amounts: quota.Vector{{Resource: "cpu", Amount: 1}}},
			},
		},
		"set-webhook": quota.SetWebhook{
			WebhookSpec: quota.WebhookSpec{
				Name: "pager", URL: "https://pager.example/hook", Secret: "pager", Types: []string{"allocation.ended"}, Tree: "t",
				Node: "a", RetryFor: 60_000,
			},
			After: quota.EventPosition{Index: 3, Number: 1}, Reason: "on call",
		},
		"manage-webhook": quota.ManageWebhook{
			Name: "pager", Action: quota.ResumeWebhook, After: &quota.EventPosition{Index: 9, Number: 2}, Reason: "repaired",
		},
		"advance-webhooks": quota.AdvanceWebhooks{Reports: []quota.WebhookReport{{
			Name: "pager", Version: 4, Cursor: quota.EventPosition{Index: 8, Number: 1}, Delivered: 3, Gaps: 1,
			Error: "no route",
		}}},
		"hold-node": quota.CordonNode{
			Meta: quota.ChangeMeta{Actor: "eva", Reason: "new cables", RequestID: "r1"}, Tree: "t", Node: "a", Deny: true,
			For: 60_000, Drain: true, Grace: 1000,
		},
		"resume-node":      quota.UncordonNode{Meta: quota.ChangeMeta{Actor: "eva"}, Tree: "t", Node: "a"},
		"set-civil-offset": quota.SetCivilOffset{Offset: 1_790_000_000_000},
		"schedule-limits": quota.ScheduleLimits{
			ID: "night", Tree: "elastic", Node: "a", Adjustments: []quota.LimitAdjustment{
				{Resource: "cpu", Kind: quota.AddToLimit, Amount: 3},
			},
			Windows: []quota.CivilWindow{
				{From: 1_790_000_000_000, Until: 1_790_000_060_000}, {From: 1_790_000_090_000, Until: 1_790_000_120_000},
			},
			Rule: "weekdays 18:00-08:00 Europe/Zurich", RuleEnds: 1_799_000_000_000, Actor: "eva", Reason: "a campaign",
		},
		"schedule-later-limits": quota.ScheduleLimits{
			ID: "weekend", Tree: "elastic", Adjustments: []quota.LimitAdjustment{
				{Resource: "cpu", Kind: quota.SetLimit, Amount: 40},
			},
			Windows: []quota.CivilWindow{{From: 1_790_100_000_000, Until: 1_790_200_000_000}},
			Rule:    "fri 18:00-mon 08:00 UTC", RuleBegins: 1_790_050_000_000,
		},
		"cancel-scheduled-limit": quota.CancelScheduledLimit{ID: "night", Actor: "eva", Reason: "not needed"},
		"extend-schedule": quota.ExtendSchedule{
			ID: "night", Windows: []quota.CivilWindow{{From: 1_790_000_150_000, Until: 1_790_000_180_000}},
		},
	}
}

// warningTree is a configuration with thresholds.
var warningTree = quota.ApplyTrees{Trees: []quota.TreeSpec{{
	Name: "warned", Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}},
	Nodes: []quota.NodeSpec{
		{Policy: "open", Thresholds: quota.Thresholds{Percents: []int{80, 95}, Margin: 10}, Bindings: sampleBindings},
		{Path: "a", Thresholds: quota.Thresholds{None: true}},
		{Path: "b", Limits: []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(10)}}},
	},
}}}

// timedFSM is a state machine with what timedSamples leave in a snapshot, and what changedFSM has.
func timedFSM(t testing.TB) *FSM {
	t.Helper()
	f := changedFSM(t)
	applyData(f, f.applied+1, joined(t, partOf(t, systemCaller, advisoryTree)))
	addWebhooks(t, f)
	crossThresholds(t, f)
	holdNodes(t, f)
	addRanges(t, f)
	addReasons(t, f)
	addAlternatives(t, f)
	addWaitingResizes(t, f)
	applyData(f, f.applied+1, joined(t, partOf(t, systemCaller, quota.SetCivilOffset{Offset: 1_790_000_000_000},
		timedSamples()["schedule-limits"])))
	skipWindow(t, f)
	return f
}

// skipWindow leaves a recurring limit with a window that a policy does not allow, and the event about that.
func skipWindow(t testing.TB, f *FSM) {
	t.Helper()
	const first quota.CivilTime = 1_790_300_000_000
	window := func(hour quota.CivilTime) quota.CivilWindow {
		return quota.CivilWindow{From: first + hour*3_600_000, Until: first + (hour+1)*3_600_000}
	}
	cpu := func(kind quota.AdjustmentKind, amount quota.Amount) []quota.LimitAdjustment {
		return []quota.LimitAdjustment{{Resource: "cpu", Kind: kind, Amount: amount}}
	}
	limit := func(amount quota.Amount) []quota.ResourceLimit {
		return []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(amount)}}
	}
	tree := quota.TreeSpec{
		Name: "recurring", Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}},
		Nodes: []quota.NodeSpec{
			{Policy: "strict", Bindings: sampleBindings, Limits: limit(10)}, {Path: "a", Limits: limit(5)},
		},
	}
	applyData(f, f.applied+1, joined(t, partOf(t, systemCaller,
		quota.ApplyTrees{Trees: []quota.TreeSpec{tree}},
		quota.ScheduleLimits{
			ID: "nights", Tree: "recurring", Node: "a", Adjustments: cpu(quota.SetLimit, 9), Reason: "nights",
			Windows: []quota.CivilWindow{window(1)}, Rule: "daily 01:00-02:00 UTC", RuleBegins: first,
		},
		quota.ScheduleLimits{
			ID: "holiday", Tree: "recurring", Adjustments: cpu(quota.AddToLimit, -2), Reason: "holiday",
			Windows: []quota.CivilWindow{window(25)},
		},
		quota.ExtendSchedule{ID: "nights", Windows: []quota.CivilWindow{window(25), window(49)}},
	)))
	list := f.ledger.Reader().ScheduledLimits("recurring", "a")
	if len(list) != 1 || len(list[0].Windows) != 2 || len(list[0].Skipped) != 1 {
		t.Fatalf("the recurring limits are %+v", list)
	}
}

// addWebhooks leaves an active webhook that fails and one that is dead.
func addWebhooks(t testing.TB, f *FSM) {
	t.Helper()
	active, dead := timedSamples()["set-webhook"].(quota.SetWebhook), quota.SetWebhook{}
	dead.WebhookSpec = quota.WebhookSpec{Name: "dead", URL: "http://127.0.0.1:1/", Secret: "pager", RetryFor: 1000}
	failed := quota.AdvanceWebhooks{Reports: []quota.WebhookReport{
		{
			Name: "pager", Version: 1, Cursor: quota.EventPosition{Index: 7, Number: 1}, Delivered: 2, Gaps: 1,
			Error: "no route",
		},
		{Name: "dead", Version: 2, Error: "no answer"},
	}}
	applyData(f, f.applied+1, joined(t, partOf(t, systemCaller, active, dead, failed)))
	later := quota.Stamp{At: f.ledger.Reader().Now() + 1000, Wall: 1}
	data, err := JoinEntry(later, partOf(t, systemCaller, failed))
	if err != nil {
		t.Fatal(err)
	}
	applyData(f, f.applied+1, data)
	list := f.ledger.Reader().Webhooks()
	if len(list) != 2 || list[0].State != quota.WebhookDead || list[1].FailingSince.At == 0 {
		t.Fatalf("the webhooks are %+v", list)
	}
}

// crossThresholds leaves a threshold that is crossed, and one that was.
func crossThresholds(t testing.TB, f *FSM) {
	t.Helper()
	hold := func(id string, amount quota.Amount) quota.Command {
		return quota.Allocate{ID: id, Claims: []quota.Claim{
			{Tree: "warned", Node: "b", Amounts: quota.Vector{{Resource: "cpu", Amount: amount}}},
		}}
	}
	applyData(f, f.applied+1, joined(t, partOf(t, systemCaller, warningTree)))
	applyData(f, f.applied+1, joined(t, partOf(t, evaCaller, timedSamples()["declared"])))
	applyData(f, f.applied+1, joined(t, partOf(t, evaCaller, hold("corp/eva ci/most", 8), hold("corp/eva ci/rest", 2),
		quota.Release{ID: "corp/eva ci/rest"})))
	kinds := map[quota.EventKind]int{}
	for _, e := range f.ledger.Reader().Events(quota.EventFilter{Tree: "warned"}, 100).Events {
		kinds[e.Kind]++
	}
	if kinds[quota.EventCrossed] != 2 || kinds[quota.EventCleared] != 1 {
		t.Fatalf("the events about thresholds are %v", kinds)
	}
}

// holdNodes leaves a node that is being drained, a drained one, a request that waits for the end of a hold, and the
// denial of another one.
func holdNodes(t testing.TB, f *FSM) {
	t.Helper()
	tree := quota.TreeSpec{
		Name: "held", Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}},
		Nodes: []quota.NodeSpec{{Policy: "open", Bindings: sampleBindings}, {Path: "a"}, {Path: "b"}},
	}
	request := func(id string, mode quota.Mode) quota.Command {
		return quota.Allocate{ID: id, Mode: mode, Claims: []quota.Claim{
			{Tree: "held", Node: "a", Amounts: quota.Vector{{Resource: "cpu", Amount: 1}}},
		}}
	}
	meta := quota.ChangeMeta{Reason: "new cables"}
	applyData(f, f.applied+1, joined(t, partOf(t, systemCaller, quota.ApplyTrees{Trees: []quota.TreeSpec{tree}})))
	applyData(f, f.applied+1, joined(t, partOf(t, evaCaller, request("corp/eva ci/held", quota.Hold))))
	applyData(f, f.applied+1, joined(t, partOf(t, systemCaller,
		quota.CordonNode{Meta: meta, Tree: "held", Node: "a", For: 60_000, Drain: true, Grace: 1000},
		quota.CordonNode{Meta: meta, Tree: "held", Node: "b", Deny: true, Drain: true})))
	applyData(f, f.applied+1, joined(t, partOf(t, evaCaller, request("corp/eva ci/waits", quota.Wait),
		request("corp/eva ci/denied", quota.Hold))))
	if holds := f.ledger.Reader().Holds("held", ""); len(holds) != 2 || !holds[1].Drained || !holds[0].IsUsed {
		t.Fatalf("the holds are %+v", holds)
	}
}

// addReasons leaves victims with the reasons of their ends, a lease that is revoked, and those for whom it happened.
func addReasons(t testing.TB, f *FSM) {
	t.Helper()
	limit := func(n quota.Amount) []quota.ResourceLimit {
		return []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(n)}}
	}
	tree := quota.TreeSpec{
		Name: "borrowed", Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}},
		TreeSettings: quota.TreeSettings{Leases: quota.LeaseSettings{Grace: 1000}},
		Nodes: []quota.NodeSpec{
			{Policy: "borrowing", Limits: limit(10)}, {Path: "a", Limits: limit(5)}, {Path: "b", Limits: limit(5)},
		},
	}
	request := func(id, node string, amount quota.Amount, mode quota.Mode, ttl quota.Span, priority int64) quota.Command {
		return quota.Allocate{ID: id, Mode: mode, TTL: ttl, Claims: []quota.Claim{{
			Tree: "borrowed", Node: node, Amounts: quota.Vector{{Resource: "cpu", Amount: amount}},
			Standing: quota.Standing{Priority: priority},
		}}}
	}
	applyData(f, f.applied+1, joined(t, partOf(t, systemCaller, quota.ApplyTrees{Trees: []quota.TreeSpec{tree}},
		request("corp/eva ci/guest", "b", 8, quota.Hold, 0, 0), request("corp/eva ci/owner", "a", 5, quota.Hold, 0, -3),
		request("corp/eva ci/lease", "b", 5, quota.Hold, 60_000, 1), request("corp/eva ci/urgent", "b", 2, quota.Wait, 0,
			7))))
	list := f.ledger.Reader().Events(quota.EventFilter{Kind: quota.EventRevoked, ID: "corp/eva ci/lease"}, 1).Events
	guest, _ := f.ledger.Reader().Allocation("corp/eva ci/guest")
	if len(list) != 1 || list[0].Reason.Kind != quota.ByPriority || guest.Reason.Kind != quota.ByShare {
		t.Fatalf("the reasons are %v and %v", list, guest.Reason)
	}
}

// addWaitingResizes leaves a resize that waits and one that waited in vain, of the same allocation.
func addWaitingResizes(t testing.TB, f *FSM) {
	t.Helper()
	tree := quota.TreeSpec{
		Name: "resized", Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}},
		Nodes: []quota.NodeSpec{
			{Policy: "open", Bindings: sampleBindings, Limits: []quota.ResourceLimit{
				{Resource: "cpu", Limit: quota.AtMost(8)},
			}},
			{Path: "a"},
			{Path: "b"},
		},
	}
	hold := func(id string, amount quota.Amount) quota.Command {
		return quota.Allocate{ID: id, Claims: []quota.Claim{
			{Tree: "resized", Node: "a", Amounts: quota.Vector{{Resource: "cpu", Amount: amount}}},
		}}
	}
	first, second := timedSamples()["waiting-resize"].(quota.Resize), timedSamples()["waiting-resize"].(quota.Resize)
	first.Fence, second.Fence, second.Generation = 0, 0, 3
	withdraw := quota.Resize{ID: first.ID, Claims: []quota.ClaimChange{
		{Tree: "resized", Node: "a", Amounts: quota.Vector{{Resource: "cpu", Amount: 5}}},
	}}
	applyData(f, f.applied+1, joined(t, partOf(t, systemCaller, quota.ApplyTrees{Trees: []quota.TreeSpec{tree}})))
	applyData(f, f.applied+1, joined(t, partOf(t, evaCaller, hold("corp/eva ci/grows", 5), hold("corp/eva ci/stays",
		3), first, withdraw,
		second)))
	a, refused := f.ledger.Reader().Allocation("corp/eva ci/grows")
	if refused != nil || a.Resize == nil || a.Resize.Generation != 3 || a.Generation != 0 {
		t.Fatalf("the allocation is %+v, %v", a, refused)
	}
}
