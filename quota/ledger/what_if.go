package ledger

import (
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// WhatIf is DryRunFrom of a change of configuration. Its effects also have what the change would do to waiting requests
// and to recently denied ones: in a copy made by CopyForPlans it carries the change out and looks. A copy answers one
// such question, and must not be used after it.
func (s Sandbox) WhatIf(from Origin, c quota.Command) Outcome {
	out := s.DryRunFrom(from, c)
	if out.Configuration == nil || out.Configuration.Effects == nil {
		return out
	}
	answer, effects := *out.Configuration, *out.Configuration.Effects
	answer.Effects, out.Configuration = &effects, &answer
	switch {
	case len(answer.Changes) == 0:
		effects.Queue = &quota.QueueEffects{}
	case s.ledger.isCopy:
		s.carryOut(from, c, answer)
	case s.NeedsCopy() || !s.isCopyable():
		effects.Unjudged = true
	default: // there is no request to evaluate
		effects.Queue = &quota.QueueEffects{}
	}
	return out
}

// carryOut carries a change out and adds to its effects what that does to requests, as far as its caller sees them.
func (s Sandbox) carryOut(from Origin, c quota.Command, answer quota.Configuration) {
	reader, refused := s.Reader.ReaderOf(from.Caller)
	if refused != nil {
		return // the dry run was refused, too
	}
	seen := reader.holdersSeen()
	denied := s.deniedNow(reader, answer.Changes)
	aside := s.ledger.queue.asideNow()
	now := quota.Stamp{At: s.ledger.now.At, Wall: s.wallNow()}
	if out := s.ledger.ApplyFrom(now, from, c); out.Refused != nil {
		return
	}
	answer.Effects.Queue = seen.queueEffects(s.ledger, s.ledger.TakeFacts())
	seen.addSetAside(answer.Effects.Queue, s.ledger, aside)
	answer.Effects.Admitted = nil
	for _, request := range denied {
		if (planner{s.ledger}).grantsNow(request) {
			answer.Effects.Admitted = append(answer.Effects.Admitted, request.ID)
		}
	}
}

// deniedNow are the newest requests, at most maxJudged, that were denied in changed trees and would be denied again,
// newest first. Changes outside of trees, such as those of policies, may concern all trees.
func (s Sandbox) deniedNow(reader Reader, changes []quota.Change) []quota.Allocate {
	changed := map[string]bool{}
	for _, c := range changes {
		changed[c.Tree] = true
	}
	concerns := func(r *quota.Allocate) bool { return changed[""] || claimsFromAny(r, changed) }
	var denied []quota.Allocate
	met, judged := map[string]bool{}, 0
	for _, e := range slices.Backward(s.ledger.journal.events) {
		if e.Kind != quota.EventDenied || met[e.ID] {
			continue
		}
		met[e.ID] = true // the newest denial of an id counts
		if s.ledger.allocations.findByID(e.ID) != nil || !concerns(e.Request) || !reader.seesEvent(e) {
			continue
		}
		if judged++; judged > maxJudged {
			break
		}
		if !(planner{s.ledger}).grantsNow(*e.Request) {
			denied = append(denied, *e.Request)
		}
	}
	return denied
}

// holdersSeen is what a caller sees of holders by its rights before a change, which may give it others.
type holdersSeen struct {
	id *access.Identity // nil if it sees all
	// at has the nodes that exist before the change.
	at map[*node]bool
}

func (r Reader) holdersSeen() holdersSeen {
	seen := holdersSeen{id: r.id}
	if r.id == nil {
		return seen
	}
	seen.at = map[*node]bool{}
	for _, t := range r.ledger.forest.trees { // a map of nodes needs no order
		t.root.walk(func(n *node) bool {
			seen.at[n] = r.mayAt(access.HoldersRead, n)
			return true
		})
	}
	return seen
}

// sees is true if the caller sees the allocation, as [Reader.sees] is. At a node that the change has made, it sees what
// it sees at the nearest node above that existed.
func (h holdersSeen) sees(a *Allocation) bool {
	if h.id == nil || h.id.Is(a.owner) {
		return true
	}
	return !slices.ContainsFunc(a.claims, func(c placedClaim) bool {
		for n := c.at; n != nil; n = n.parent {
			if may, existed := h.at[n]; existed {
				return !may
			}
		}
		return true
	})
}

// queueEffects sorts what has happened to requests.
func (h holdersSeen) queueEffects(l *Ledger, facts []Fact) *quota.QueueEffects {
	e := &quota.QueueEffects{}
	for _, f := range facts {
		list, by := listOf(e, f)
		if list == nil || !h.sees(f.Allocation) {
			continue
		}
		if list.Total++; len(list.List) == quota.MaxOver {
			continue
		}
		if other := l.allocations.byID.Find(by); other == nil || !h.sees(other) {
			by = hiddenName(by)
		}
		list.List = append(list.List, quota.AffectedRequest{ID: f.Allocation.id, By: by})
	}
	return e
}

// asideNow are the arrivals of the requests that wait aside for each of their lists of claims.
func (q *waitQueue) asideNow() map[uint64]bool {
	aside := map[uint64]bool{}
	for w := range q.all.All() {
		if w.isAside() {
			aside[w.turn.Arrival] = true
		}
	}
	return aside
}

// isAside is true if the request is larger than a whole limit with each of its lists of claims.
func (w *waiter) isAside() bool {
	return !slices.ContainsFunc(w.alternatives, func(alt *alternative) bool { return !alt.blockedIn.isAside })
}

// addSetAside adds the requests that have stepped aside, in the order of the queue.
func (h holdersSeen) addSetAside(e *quota.QueueEffects, l *Ledger, before map[uint64]bool) {
	for w := range l.queue.all.All() {
		if !w.isAside() || before[w.turn.Arrival] || !h.sees(w.record) {
			continue
		}
		if e.SetAside.Total++; e.SetAside.Total <= quota.MaxOver {
			e.SetAside.List = append(e.SetAside.List, quota.AffectedRequest{ID: w.record.id})
		}
	}
}

// listOf is the list that a fact belongs to, and the request in whose favour it happened; nil if it belongs to none.
func listOf(e *quota.QueueEffects, f Fact) (list *quota.Affected, by string) {
	switch a := f.Allocation; {
	case f.Kind == FactGranted, f.Kind == FactResized && f.Since > 0:
		return &e.Granted, ""
	case f.Kind == FactRevoked:
		return &e.Revoked, a.lease().revokedBy
	case f.Kind == FactEnded && a.ended.state == quota.WasPreempted:
		return &e.Preempted, a.ended.by
	case f.Kind == FactEnded && a.ended.state == quota.Cancelled, f.Kind == FactResizeDropped:
		return &e.Cancelled, ""
	}
	return nil, ""
}
