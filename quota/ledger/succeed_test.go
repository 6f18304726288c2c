package ledger_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

func TestASuccessorTakesNothingBack(t *testing.T) {
	l := reloaded(t, leased(t), func(*ledger.AllocationImage) {})
	former := ledger.Header{
		Now: quota.Stamp{At: 60_000, Wall: 7}, Revision: 9, Fence: 40, NodeID: 41, ArrivalSeq: 42, Event: 43, StateSeq: 44,
		Arrival: 45, TreeVersion: 46,
	}
	l.Supersede(former, 1000)
	want := former
	want.Fence = 1040
	if got := l.Header(); got != want {
		t.Errorf("it goes on from %+v, want %+v", got, want)
	}
	a, refused := l.Reader().Allocation("job")
	if refused != nil || a.ExpiresAt != 70_000 || a.Fence != 1 {
		t.Errorf("the lease is %+v, %v; it must have its whole time again under its old fence", a, refused)
	}
	if at, waits := l.Reader().NextDue(); !waits || at != 70_000 {
		t.Errorf("the next Expire is due at %d, %v", at, waits)
	}
	before := l.Header()
	l.Supersede(ledger.Header{}, 1)
	if got := l.Header(); got.Fence != before.Fence+1 || got.Now != before.Now || got.Revision != before.Revision {
		t.Errorf("after a successor of nothing: %+v, before %+v", got, before)
	}
	next := job
	next.ID = "next"
	l.Apply(quota.Stamp{At: 1}, quota.Release{ID: "job"})
	if out := l.Apply(quota.Stamp{At: 1}, next); out.Allocation == nil || out.Now != 60_000 ||
		out.Allocation.Info().Fence != 1042 {
		t.Errorf("the next grant is %+v", out)
	}
}

// TestSuccessorsAreSound: no invariant is broken when any ledger succeeds another, and afterwards.
func TestSuccessorsAreSound(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		l := ledger.New(quota.DefaultBounds())
		at := quota.Instant(0)
		play := func(what string) {
			for _, c := range rapid.SliceOfN(quotatest.AllCommands(), 0, 30).Draw(t, what) {
				at += quota.Instant(rapid.IntRange(0, 5_000).Draw(t, "pause"))
				l.Apply(quota.Stamp{At: at}, c)
			}
		}
		play("before")
		before := l.Header()
		former := ledger.Header{
			Now:      quota.Stamp{At: quota.Instant(rapid.Int64Range(0, 1<<40).Draw(t, "former time"))},
			Fence:    rapid.Uint64Range(0, 1<<50).Draw(t, "former fence"),
			NodeID:   rapid.Uint64Range(0, 1000).Draw(t, "former node"),
			StateSeq: rapid.Uint64Range(0, 1000).Draw(t, "former state number"),
		}
		l.Supersede(former, 1<<40)
		if err := l.Check(); err != nil {
			t.Fatal(err)
		}
		if after := l.Header(); after.Fence <= max(before.Fence, former.Fence) ||
			after.Now.At < max(before.Now.At, former.Now.At) || after.NodeID < before.NodeID {
			t.Fatalf("%+v succeeds %+v as %+v", before, former, after)
		}
		play("after")
		if err := l.Check(); err != nil {
			t.Fatal(err)
		}
	})
}
