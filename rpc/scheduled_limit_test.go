package rpc

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

// afterSecond is a civil time in the calendar tests, where civil time begins at 1,000 seconds.
func afterSecond(n int64) *timestamppb.Timestamp { return timestamppb.New(time.Unix(1_000+n, 0)) }

// startCivil lets civil time begin, or move on to some seconds after its beginning, and carries out what is due.
func (d *testServer) startCivil(seconds int64) {
	d.node.applyAt(quota.Instant(1_000*seconds), quota.SetCivilOffset{Offset: 1_000_000}, quota.Expire{Most: 10})
}

func setCores(n int64) map[string]*quoratev1.LimitAdjustment {
	return map[string]*quoratev1.LimitAdjustment{
		"cores": {Value: &quoratev1.LimitAdjustment_Set{Set: n}},
	}
}

func lessHiggs() *quoratev1.ScheduleLimitsRequest {
	return &quoratev1.ScheduleLimitsRequest{
		Id: "less", Tree: "cern", Node: "physics/higgs", Adjustments: setCores(4),
		BeginsAt: afterSecond(10), EndsAt: afterSecond(40), Actor: "ann", Reason: "repairs",
	}
}

func effectiveCores(t *testing.T, d *testServer) string {
	t.Helper()
	usage, err := d.trees().GetUsage(t.Context(), &quoratev1.GetUsageRequest{Tree: "cern", Node: "physics/higgs"})
	if err != nil {
		t.Fatal(err)
	}
	r := usage.GetNodes()[0].GetResources()[0]
	changes := "never"
	if at := r.GetLimitChangesAt(); at != nil {
		changes = fmt.Sprint(at.AsTime().Unix() - 1_000)
	}
	return fmt.Sprintf("%d of %d, changes: %s", r.GetEffective().GetAmount(), r.GetLimit().GetAmount(), changes)
}

func (d *testServer) wantCores(t *testing.T, want string) {
	t.Helper()
	if got := effectiveCores(t, d); got != want {
		t.Errorf("the limit is %s; want %s", got, want)
	}
}

// TestScheduledLimit follows one from its request to its end.
func TestScheduledLimit(t *testing.T) {
	d := oneNode(t)
	if _, err := d.trees().ScheduleLimits(t.Context(), lessHiggs()); connect.CodeOf(err) !=
		connect.CodeFailedPrecondition || !strings.Contains(err.Error(), "civil time") {
		t.Fatalf("before civil time: %v", err)
	}
	d.startCivil(0)
	dry := lessHiggs()
	dry.DryRun = true
	for _, r := range []*quoratev1.ScheduleLimitsRequest{dry, lessHiggs(), lessHiggs()} {
		answer, err := d.trees().ScheduleLimits(t.Context(), r)
		want := &quoratev1.ScheduledLimit{
			Id: "less", Tree: "cern", Node: "physics/higgs", Adjustments: setCores(4), BeginsAt: afterSecond(10),
			EndsAt: afterSecond(40), Actor: "ann", Reason: "repairs",
		}
		if err != nil || !proto.Equal(answer.GetLimit(), want) || answer.GetWrite().GetIndex() == 0 {
			t.Fatalf("scheduled %v, %v", answer, err)
		}
	}
	d.wantCores(t, "10 of 10, changes: 10")
	if _, err := d.allocations().Allocate(t.Context(), request("six", "cern:physics/higgs", 6)); err != nil {
		t.Fatal(err)
	}
	d.startCivil(10)
	d.wantCores(t, "4 of 10, changes: 40")
	list, err := d.trees().ListScheduledLimits(t.Context(), &quoratev1.ListScheduledLimitsRequest{})
	if err != nil || len(list.GetLimits()) != 1 || !list.GetLimits()[0].GetInForce() ||
		!list.GetCivilAt().AsTime().Equal(afterSecond(10).AsTime()) {
		t.Errorf("the list is %v, %v", list, err)
	}
	d.startCivil(40)
	d.startCivil(41)
	d.wantCores(t, "10 of 10, changes: never")
	d.wantScheduleEvents(t, "SCHEDULED by ann", "STARTED by system/calendar", "ENDING by system/calendar",
		"ENDED by system/calendar")
}

