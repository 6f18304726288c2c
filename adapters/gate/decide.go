package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// GrantState is the state of an allocation that has not ended.
type GrantState int

// The states of a grant.
const (
	// Waiting: it is in the queue and holds nothing.
	Waiting GrantState = iota
	// Revoked: it is held and ends soon.
	Revoked
	// Held: it counts against its limits.
	Held
)

// Grant is an allocation of a work that has not ended.
type Grant struct {
	ID    string
	State GrantState
	// Claims are the claims as they were asked for.
	Claims []Claim
	// Until is when a revoked grant ends.
	Until time.Time
	// attempt is the number in the id, from 1.
	attempt int
}

// ActionKind is what is to be done.
type ActionKind int

// The kinds of actions.
const (
	// Request asks for the allocation of a work and waits in the queue, or repeats that.
	Request ActionKind = iota + 1
	// Readmit asks at once for what open members need that have no allocation. If it is denied, they are evicted.
	Readmit
	// OpenMember opens the gate of a member.
	OpenMember
	// EvictMember ends a member before the time until.
	EvictMember
	// ReleaseGrant ends an allocation.
	ReleaseGrant
	// Keep confirms that a held allocation is wanted: it renews a lease.
	Keep
	// Tell says why a work waits.
	Tell
)

// Action is one thing to do for a work.
type Action struct {
	Kind ActionKind
	// Member is the member to open or to evict.
	Member Member
	// Grant is the allocation that the action is about, or because of which it happens.
	Grant Grant
	// Text says why, for people.
	Text string
	// isSpare is true for the release of a second allocation: what runs has the first one.
	isSpare bool
}

// Decide returns what is to be done for a work with the allocations that it has. Nothing else opens a gate, and it
// opens only what a held allocation covers.
func Decide(w Work, grants []Grant) []Action {
	best, actions := chooseGrant(grants)
	switch {
	case w.count(Closed, Open, Stopping) == 0:
		return append(actions, release(best, "all members have ended")...)
	case w.count(Open, Stopping) > 0:
		return append(actions, decideOpen(w, best)...)
	}
	return append(actions, decideClosed(w, best)...)
}

// chooseGrant returns the allocation that counts for a work, or nil, and releases the others: the one that holds, and
// the earliest of equal ones.
func chooseGrant(grants []Grant) (*Grant, []Action) {
	if len(grants) == 0 {
		return nil, nil
	}
	sorted := slices.Clone(grants)
	slices.SortFunc(sorted, func(a, b Grant) int {
		return cmp.Or(-cmp.Compare(a.State, b.State), cmp.Compare(a.attempt, b.attempt), strings.Compare(a.ID, b.ID))
	})
	var actions []Action
	for i := range sorted[1:] {
		spare := release(&sorted[i+1], "the work has another allocation")
		spare[0].isSpare = true
		actions = append(actions, spare...)
	}
	return &sorted[0], actions
}

func release(g *Grant, why string) []Action {
	if g == nil {
		return nil
	}
	return []Action{{Kind: ReleaseGrant, Grant: *g, Text: why}}
}

// decideClosed is Decide for a work that has nothing running.
func decideClosed(w Work, best *Grant) []Action {
	switch {
	case w.Problem != "":
		return append(release(best, w.Problem), Action{Kind: Tell, Text: w.Problem})
	case !w.isComplete():
		text := fmt.Sprintf("%d of %d members of the group have arrived", len(w.Members), w.Wanted)
		return append(release(best, text), Action{Kind: Tell, Text: text})
	case best == nil:
		return []Action{{Kind: Request}}
	case best.State == Waiting:
		return []Action{{Kind: Request, Grant: *best}}
	case best.State == Revoked:
		return release(best, "it was revoked before anything ran")
	}
	return openCovered(w, *best)
}

// decideOpen is Decide for a work that may have something running.
func decideOpen(w Work, best *Grant) []Action {
	switch {
	case best == nil && w.count(Open) == 0:
		return nil // what is left has been told to end
	case best == nil:
		return []Action{{Kind: Readmit}}
	case best.State == Waiting:
		return release(best, "the gate was opened by another program before the grant")
	case best.State == Revoked:
		return evict(w, *best, "the allocation was revoked")
	}
	return openCovered(w, *best)
}

// openCovered opens closed members as far as the grant covers them beside what is open already, and evicts open ones
// that it does not cover.
func openCovered(w Work, g Grant) []Action {
	actions := []Action{{Kind: Keep, Grant: g}}
	granted, used := claimSum{}, claimSum{}
	granted.add(g.Claims)
	used.add(w.total(Stopping))
	members := slices.Clone(w.Members)
	slices.SortStableFunc(members, func(a, b Member) int { return -cmp.Compare(a.State, b.State) }) // open ones first
	uncovered := 0
	for _, m := range members {
		fits := used.fitsInto(granted, m.Claims)
		switch {
		case m.State != Open && m.State != Closed:
			continue
		case fits:
			used.add(m.Claims)
		}
		switch {
		case m.State == Closed && fits:
			actions = append(actions, Action{Kind: OpenMember, Member: m, Grant: g})
		case m.State == Closed:
			uncovered++
		case !fits:
			actions = append(actions, Action{Kind: EvictMember, Member: m, Text: "the allocation does not cover it"})
		}
	}
	if uncovered > 0 {
		text := fmt.Sprintf("the allocation of the group is used up: %d more members wait until others have ended", uncovered)
		actions = append(actions, Action{Kind: Tell, Text: text})
	}
	return actions
}

func evict(w Work, g Grant, why string) []Action {
	var actions []Action
	for _, m := range w.Members {
		if m.State == Open {
			actions = append(actions, Action{Kind: EvictMember, Member: m, Grant: g, Text: why})
		}
	}
	return actions
}
