package ledger_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestHoldersInTheWay compares who an explanation names with what the list of allocations says, in random ledgers.
func TestHoldersInTheWay(t *testing.T) {
	t.Parallel()
	var principals, denials, ahead atomic.Int64
	var seen [quota.OfHold + 1]atomic.Int64
	verify.Check(t, func(t *rapid.T) {
		l := ledger.New(quota.DefaultBounds())
		for _, name := range []string{"t", "u"} {
			c := quotatest.MixedTree(name).Draw(t, "tree")
			c.Trees[0].Overtake = quota.Span(1 + die(t, 12))
			if die(t, 2) == 0 {
				for i := range c.Trees[0].Nodes {
					c.Trees[0].Nodes[i].Policy = ""
				}
				c.Trees[0].Nodes[0].Policy = "open"
			}
			l.Apply(quota.Stamp{}, c)
		}
		compare := func(d quota.Decision, before []quota.QueuedInfo, own string) {
			for _, h := range d.Holders {
				v := violationOf(t, d.Violations, h)
				if v.Kind == quota.OfResource || v.Kind == quota.OfApplications {
					compareHolders(t, l, v, h, own)
				}
				compareAhead(t, l, before, d.Violations, h)
				if n := len(h.Ahead) + h.OtherAhead; v.Kind == quota.OfQueue && quota.Amount(n) != v.Used {
					t.Fatalf("%+v: %d are ahead", v, n)
				}
				seen[v.Kind].Add(1)
				if h.Holder.Kind != quota.TheNode {
					principals.Add(1)
				}
				ahead.Add(int64(len(h.Ahead)))
			}
		}
		for i := range 300 {
			c := quotatest.MixedCommands().Draw(t, "command")
			if r, isRequest := c.(quota.Allocate); isRequest {
				r.ID = fmt.Sprint("probe", i)
				if explained := l.Sandbox().Explain(r).Decision; explained != nil {
					compare(*explained, slices.DeleteFunc(waitingRequests(t, l), func(q quota.QueuedInfo) bool {
						return q.Allocation.Priority < r.Priority
					}), "")
				}
			}
			if resize, ok := resizeOfHeld(t, l); ok && die(t, 8) == 0 {
				c = resize
			}
			if i%3 > 0 {
				c = patient(t, c)
			}
			out := l.Apply(quota.Stamp{At: quota.Instant(i)}, c)
			if queue := waitingRequests(t, l); len(queue) > 0 {
				at := die(t, len(queue))
				id := queue[at].Allocation.ID
				d, _, _, refused := l.Sandbox().ExplainID(id)
				if refused != nil {
					t.Fatal(refused)
				}
				compare(d, queue[:at], id)
				page, _ := l.Sandbox().WaitingWithBlockers(quota.QueueFilter{}, nil, 100)
				if at < len(page.Requests) {
					quotatest.RequireSame(t, "who blocks "+id, d.Holders, page.Requests[at].Decision.Holders)
				}
			}
			if r, isRequest := c.(quota.Allocate); isRequest && isDenied(out) {
				compareDenial(t, l, r)
				denials.Add(1)
			}
		}
	})
	if denials.Load() == 0 {
		t.Error("no denial was compared")
	}
	if seen[quota.OfResource].Load() == 0 || principals.Load() == 0 {
		t.Errorf("only %d levels of users and groups were compared", principals.Load())
	}
	few := min(seen[quota.OfApplications].Load(), seen[quota.OfQueue].Load(), ahead.Load())
	if verify.Enabled() && few < 5 {
		t.Errorf("of applications, of the queue, or of the requests ahead only %d were compared", few)
	}
}

func violationOf(t *rapid.T, violations []quota.Violation, h quota.LevelHolders) quota.Violation {
	for _, v := range violations {
		if v.Tree == h.Tree && v.Node == h.Node && v.Resource == h.Resource && v.Kind == h.Kind && v.Holder == h.Holder &&
			v.Item == h.Item && v.Alternative == h.Alternative {
			return v
		}
	}
	t.Fatalf("%+v is not violated", h)
	return quota.Violation{}
}

