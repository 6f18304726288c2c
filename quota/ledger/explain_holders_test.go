package ledger_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/access"
	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestHoldersInTheWay compares who an explanation names with what the list of allocations says, in random ledgers.
func TestHoldersInTheWay(t *testing.T) {
	t.Parallel()
	var levels, principals, denials atomic.Int64
	verify.Check(t, func(t *rapid.T) {
		l := ledger.New(quota.DefaultBounds())
		for _, name := range []string{"t", "u"} {
			l.Apply(quota.Stamp{}, quotatest.MixedTree(name).Draw(t, "tree"))
		}
		for i := range 300 {
			c := quotatest.MixedCommands().Draw(t, "command")
			if r, isRequest := c.(quota.Allocate); isRequest {
				r.ID = fmt.Sprint("probe", i)
				explained := l.Sandbox().Explain(r).Decision
				if explained == nil {
					continue
				}
				for _, h := range explained.Holders {
					compareHolders(t, l, explained.Violations, h)
					levels.Add(1)
					if h.Holder.Kind != quota.TheNode {
						principals.Add(1)
					}
				}
			}
			out := l.Apply(quota.Stamp{At: quota.Instant(i)}, c)
			if r, isRequest := c.(quota.Allocate); isRequest && isDenied(out) {
				compareDenial(t, l, r)
				denials.Add(1)
			}
		}
	})
	if denials.Load() == 0 {
		t.Error("no denial was compared")
	}
	t.Logf("%d levels were compared, %d of users and groups", levels.Load(), principals.Load())
	if levels.Load() == 0 || principals.Load() == 0 {
		t.Errorf("only %d levels were compared, %d of users and groups", levels.Load(), principals.Load())
	}
}

func isDenied(out ledger.Outcome) bool {
	return out.Decision != nil && !out.Decision.Granted && !out.Decision.Waiting && !out.Repeated
}

// compareDenial: a denial names the largest of those whom an explanation names.
func compareDenial(t *rapid.T, l *ledger.Ledger, denied quota.Allocate) {
	explained := l.Sandbox().Explain(denied).Decision
	reader, refused := l.View().ReaderOf(&access.Caller{})
	if refused != nil || explained == nil {
		t.Fatal(refused, explained)
	}
	var want []quota.LevelHolders
	for _, h := range explained.Holders {
		for len(h.Groups) > quota.MaxDenialHolders {
			last := len(h.Groups) - 1
			h.Others += h.Groups[last].Amount
			h.Groups = h.Groups[:last]
		}
		want = append(want, h)
	}
	if diff := cmp.Diff(want, reader.DenialHolders(denied.ID), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%+v (-explained +denied):\n%s", denied, diff)
	}
}

// compareHolders lists every claim that counts against a level, one by one.
func compareHolders(t *rapid.T, l *ledger.Ledger, violations []quota.Violation, got quota.LevelHolders) {
	at := slices.IndexFunc(violations, func(v quota.Violation) bool {
		return v.Tree == got.Tree && v.Node == got.Node && v.Resource == got.Resource && v.Kind == got.Kind &&
			v.Holder == got.Holder && v.Item == got.Item
	})
	if at < 0 {
		t.Fatalf("%+v is not violated", got)
	}
	want := map[quota.HolderGroup]quota.HolderGroup{}
	sum := quota.Amount(0)
	page, _ := l.View().Allocations(quota.AllocationFilter{}, 0, 1000)
	for _, a := range page.Allocations {
		homes := l.View().Homes(a.Fence)
		for i, c := range a.Claims {
			node := c.Placed
			if got.Holder.Kind != quota.TheNode {
				// This is not always the requested node: that may have been unknown at the time and be there now.
				node = homes[i]
			}
			if c.Tree != got.Tree || !quota.IsWithin(node, got.Node) || !holds(a, c, got.Holder) {
				continue
			}
			for _, component := range c.Amounts {
				if component.Resource == got.Resource && component.Amount > 0 {
					key := quota.HolderGroup{Node: node, User: a.Principal.User, Owner: a.Owner}
					g := want[key]
					want[key] = quota.HolderGroup{
						Node: node, User: key.User, Owner: key.Owner, Amount: g.Amount + component.Amount, Claims: g.Claims + 1,
					}
					sum += component.Amount
				}
			}
		}
	}
	var list []quota.HolderGroup
	for _, g := range want {
		list = append(list, g)
	}
	less := cmpopts.SortSlices(func(a, b quota.HolderGroup) bool { return fmt.Sprint(a) < fmt.Sprint(b) })
	if diff := cmp.Diff(list, got.Groups, less, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%+v: holders (-listed +explained):\n%s", violations[at], diff)
	}
	if sum+got.Others != violations[at].Used {
		t.Fatalf("%+v: %d are listed and %d are of others", violations[at], sum, got.Others)
	}
}

