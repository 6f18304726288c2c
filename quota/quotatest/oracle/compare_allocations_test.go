package oracle

import (
	"math"
	"slices"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// compareAllocations reads all that are held, page by page, and all known ids.
func (p *pair) compareAllocations(t *rapid.T) {
	var want, got []quota.AllocationInfo
	for _, a := range p.oracle.held() {
		want = append(want, p.oracle.info(a))
	}
	for after, more := uint64(0), true; more; more = after != 0 {
		page, refused := p.ledger.Reader().Allocations(quota.AllocationFilter{}, after, 2)
		if refused != nil {
			t.Fatal(refused)
		}
		for _, info := range page.Allocations {
			got = append(got, plainInfo(info))
		}
		after = page.Next
	}
	quotatest.RequireSame(t, "held", want, got)
	for _, id := range p.ids() {
		info, refused := p.ledger.Reader().Allocation(id)
		a := p.oracle.find(id)
		if (a == nil) != (refused != nil) {
			t.Fatalf("allocation %s: the oracle has %+v, the ledger %+v", id, a, refused)
		}
		if a != nil {
			quotatest.RequireSame(t, "allocation "+id, p.oracle.info(a), plainInfo(info))
		}
	}
}

// ids are those of all requests so far, and some that may be unknown.
func (p *pair) ids() []string {
	ids := slices.Clone(quotatest.IDs)
	for _, a := range p.oracle.allocations {
		ids = append(ids, a.request.ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func plainInfo(info quota.AllocationInfo) quota.AllocationInfo {
	info.Reason, info.MadeRoom, info.Preempted = nil, nil, withoutReasons(info.Preempted)
	info.Waiting, info.Resize = nil, nil // see compareQueue
	return info
}

// withoutReasons drops what a test of its own compares, see TestReasons.
func withoutReasons(list []quota.Preempted) []quota.Preempted {
	list = slices.Clone(list)
	for i := range list {
		list[i].Reason = nil
	}
	return list
}

func (o *oracle) info(a *allocation) quota.AllocationInfo {
	info := quota.AllocationInfo{
		ID: a.request.ID, Labels: a.request.Labels, Fence: a.fence, GrantedAt: a.granted.At,
		GrantedWall: a.granted.Wall, State: a.state, ReservedUntil: a.until, Forced: a.forced, Preempted: a.preempted,
		Alternative: a.alternative, Unclaimed: a.unclaimed, Generation: a.generation, SplitFrom: a.splitFrom,
		Priority: a.asked.Priority, Principal: a.asked.Principal,
	}
	for i, c := range a.request.Claims {
		claim := quota.ClaimInfo{
			Tree: c.Tree, Node: c.Node, Amounts: slices.Clone(c.Amounts), Placed: a.placed[i], Standing: c.Standing,
			Group: a.groups[i],
		}
		if at := claimAt(a.asked.Claims, c.Tree, c.Node); at >= 0 {
			claim.Picks, claim.Ranges = a.asked.Claims[at].Picks, rangesOf(a.asked.Claims[at])
		}
		claim.Amounts = slices.DeleteFunc(claim.Amounts,
			func(c quota.Component) bool {
				return slices.ContainsFunc(claim.Picks, func(p quota.Pick) bool { return p.Resource == c.Resource })
			})
		info.Claims = append(info.Claims, claim)
	}
	o.addLease(a, &info)
	if a.ended != nil {
		info.PreemptedBy = a.by
		info.Ended, info.EndedAt, info.EndedWall = true, a.ended.At, a.ended.Wall
	}
	return info
}

// compareDeadlines reads what is due next.
func (p *pair) compareDeadlines(t *rapid.T) {
	var want, got []quota.Instant
	if at := p.oracle.nextInstant(); at != 0 {
		want = append(want, at)
	}
	if at, waits := p.ledger.Reader().NextDue(); waits {
		got = append(got, at)
	}
	quotatest.RequireSame(t, "what is due", want, got)
}

// compareEvents reads all events page by page, and the denials of some ids.
func (p *pair) compareEvents(t *rapid.T) {
	remembered := p.oracle.recentEvents()
	for after := uint64(0); len(remembered) > 0; {
		most := 1 + len(remembered)/3
		page := p.ledger.Reader().Events(quota.EventFilter{After: after}, most)
		most = min(most, len(remembered))
		sameEvents(t, remembered[:most], page.Events)
		remembered = remembered[most:]
		if (page.Next == 0) != (len(remembered) == 0) {
			t.Fatalf("the page after %d says that the next one is after %d, but %d more are remembered", after,
				page.Next, len(remembered))
		}
		after = page.Next
	}
	for _, id := range []string{"i0", "i1"} {
		denials := slices.DeleteFunc(slices.Clone(p.oracle.recentEvents()),
			func(e quota.Event) bool { return e.ID != id || e.Kind != quota.EventDenied })
		filter := quota.EventFilter{Kind: quota.EventDenied, ID: id}
		sameEvents(t, denials, p.ledger.Reader().Events(filter, math.MaxInt).Events)
	}
}

func sameEvents(t *rapid.T, want, got []quota.Event) {
	if len(want) != len(got) {
		t.Fatalf("there are %d events, want %d", len(got), len(want))
	}
	for i := range want {
		w, g := want[i], got[i]
		if w.Decision != nil && g.Decision != nil && g.Request != nil {
			quotatest.RequireSame(t, "the reasons of a denial", w.Decision.Violations, g.Decision.Violations)
			quotatest.RequireSame(t, "the denied request", *w.Request, *g.Request)
		}
		w.Request, w.Decision, g.Request, g.Decision = nil, nil, nil, nil
		g.Reason = nil
		quotatest.RequireSame(t, "event", w, g)
	}
}