func (d *testServer) wantScheduleEvents(t *testing.T, want ...string) {
	t.Helper()
	page, err := d.allocations().ListEvents(t.Context(), &quoratev1.ListEventsRequest{
		Tree: "cern", Node: "physics", Id: "less",
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range page.GetEvents() {
		kind, found := strings.CutPrefix(e.GetKind().String(), "EVENT_KIND_LIMIT_")
		if got = append(got, kind+" by "+e.GetActor()); !found || e.GetScheduled().GetLimit().GetId() != "less" {
			t.Errorf("an event is %v", e)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the events are %q; want %q", got, want)
	}
}

// TestCancelScheduledLimit: one that is in force ends at once, and a second cancellation finds none.
func TestCancelScheduledLimit(t *testing.T) {
	d := oneNode(t)
	d.startCivil(0)
	r := lessHiggs()
	r.BeginsAt = nil
	for again := range 2 {
		answer, err := d.trees().ScheduleLimits(t.Context(), r)
		if err != nil || !answer.GetLimit().GetInForce() || answer.GetWrite().GetRepetition() != (again == 1) ||
			answer.GetLimit().GetBeginsAt().AsTime().Unix() != 1_000 {
			t.Fatalf("scheduled from now on: %v, %v", answer, err)
		}
		d.startCivil(5)
	}
	d.wantCores(t, "4 of 10, changes: 40")
	for _, step := range []struct {
		dry   bool
		want  connect.Code
		limit string
	}{
		{true, 0, "4 of 10, changes: 40"},
		{false, 0, "10 of 10, changes: never"},
		{false, connect.CodeNotFound, "10 of 10, changes: never"},
	} {
		answer, err := d.trees().CancelScheduledLimit(t.Context(), &quoratev1.CancelScheduledLimitRequest{
			Id: "less", Actor: "eve", DryRun: step.dry,
		})
		if step.want != 0 && connect.CodeOf(err) != step.want ||
			step.want == 0 && (err != nil || answer.GetLimit().GetId() != "less" || !answer.GetLimit().GetInForce() ||
				answer.GetWrite().GetIndex() == 0) {
			t.Errorf("cancelled %v, %v", answer, err)
		}
		d.wantCores(t, step.limit)
	}
}

// TestScheduledLimitsAreRefused with the field that is wrong.
func TestScheduledLimitsAreRefused(t *testing.T) {
	d := oneNode(t)
	d.startCivil(50)
	for name, test := range map[string]struct {
		change func(*quoratev1.ScheduleLimitsRequest)
		code   connect.Code
		text   string
	}{
		"it is over":  {func(*quoratev1.ScheduleLimitsRequest) {}, connect.CodeInvalidArgument, "ends_at"},
		"no end":      {func(r *quoratev1.ScheduleLimitsRequest) { r.EndsAt = nil }, connect.CodeInvalidArgument, "ends_at"},
		"no tree":     {func(r *quoratev1.ScheduleLimitsRequest) { r.Tree = "" }, connect.CodeInvalidArgument, "tree"},
		"nothing":     {func(r *quoratev1.ScheduleLimitsRequest) { r.Adjustments = nil }, connect.CodeInvalidArgument, "adjustments"},
		"not a value": {func(r *quoratev1.ScheduleLimitsRequest) { r.Adjustments["cores"].Value = nil }, connect.CodeInvalidArgument, "adjustments"},
		"no node": {func(r *quoratev1.ScheduleLimitsRequest) {
			r.EndsAt, r.Node = afterSecond(90), "x"
		}, connect.CodeNotFound, "x"},
		"no rule": {func(r *quoratev1.ScheduleLimitsRequest) {
			r.Every = "someday"
		}, connect.CodeInvalidArgument, `every: "someday" are not days`},
		"no window": {func(r *quoratev1.ScheduleLimitsRequest) {
			r.Every = "daily 20:00-21:00"
		}, connect.CodeInvalidArgument, `ends_at: no window of "daily 20:00-21:00 UTC" is left before 1970-01-01T00:17:20Z`},
		"above the parent": {func(r *quoratev1.ScheduleLimitsRequest) {
			r.EndsAt, r.Adjustments = afterSecond(90), setCores(21)
		}, connect.CodeFailedPrecondition, "from 1970-01-01T00:16:50Z on"},
	} {
		r := lessHiggs()
		test.change(r)
		_, err := d.trees().ScheduleLimits(t.Context(), r)
		if connect.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRecurringLimit: the server computes the windows of a rule, and shows the rule with its windows.
func TestRecurringLimit(t *testing.T) {
	d := oneNode(t)
	d.startCivil(50)
	r := lessHiggs()
	r.BeginsAt, r.EndsAt, r.Every = nil, timestamppb.New(time.Date(1970, 1, 9, 12, 0, 0, 0, time.UTC)),
		"Weekdays  18:00-08:00 Europe/Zurich"
	for again := range 2 {
		answer, err := d.trees().ScheduleLimits(t.Context(), r)
		if err != nil || answer.GetWrite().GetRepetition() != (again == 1) {
			t.Fatalf("scheduled %v, %v", answer, err)
		}
	}
	list, err := d.trees().ListScheduledLimits(t.Context(), &quoratev1.ListScheduledLimitsRequest{})
	if err != nil || len(list.GetLimits()) != 1 {
		t.Fatalf("the list is %v, %v", list, err)
	}
	limit := list.GetLimits()[0]
	// 1970-01-01 was a Thursday, and the window of the night before had begun.
	want := "1970-01-01T17:00:00Z 1970-01-02T17:00:00Z 1970-01-05T17:00:00Z 1970-01-06T17:00:00Z 1970-01-07T17:00:00Z " +
		"1970-01-08T17:00:00Z"
	var begins []string
	for _, w := range limit.GetWindows()[1:] {
		begins = append(begins, w.GetBeginsAt().AsTime().Format(time.RFC3339))
	}
	if got := strings.Join(begins, " "); got != want || limit.GetEvery() != "weekdays 18:00-08:00 Europe/Zurich" ||
		!limit.GetInForce() || limit.GetBeginsAt().AsTime().Unix() != 1_050 || limit.GetEndsAt().AsTime().Unix() != 7*60*60 ||
		!proto.Equal(limit.GetRuleEndsAt(), r.GetEndsAt()) || limit.GetRuleBeginsAt() != nil {
		t.Errorf("the limit is %v; it begins at\n%s, want\n%s", limit, got, want)
	}
}

// TestRulesBeginNow: what a rule would have had before civil time is left out, and 64 windows are left.
func TestRulesBeginNow(t *testing.T) {
	d := oneNode(t)
	const day = 24 * 60 * 60 * 1000
	d.node.applyAt(0, quota.SetCivilOffset{Offset: 1000 * day})
	r := lessHiggs()
	r.EndsAt, r.Every = nil, "daily 01:00-02:00"
	answer, err := d.trees().ScheduleLimits(t.Context(), r)
	if windows := answer.GetLimit().GetWindows(); err != nil || len(windows) != quota.MaxWindows ||
		windows[0].GetBeginsAt().AsTime().UnixMilli() != 1000*day+60*60*1000 {
		t.Errorf("scheduled %v, %v", answer, err)
	}
}

// TestSkippedWindowsAreShown with the reason.
func TestSkippedWindowsAreShown(t *testing.T) {
	d := oneNode(t)
	d.startCivil(0)
	r := lessHiggs()
	r.Every, r.EndsAt, r.Adjustments = "daily 01:00-02:00", nil, setCores(15)
	if _, err := d.trees().ScheduleLimits(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	const day = 24 * 60 * 60 * 1000
	window := quota.CivilWindow{From: 100*day + 60*60*1000, Until: 100*day + 2*60*60*1000}
	d.node.applyAt(1, quota.ScheduleLimits{
		ID: "holiday", Tree: "cern", Node: "physics", Windows: []quota.CivilWindow{window},
		Adjustments: []quota.LimitAdjustment{{Resource: "cores", Kind: quota.CapLimit, Amount: 14}},
	}, quota.SetCivilOffset{Offset: 90 * day}, quota.Expire{Most: 100}, quota.ExtendSchedule{
		ID: "less", Windows: []quota.CivilWindow{window},
	})
	list, err := d.trees().ListScheduledLimits(t.Context(), &quoratev1.ListScheduledLimitsRequest{})
	if err != nil || len(list.GetLimits()) != 2 || len(list.GetLimits()[1].GetSkipped()) != 1 {
		t.Fatalf("the list is %v, %v", list, err)
	}
	skipped := list.GetLimits()[1].GetSkipped()[0]
	from, until := skipped.GetBeginsAt().AsTime().UnixMilli(), skipped.GetEndsAt().AsTime().UnixMilli()
	if from != int64(window.From) || until != int64(window.Until) ||
		skipped.GetReason() != "policy strict of cern:physics forbids it for cores" {
		t.Errorf("skipped %v", skipped)
	}
}