// compareAhead lists every request whose blocker is that of a level, among those that come first.
func compareAhead(
	t *rapid.T, l *ledger.Ledger, before []quota.QueuedInfo, violations []quota.Violation, got quota.LevelHolders,
) {
	lines := linesOf(l, got)
	var want []string
	for _, q := range before {
		w := *q.Allocation.Waiting
		places := w.Alternatives
		if places == nil {
			places = []quota.WaitingPlace{{Line: w.Line}}
		}
		for _, place := range places {
			if slices.Contains(lines, place.Line) {
				want = append(want, fmt.Sprintf("%d. %s, alternative %d, since %d", len(want)+1, q.Allocation.ID,
					place.Alternative, w.Since))
			}
		}
	}
	isCounted := slices.ContainsFunc(violations, func(v quota.Violation) bool {
		at := got
		at.Resource, at.Kind, at.Item = v.Resource, v.Kind, v.Item
		return v.Kind == quota.OfQueue && v.Tree == at.Tree && v.Node == at.Node && v.Holder == at.Holder &&
			slices.Equal(linesOf(l, at), lines)
	})
	if isCounted && got.Kind != quota.OfQueue {
		want = nil
	}
	var listed []string
	for _, b := range got.Ahead {
		listed = append(listed, fmt.Sprintf("%d. %s, alternative %d, since %d", b.Position, b.ID, b.Alternative, b.Since))
	}
	if diff := cmp.Diff(want[:min(len(want), quota.MaxBlockers)], listed, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%+v: ahead in %v (-listed +explained):\n%s", got, lines, diff)
	}
	if others := max(0, len(want)-quota.MaxBlockers); got.OtherAhead != others {
		t.Fatalf("%+v: %d others are ahead, want %d", got, got.OtherAhead, others)
	}
}

// linesOf are the names that the queue of a level may have. One with soft borrowing is for everything.
func linesOf(l *ledger.Ledger, h quota.LevelHolders) []string {
	node := h.Node
	for !isNode(l, h.Tree, node) { // the request would make it
		node = quotatest.Above(node)
	}
	at := " at " + quota.Place(h.Tree, node)
	what := h.Resource
	if what == "" {
		what = "applications"
	}
	if h.Kind == quota.OfHold {
		return []string{"the end of the hold" + at}
	}
	lines := []string{h.Holder.String() + what + at}
	if h.Holder.Kind == quota.TheNode {
		lines = append(lines, "room"+at)
	}
	if h.Kind == quota.OfQueue && h.Resource == "" && h.Holder.Kind == quota.TheNode {
		lines = []string{"room" + at}
	}
	return lines
}

func isNode(l *ledger.Ledger, tree, node string) bool {
	_, refused := l.Reader().Usage(quota.UsageQuery{Tree: tree, Node: node, Max: 1})
	return refused == nil
}

func waitingRequests(t *rapid.T, l *ledger.Ledger) (list []quota.QueuedInfo) {
	var after *quota.QueueTurn
	for {
		page, refused := l.Sandbox().Waiting(quota.QueueFilter{}, after, 100)
		if refused != nil {
			t.Fatal(refused)
		}
		for _, q := range page.Requests {
			if resize := q.Allocation.Resize; resize != nil {
				q.Allocation.Waiting = &resize.Waiting
			}
			list = append(list, q)
		}
		if after = page.Next; after == nil {
			return list
		}
	}
}

func isDenied(out ledger.Outcome) bool {
	return out.Decision != nil && !out.Decision.Granted && !out.Decision.Waiting && !out.Repeated
}

func compareDenial(t *rapid.T, l *ledger.Ledger, denied quota.Allocate) {
	explained := l.Sandbox().Explain(denied).Decision
	reader, refused := l.Reader().ReaderOf(&access.Caller{})
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
		h.OtherAllocations += max(0, len(h.Allocations)-quota.MaxDenialHolders)
		h.Allocations = h.Allocations[:min(len(h.Allocations), quota.MaxDenialHolders)]
		h.OtherAhead += max(0, len(h.Ahead)-quota.MaxDenialHolders)
		h.Ahead = h.Ahead[:min(len(h.Ahead), quota.MaxDenialHolders)]
		want = append(want, h)
	}
	if diff := cmp.Diff(want, ledger.DenialHolders(reader, denied.ID), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%+v (-explained +denied):\n%s", denied, diff)
	}
}