// holds is true if a claim counts for a user or group.
func holds(a quota.AllocationInfo, c quota.ClaimInfo, h quota.Holder) bool {
	switch h.Kind {
	case quota.AUser:
		return a.Principal.User == h.Name
	case quota.AGroup:
		return c.Group == h.Name
	case quota.TheNode:
	}
	return true
}

// TestHoldersAreBounded: the largest holders are named, the others are one amount.
func TestHoldersAreBounded(t *testing.T) {
	l := crowdedQueue(t, 0, 1, "a")
	l.Apply(quota.Stamp{At: 1}, quota.SetLimits{
		Tree: "t", Limits: []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(5000)}},
	})
	l.Apply(quota.Stamp{At: 1}, quota.SetLimits{
		Tree: "t", Node: "a", Limits: []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(2000)}},
	})
	for i := range 30 {
		l.Apply(quota.Stamp{At: 1}, quota.Allocate{
			ID: fmt.Sprint("by-", i), Claims: cpuAt("a", quota.Amount(i+1)),
			Principal: quota.Principal{User: fmt.Sprintf("user-%02d", i)},
		})
	}
	d := l.Sandbox().Explain(quota.Allocate{ID: "x", Claims: cpuAt("a", 1000)}).Decision
	if len(d.Holders) != 1 {
		t.Fatalf("%+v", d)
	}
	got := d.Holders[0]
	if n := len(got.Groups); n != quota.MaxHolderGroups || got.Groups[0].Amount != 900 || got.Groups[0].Claims != 900 ||
		got.Groups[1].User != "user-29" || got.Groups[19].Amount != 12 || got.Others != 66 {
		t.Errorf("%d groups, %+v", n, got)
	}
	l.Apply(quota.Stamp{At: 1}, quota.Allocate{ID: "x", Claims: cpuAt("a", 1000)})
	reader, _ := l.View().ReaderOf(&access.Caller{})
	list := reader.DenialHolders("x")
	if len(list) != 1 || len(list[0].Groups) != quota.MaxDenialHolders || list[0].Others != 351 {
		t.Errorf("the denial names %+v", list)
	}
}

// TestHoldersAsFarAsTheyAreSeen: a caller is told its own holders, and those where it may read holders; the rest is one
// amount, unless the tree hides the total.
func TestHoldersAsFarAsTheyAreSeen(t *testing.T) {
	for _, see := range []quota.TenantsSee{quota.SeeTotals, quota.SeeNames, quota.SeeNothing} {
		trees := cernTree()
		trees[0].TenantsSee = see
		g := newGuarded(t, trees, "anna", "peter", "hans", "heidi", "carl")
		g.must("hans", claimCores("mine", "atlas/physics/higgs", 2))
		g.must("heidi", claimCores("hers", "atlas/physics/higgs", 3))
		g.must("root", claimCores("above", "atlas", 55))
		s, refused := g.ledger.Sandbox().ReaderOf(callerOf("hans"))
		if refused != nil {
			t.Fatal(refused)
		}
		var got []string
		for _, h := range s.Explain(claimCores("x", "atlas/physics/higgs", 8)).Decision.Holders {
			text := h.Node + ": "
			for _, group := range h.Groups {
				text += fmt.Sprintf("%d of %s, ", group.Amount, group.Owner)
			}
			got = append(got, text+fmt.Sprintf("%d others", h.Others))
		}
		want := []string{"atlas/physics/higgs: 2 of account/hans, 3 others"}
		switch see {
		case quota.SeeTotals:
			want = append(want, "atlas: 2 of account/hans, 58 others")
		case quota.SeeNames:
			want = append(want, "atlas: 2 of account/hans, 0 others")
		case quota.SeeNothing:
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v: hans is told (-want +got):\n%s", see, diff)
		}
	}
}
