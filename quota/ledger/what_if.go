package ledger

import (
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/configure"
	"github.com/quorate/quorate/quota/ledger/internal/read"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// WhatIf is DryRunFrom of a change of configuration. Its effects also have what the change would do to waiting requests
// and to recently denied ones: in a copy made by CopyForPlans it carries the change out and looks. A copy answers one
// such question, and must not be used after it.
func (s Sandbox) WhatIf(from state.Origin, c quota.Command) state.Outcome {
	out := s.DryRunFrom(from, c)
	if out.Configuration == nil || out.Configuration.Effects == nil {
		return out
	}
	answer, effects := *out.Configuration, *out.Configuration.Effects
	answer.Effects, out.Configuration = &effects, &answer
	switch {
	case len(answer.Changes) == 0:
		effects.Queue = &quota.QueueEffects{}
	case s.state.IsCopy:
		s.carryOut(from, c, answer)
	case s.NeedsCopy() || !s.IsCopyable():
		effects.Unjudged = true
	default: // there is no request to evaluate
		effects.Queue = &quota.QueueEffects{}
	}
	return out
}

// carryOut carries a change out and adds to its effects what that does to requests, as far as its caller sees them.
func (s Sandbox) carryOut(from state.Origin, c quota.Command, answer quota.Configuration) {
	reader, refused := s.Reader.ReaderOf(from.Caller)
	if refused != nil {
		return // the dry run was refused, too
	}
	seen := newHoldersSeen(reader)
	denied := s.deniedNow(reader, answer.Changes)
	aside := asideNow(&s.state.Queue)
	now := quota.Stamp{At: s.state.Now.At, Wall: s.WallNow()}
	if out := applyFrom(s.state, now, from, c); out.Refused != nil {
		return
	}
	answer.Effects.Queue = seen.queueEffects(s.state, s.state.TakeFacts())
	seen.addSetAside(answer.Effects.Queue, s.state, aside)
	answer.Effects.Admitted = nil
	for _, request := range denied {
		if (configure.Planner{State: s.state}).GrantsNow(request) {
			answer.Effects.Admitted = append(answer.Effects.Admitted, request.ID)
		}
	}
}

// deniedNow are the newest requests, at most MaxJudged, that were denied in changed trees and would be denied again,
// newest first. Changes outside of trees, such as those of policies, may concern all trees.
func (s Sandbox) deniedNow(reader read.Reader, changes []quota.Change) []quota.Allocate {
	changed := map[string]bool{}
	for _, c := range changes {
		changed[c.Tree] = true
	}
	concerns := func(r *quota.Allocate) bool { return changed[""] || configure.ClaimsFromAny(r, changed) }
	var denied []quota.Allocate
	met, judged := map[string]bool{}, 0
	for _, e := range slices.Backward(s.state.Journal.Events) {
		if e.Kind != quota.EventDenied || met[e.ID] {
			continue
		}
		met[e.ID] = true // the newest denial of an id counts
		if s.state.Allocations.FindByID(e.ID) != nil || !concerns(e.Request) || !reader.SeesEvent(e) {
			continue
		}
		if judged++; judged > configure.MaxJudged {
			break
		}
		if !(configure.Planner{State: s.state}).GrantsNow(*e.Request) {
			denied = append(denied, *e.Request)
		}
	}
	return denied
}

// holdersSeen is what a caller sees of holders by its rights before a change, which may give it others.
type holdersSeen struct {
	id *access.Identity // nil if it sees all
	// at has the nodes that exist before the change.
	at map[*state.Node]bool
}

func newHoldersSeen(r read.Reader) holdersSeen {
	seen := holdersSeen{id: read.IdentityOf(r)}
	if read.IdentityOf(r) == nil {
		return seen
	}
	seen.at = map[*state.Node]bool{}
	for _, t := range read.StateOf(r).Forest.Trees { // a map of nodes needs no order
		t.Root.Walk(func(n *state.Node) bool {
			seen.at[n] = r.MayAt(access.HoldersRead, n)
			return true
		})
	}
	return seen
}

// sees is true if the caller sees the allocation, as the reader does. At a node that the change has made, it sees what
// it sees at the nearest node above that existed.
func (h holdersSeen) sees(a *state.Allocation) bool {
	if h.id == nil || h.id.Is(a.Owner) {
		return true
	}
	return !slices.ContainsFunc(a.Claims, func(c state.PlacedClaim) bool {
		for n := c.At; n != nil; n = n.Parent {
			if may, existed := h.at[n]; existed {
				return !may
			}
		}
		return true
	})
}

func (h holdersSeen) queueEffects(s *state.State, facts []state.Fact) *quota.QueueEffects {
	e := &quota.QueueEffects{}
	for _, f := range facts {
		list, cause := listOf(e, f)
		if list == nil || !h.sees(f.Allocation) {
			continue
		}
		if list.Total++; len(list.List) == quota.MaxOver {
			continue
		}
		if other := s.Allocations.ByID.Find(cause); other == nil || !h.sees(other) {
			cause = read.HiddenName(cause)
		}
		list.List = append(list.List, quota.AffectedRequest{ID: f.Allocation.ID(), By: cause})
	}
	return e
}

// asideNow are the arrivals of the requests that wait aside for each of their lists of claims.
func asideNow(q *state.WaitQueue) map[uint64]bool {
	aside := map[uint64]bool{}
	for w := range q.All.All() {
		if isAside(w) {
			aside[w.Turn.Arrival] = true
		}
	}
	return aside
}

// isAside is true if the request is larger than a whole limit with each of its lists of claims.
func isAside(w *state.Waiter) bool {
	return !slices.ContainsFunc(w.Alternatives, func(alt *state.Alternative) bool { return !alt.BlockedIn.IsAside })
}

func (h holdersSeen) addSetAside(e *quota.QueueEffects, s *state.State, before map[uint64]bool) {
	for w := range s.Queue.All.All() {
		if !isAside(w) || before[w.Turn.Arrival] || !h.sees(w.Record) {
			continue
		}
		if e.SetAside.Total++; e.SetAside.Total <= quota.MaxOver {
			e.SetAside.List = append(e.SetAside.List, quota.AffectedRequest{ID: w.Record.ID()})
		}
	}
}

// listOf also returns the request in whose favour it happened; nil if the fact is in no list.
func listOf(e *quota.QueueEffects, f state.Fact) (list *quota.Affected, cause string) {
	switch a := f.Allocation; {
	case f.Kind == state.FactGranted, f.Kind == state.FactResized && f.Since > 0:
		return &e.Granted, ""
	case f.Kind == state.FactRevoked:
		return &e.Revoked, a.Lease().RevokedBy
	case f.Kind == state.FactEnded && a.Ended.State == quota.WasPreempted:
		return &e.Preempted, a.Ended.By
	case f.Kind == state.FactEnded && a.Ended.State == quota.Cancelled, f.Kind == state.FactResizeDropped:
		return &e.Cancelled, ""
	}
	return nil, ""
}
