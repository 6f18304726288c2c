package ledger_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestWhatIf asks copies of random ledgers what random changes of the configuration would do to requests, then makes
// the changes in the ledgers themselves, and compares.
func TestWhatIf(t *testing.T) {
	var met affectedCounts
	t.Run("kinds", func(t *testing.T) {
		for name, commands := range map[string]*rapid.Generator[quota.Command]{
			"all": quotatest.AllCommands(), "borrowing": quotatest.BorrowingCommands(),
			"reshaping": quotatest.ReshapingCommands(),
			"cohorts":   cohortCommands(), "items": itemCommands(), "mixed": quotatest.MixedCommands(),
			"tight": tightCommands(),
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				times := 1
				if name == "tight" {
					times = 10
				}
				verify.Check(t, func(t *rapid.T) {
					for range times {
						whatIfs(t, name, commands, &met)
					}
				})
			})
		}
	})
	t.Logf("%+v", &met)
	if met.granted.Load() == 0 || met.preempted.Load() == 0 || met.admitted.Load() == 0 {
		t.Error("some effects never occurred")
	}
}

type affectedCounts struct{ granted, preempted, revoked, cancelled, admitted atomic.Int64 }

func (c *affectedCounts) String() string {
	return fmt.Sprintf("%d granted, %d preempted, %d revoked, %d cancelled, %d admitted", c.granted.Load(),
		c.preempted.Load(), c.revoked.Load(), c.cancelled.Load(), c.admitted.Load())
}

func (c *affectedCounts) count(e *quota.Effects) {
	c.granted.Add(int64(e.Queue.Granted.Total))
	c.preempted.Add(int64(e.Queue.Preempted.Total))
	c.revoked.Add(int64(e.Queue.Revoked.Total))
	c.cancelled.Add(int64(e.Queue.Cancelled.Total))
	c.admitted.Add(int64(len(e.Admitted)))
}

func whatIfs(t *rapid.T, kind string, commands *rapid.Generator[quota.Command], met *affectedCounts) {
	bounds := quota.DefaultBounds()
	bounds.TombstoneSpan = 4
	if die(t, 4) == 0 {
		bounds.Held, bounds.Waiting, bounds.Nodes = 3, 4, 12
	}
	l, stamp := ledger.New(bounds), quota.Stamp{At: 1}
	for _, name := range []string{"t", "u"} {
		tree := quotatest.BorrowingTree(name).Draw(t, "tree")
		switch {
		case kind == "items" && name == "t":
			tree = itemTree(t)
		case kind == "tight":
			tree = tightTree(t, name)
		}
		l.Apply(stamp, tree)
	}
	for range 10 {
		for range 5 {
			stamp.At += quota.Instant(die(t, 3))
			l.Apply(stamp, patient(t, commands.Draw(t, "command")))
		}
		c := commands.Draw(t, "asked")
		switch {
		case configures(c):
		case kind == "tight" && die(t, 3) > 0:
			c = tightTree(t, "t")
		default:
			c = changeOfAll(t, l.Sandbox())
		}
		scratch, err := ledger.CopyForPlans(bounds, l.Format(), l.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		dry := scratch.Sandbox().WhatIf(ledger.Origin{Index: 1}, c)
		before := requestsOf(l)
		out := l.Apply(quota.Stamp{At: l.Reader().Now()}, c)
		if out.Refused != nil || out.Repeated {
			continue
		}
		if diff := gocmp.Diff(out.Configuration.Over, dry.Configuration.Over); diff != "" {
			t.Fatalf("%s: what is over (-real +dry run):\n%s", brief(c), diff)
		}
		happened := before.compare(l, out.Configuration.Changes)
		slices.SortFunc(dry.Configuration.Effects.Queue.Preempted.List, byID)
		slices.SortFunc(dry.Configuration.Effects.Queue.Revoked.List, byID)
		slices.SortFunc(dry.Configuration.Effects.Queue.Cancelled.List, byID)
		slices.SortFunc(dry.Configuration.Effects.Queue.SetAside.List, byID)
		got := quota.Effects{Queue: dry.Configuration.Effects.Queue, Admitted: dry.Configuration.Effects.Admitted}
		if diff := gocmp.Diff(happened, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s: what happens to requests (-real +dry run):\n%s", brief(c), diff)
		}
		met.count(&got)
	}
}

func tightTree(t *rapid.T, name string) quota.ApplyTrees {
	limit := func(most int) []quota.ResourceLimit {
		return []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(quota.Amount(die(t, most)))}}
	}
	spec := quota.TreeSpec{
		Name: name, Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}},
		TreeSettings: quota.TreeSettings{Leases: quota.LeaseSettings{Grace: quota.Span(die(t, 4))}},
		Nodes:        []quota.NodeSpec{{Policy: "borrowing", Limits: limit(12)}},
	}
	for _, path := range []string{"a", "b", "c", "a/x"} {
		if path != "c" || die(t, 3) > 0 {
			spec.Nodes = append(spec.Nodes, quota.NodeSpec{Path: path, Hard: die(t, 2) == 0, Limits: limit(6)})
		}
	}
	return quota.ApplyTrees{Trees: []quota.TreeSpec{spec}}
}

