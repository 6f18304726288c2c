package ledger_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

func whatIf(t rapid.TB, l *ledger.Ledger, caller *access.Caller, c quota.Command) ledger.Outcome {
	t.Helper()
	scratch, err := ledger.CopyForPlans(quota.DefaultBounds(), l.Format(), l.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	return scratch.Sandbox().At(wallNow).WhatIf(ledger.Origin{Caller: caller, Index: 1}, c)
}

func queueOf(t testing.TB, out ledger.Outcome) quota.QueueEffects {
	t.Helper()
	if out.Refused != nil || out.Configuration.Effects.Queue == nil || out.Configuration.Effects.Unjudged {
		t.Fatalf("%v %+v", out.Refused, out.Configuration)
	}
	return *out.Configuration.Effects.Queue
}

// TestWhatIfIsBounded: of many requests the first are listed, and all are counted.
func TestWhatIfIsBounded(t *testing.T) {
	l := crowdedQueue(t, 150, 1, "a")
	raise := quota.SetLimits{
		Tree: "t", Limits: []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(5000)}},
	}
	l.Apply(quota.Stamp{At: 1}, raise)
	raise.Node = "a"
	got := queueOf(t, whatIf(t, l, nil, raise)).Granted
	if got.Total != 150 || len(got.List) != quota.MaxOver || got.List[99].ID != jobID(99) {
		t.Errorf("%d of %d are listed, the last is %+v", len(got.List), got.Total, got.List[len(got.List)-1])
	}
}

// TestWhatIfWithoutACopy: without a copy the requests are not evaluated, unless there are none.
func TestWhatIfWithoutACopy(t *testing.T) {
	change := quota.SetLimits{
		Tree: "t", Node: "a", Limits: []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(800)}},
	}
	for waiting, want := range map[int]bool{0: false, 1: true} {
		l := crowdedQueue(t, waiting, 1, "a")
		e := l.Sandbox().WhatIf(ledger.Origin{Index: 1}, change).Configuration.Effects
		if e.Unjudged != want || (e.Queue == nil) != want || l.Reader().NeedsCopy() != want {
			t.Errorf("%d wait: %+v", waiting, e)
		}
	}
	change.Limits[0].Limit = quota.AtMost(900) // as it is
	l := crowdedQueue(t, 1, 1, "a")
	if e := l.Sandbox().WhatIf(ledger.Origin{Index: 1}, change).Configuration.Effects; e.Unjudged {
		t.Errorf("no change: %+v", e)
	}
}

// TestWhatIfTellsWhatItsCallerMaySee: requests with claims where the caller may not read holders are left out.
func TestWhatIfTellsWhatItsCallerMaySee(t *testing.T) {
	trees := cernTree()
	secret := cernTree()[0]
	secret.Name = "secret"
	secret.Nodes[1].Bindings, secret.Nodes[2].Bindings = nil, nil
	g := newGuarded(t, append(trees, secret), "anna", "peter", "hans", "heidi", "carl")
	g.must("hans", claimCores("held", "atlas/physics/higgs", 10))
	open, both := claimCores("open", "atlas/physics/higgs", 2), claimCores("both", "atlas/physics/higgs", 2)
	also := claimCores("", "atlas/physics/higgs", 1).Claims[0]
	also.Tree = "secret"
	both.Claims = append(both.Claims, also)
	open.Mode, both.Mode = quota.Wait, quota.Wait
	g.apply("hans", both)
	g.apply("hans", open)
	g.apply("hans", claimCores("big", "atlas/physics/higgs", 14))
	for account, want := range map[string][]string{"peter": {"open"}, "root": {"both", "open"}} {
		out := whatIf(t, g.ledger, callerOf(account), setCores("atlas/physics/higgs", 14))
		var got []string
		for _, r := range queueOf(t, out).Granted.List {
			got = append(got, quota.IDIn(r.ID))
		}
		if diff := cmp.Diff(want, got); diff != "" || queueOf(t, out).Granted.Total != len(want) {
			t.Errorf("%s is told (-want +got):\n%s", account, diff)
		}
	}
	if out := whatIf(t, g.ledger, callerOf("hans"), setCores("atlas/physics/higgs", 14)); out.Refused == nil {
		t.Errorf("hans may plan %+v", out.Configuration)
	}
}

// TestWhatIfOfAnApproval: the dry run of the last approval of a request for limits tells who would be granted.
func TestWhatIfOfAnApproval(t *testing.T) {
	g := newGuarded(t, cernTree(), "anna", "peter", "hans", "heidi", "carl")
	g.must("hans", claimCores("held", "atlas/physics/higgs", 10))
	wanted := claimCores("wanted", "atlas/physics/higgs", 2)
	wanted.Mode = quota.Wait
	g.apply("hans", wanted)
	g.must("hans", askFor("atlas/physics/higgs", 12))
	out := whatIf(t, g.ledger, callerOf("peter"), quota.ApproveRequest{Number: 1, Digest: g.digestOf("peter", 1)})
	want := quota.Affected{List: []quota.AffectedRequest{{ID: sharedID("wanted")}}, Total: 1}
	if diff := cmp.Diff(want, queueOf(t, out).Granted); diff != "" {
		t.Error(diff)
	}
}

// BenchmarkWhatIf asks what the raise of a limit would do beside 100,000 held allocations and many waiting requests.
// The writer waits for the snapshot only.
func BenchmarkWhatIf(b *testing.B) {
	raise := quota.SetLimits{
		Tree: "t", Node: leafPath(4, 0), Limits: []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(20_000)}},
	}
	for _, waiting := range []int{1, 1000, 50_000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			l := filled(b, 100_000, 4, "t")
			full := raise
			full.Limits = []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(10_000)}}
			l.Apply(quota.Stamp{}, full)
			for i := range waiting {
				l.Apply(quota.Stamp{}, quota.Allocate{ID: fmt.Sprint("w", i), Claims: claimsAt(0, 4, "t"), Mode: quota.Wait})
			}
			for b.Loop() {
				if got := queueOf(b, whatIf(b, l, nil, raise)).Granted.Total; got != min(waiting, 10_000) {
					b.Fatalf("%d would be granted", got)
				}
			}
		})
	}
}