func compareHolders(t *rapid.T, l *ledger.Ledger, v quota.Violation, got quota.LevelHolders, own string) {
	parts := listParts(l, v)
	groups := map[quota.HolderGroup]quota.HolderGroup{}
	sum := quota.Amount(0)
	for _, p := range parts {
		key := quota.HolderGroup{Node: p.node, User: p.info.Principal.User, Owner: p.info.Owner}
		g := groups[key]
		groups[key] = quota.HolderGroup{
			Node: key.Node, User: key.User, Owner: key.Owner, Amount: g.Amount + p.amount, Claims: g.Claims + p.claims,
		}
		sum += p.amount
	}
	list := slices.Collect(maps.Values(groups))
	less := cmpopts.SortSlices(func(a, b quota.HolderGroup) bool { return fmt.Sprint(a) < fmt.Sprint(b) })
	if diff := cmp.Diff(list, got.Groups, less, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%+v: holders (-listed +explained):\n%s", v, diff)
	}
	// What a resize under soft borrowing has is not part of what is used.
	if sum+got.Others != v.Used && (own == "" || got.Others > 0) {
		t.Fatalf("%+v: %d are listed and %d are of others", v, sum, got.Others)
	}
	want := slices.DeleteFunc(blockersOf(parts), func(b quota.Blocker) bool { return b.ID == own })
	if diff := cmp.Diff(want[:min(len(want), quota.MaxBlockers)], got.Allocations, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%+v: allocations (-listed +explained):\n%s", v, diff)
	}
	if others := max(0, len(want)-quota.MaxBlockers); got.OtherAllocations != others {
		t.Fatalf("%+v: %d other allocations, want %d", v, got.OtherAllocations, others)
	}
}

// partOf is what one claim has of a limit, or one application.
type partOf struct {
	info   quota.AllocationInfo
	node   string
	amount quota.Amount
	claims int
}

func listParts(l *ledger.Ledger, v quota.Violation) []partOf {
	var parts []partOf
	runs := map[string]int{} // where each application is in the list
	page, _ := l.Reader().Allocations(quota.AllocationFilter{}, 0, 1000)
	for _, a := range page.Allocations { // the oldest first
		homes := ledger.Homes(l.Reader(), a.Fence)
		for i, c := range a.Claims {
			node := c.Placed
			if v.Holder.Kind != quota.TheNode || v.Kind == quota.OfApplications {
				// This is not always the requested node: that may have been unknown at the time and be there now.
				node = homes[i]
			}
			if c.Tree != v.Tree || !quota.IsWithin(node, v.Node) || !holds(a, c, v.Holder) {
				continue
			}
			if v.Kind == quota.OfApplications {
				run := a.Principal.User + "/" + a.Principal.Application
				if v.Holder.Kind == quota.AGroup { // it counts one of all its users
					run = a.Principal.Application
				}
				if at, known := runs[run]; known {
					parts[at].claims++
				} else if a.Principal.Application != "" {
					runs[run] = len(parts)
					parts = append(parts, partOf{a, node, 1, 1})
				}
				continue
			}
			for _, component := range c.Amounts {
				if component.Resource == v.Resource && component.Amount > 0 {
					parts = append(parts, partOf{a, node, component.Amount, 1})
				}
			}
		}
	}
	return parts
}