// tightCommands are requests of many priorities for little, and few releases.
func tightCommands() *rapid.Generator[quota.Command] {
	return rapid.Custom(func(t *rapid.T) quota.Command {
		id := fmt.Sprintf("r%d", die(t, 40))
		if die(t, 8) == 0 {
			return quota.Release{ID: id}
		}
		return quota.Allocate{ID: id, Claims: []quota.Claim{{
			Tree: []string{"t", "t", "t", "u"}[die(t, 4)], Node: []string{"a", "b", "c", "a/x"}[die(t, 4)],
			Amounts:  quota.Vector{{Resource: "cpu", Amount: quota.Amount(1 + die(t, 4))}},
			Standing: quota.Standing{Priority: int64(die(t, 4))},
		}}}
	})
}

func byID(a, b quota.AffectedRequest) int { return cmp.Compare(a.ID, b.ID) }

type requests struct {
	waiting []quota.AllocationInfo
	held    []quota.AllocationInfo
	// denied are those of recent denials that would be denied again, newest first.
	denied []quota.Allocate
}

func requestsOf(l *ledger.Ledger) requests {
	var r requests
	for _, w := range wholeQueue(l.Sandbox()) {
		r.waiting = append(r.waiting, w.Allocation)
	}
	page, refused := l.Reader().Allocations(quota.AllocationFilter{}, 0, 1000)
	if refused != nil {
		panic(refused)
	}
	r.held = page.Allocations
	known := map[string]bool{}
	for _, e := range slices.Backward(l.Reader().Events(quota.EventFilter{Kind: quota.EventDenied}, 10_000).Events) {
		_, isFree := l.Reader().Allocation(e.ID)
		if known[e.ID] || isFree == nil {
			continue
		}
		known[e.ID] = true
		if d := l.Sandbox().DryRun(*e.Request).Decision; d == nil || !d.Granted {
			r.denied = append(r.denied, *e.Request)
		}
	}
	return r
}

func (r requests) compare(l *ledger.Ledger, changes []quota.Change) quota.Effects {
	q := &quota.QueueEffects{}
	fences := map[string]uint64{}
	for _, w := range r.waiting {
		now, err := l.Reader().Allocation(w.ID)
		if err != nil {
			panic(err)
		}
		switch {
		case now.Fence > 0:
			fences[w.ID] = now.Fence
			add(&q.Granted, w.ID, "")
		case now.State == quota.Cancelled:
			add(&q.Cancelled, w.ID, "")
		case waitsAside(now) && !waitsAside(w):
			add(&q.SetAside, w.ID, "")
		}
		if now.State == quota.WasPreempted {
			add(&q.Preempted, w.ID, now.PreemptedBy) // granted and preempted at once
		}
		if now.RevokedBy != "" {
			add(&q.Revoked, w.ID, now.RevokedBy)
		}
	}
	byFence := func(a, b quota.AffectedRequest) int { return cmp.Compare(fences[a.ID], fences[b.ID]) }
	slices.SortFunc(q.Granted.List, byFence)
	for _, h := range r.held {
		now, err := l.Reader().Allocation(h.ID)
		if err != nil {
			panic(err)
		}
		switch {
		case now.State == quota.WasPreempted:
			add(&q.Preempted, h.ID, now.PreemptedBy)
		case now.RevokedBy != h.RevokedBy:
			add(&q.Revoked, h.ID, now.RevokedBy)
		}
	}
	for _, list := range []*quota.Affected{&q.Preempted, &q.Revoked, &q.Cancelled, &q.SetAside} {
		slices.SortFunc(list.List, byID)
	}
	return quota.Effects{Queue: q, Admitted: r.admitted(l, changes)}
}

// waitsAside is true for a request that waits for higher limits only.
func waitsAside(a quota.AllocationInfo) bool {
	if a.State != quota.Waiting {
		return false
	}
	places := a.Waiting.Alternatives
	if len(places) == 0 {
		places = []quota.WaitingPlace{{Line: a.Waiting.Line}}
	}
	return !slices.ContainsFunc(places, func(p quota.WaitingPlace) bool {
		return !strings.Contains(p.Line, "a higher limit of ")
	})
}

func (r requests) admitted(l *ledger.Ledger, changes []quota.Change) []string {
	var ids []string
	for _, request := range r.denied {
		touches := func(c quota.Change) bool {
			return c.Tree == "" || slices.ContainsFunc(claimsOfAny(&request),
				func(claim quota.Claim) bool { return claim.Tree == c.Tree })
		}
		d := l.Sandbox().DryRun(request).Decision
		if slices.ContainsFunc(changes, touches) && d != nil && d.Granted {
			ids = append(ids, request.ID)
		}
	}
	return ids
}

func add(to *quota.Affected, id, winner string) {
	to.List = append(to.List, quota.AffectedRequest{ID: id, By: winner})
	to.Total++
}

func claimsOfAny(r *quota.Allocate) []quota.Claim {
	return slices.Concat(r.Claims, slices.Concat(r.AnyOf...))
}