func blockersOf(parts []partOf) []quota.Blocker {
	var list []quota.Blocker
	largest := map[string]quota.Amount{}
	for _, p := range parts {
		at := slices.IndexFunc(list, func(b quota.Blocker) bool { return b.ID == p.info.ID })
		if at < 0 {
			at = len(list)
			list = append(list, quota.Blocker{
				ID: p.info.ID, User: p.info.Principal.User, Application: p.info.Principal.Application, Owner: p.info.Owner,
				Since: p.info.GrantedAt, SinceWall: p.info.GrantedWall, ExpiresAt: max(p.info.ExpiresAt, p.info.ReservedUntil),
			})
		}
		list[at].Amount += p.amount
		if p.amount > largest[p.info.ID] {
			largest[p.info.ID], list[at].Node = p.amount, p.node
		}
	}
	slices.SortFunc(list, func(a, b quota.Blocker) int {
		if a.Amount != b.Amount {
			return int(b.Amount - a.Amount)
		}
		return strings.Compare(a.ID, b.ID)
	})
	return list
}

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
	if n := len(got.Allocations); n != quota.MaxBlockers || got.Allocations[0].ID != "by-29" ||
		got.Allocations[19].ID != "by-10" || got.OtherAllocations != 910 {
		t.Errorf("%d allocations, %+v", n, got)
	}
	for i := range 30 {
		l.Apply(quota.Stamp{At: 2}, quota.Allocate{
			ID: fmt.Sprint("waits-", i), Claims: cpuAt("a", 1000), Mode: quota.Wait, Priority: int64(i % 2),
		})
	}
	got = l.Sandbox().Explain(quota.Allocate{ID: "x", Claims: cpuAt("a", 1000)}).Decision.Holders[0]
	if n := len(got.Ahead); n != quota.MaxBlockers || got.Ahead[0].ID != "waits-1" || got.Ahead[15].ID != "waits-0" ||
		got.Ahead[15].Position != 16 || got.Ahead[15].Amount != 1000 || got.OtherAhead != 10 {
		t.Errorf("%d requests ahead, %+v", n, got)
	}
	l.Apply(quota.Stamp{At: 1}, quota.Allocate{ID: "x", Claims: cpuAt("a", 1000)})
	reader, _ := l.Reader().ReaderOf(&access.Caller{})
	list := ledger.DenialHolders(reader, "x")
	if len(list) != 1 || len(list[0].Groups) != quota.MaxDenialHolders || list[0].Others != 351 {
		t.Errorf("the denial names %+v", list)
	}
	if len(list[0].Allocations) != quota.MaxDenialHolders || list[0].OtherAllocations != 925 ||
		len(list[0].Ahead) != quota.MaxDenialHolders || list[0].OtherAhead != 25 {
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
		for id, account := range map[string]string{"hidden": "root", "waits": "hans"} {
			waiting := claimCores(id, "atlas/physics/higgs", 1)
			if id == "hidden" {
				waiting = claimCores(id, "atlas", 1)
				waiting.Priority = 1 // comes first
			}
			waiting.Mode, waiting.WaitFor = quota.Wait, 60_000
			g.apply(account, waiting)
		}
		s, refused := g.ledger.Sandbox().ReaderOf(callerOf("hans"))
		if refused != nil {
			t.Fatal(refused)
		}
		var got []string
		for _, h := range s.Explain(claimCores(sharedID("x"), "atlas/physics/higgs", 8)).Decision.Holders {
			text := h.Node + ": "
			for _, group := range h.Groups {
				text += fmt.Sprintf("%d of %s, ", group.Amount, group.Owner)
			}
			for _, a := range h.Allocations {
				text += quota.IDIn(a.ID) + ", "
			}
			for _, a := range h.Ahead {
				text += fmt.Sprintf("%d. %s, ", a.Position, quota.IDIn(a.ID))
			}
			got = append(got, text+fmt.Sprintf("others: %d, %d allocations, %d ahead", h.Others, h.OtherAllocations,
				h.OtherAhead))
		}
		want := []string{"atlas/physics/higgs: 2 of account/hans, mine, others: 3, 1 allocations, 0 ahead"}
		switch see {
		case quota.SeeTotals:
			want = append(want, "atlas: 2 of account/hans, mine, 2. waits, others: 58, 2 allocations, 1 ahead")
		case quota.SeeNames:
			want = append(want, "atlas: 2 of account/hans, mine, 0. waits, others: 0, 0 allocations, 0 ahead")
		case quota.SeeNothing:
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v: hans is told (-want +got):\n%s", see, diff)
		}
	}
}
