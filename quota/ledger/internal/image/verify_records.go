package image

import (
	"fmt"
	"math"
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// checkDue verifies that exactly the expected deadlines are set.
func (v verifier) checkDue() error {
	expected, leases := 0, 0
	for fence, a := range v.state.Allocations.Held.All() {
		if a.State() != quota.Reserved && a.More != nil && (len(a.More.Displaced) > 0 || a.More.Undo != nil) {
			return fmt.Errorf("allocation %q is held for good, but remembers whom it displaced", a.ID())
		}
		if a.HoldsLease() {
			leases++
		}
		at := a.EndsAt()
		if at == 0 {
			continue
		}
		expected++
		known := v.state.Deadlines.ByKey[state.DueKey{Kind: state.DueAllocation, Number: fence}]
		if known == nil || known.At != at {
			return fmt.Errorf("allocation %q ends at %d, but has no deadline then", a.ID(), at)
		}
	}
	for turn, it := range v.state.Inventory.Items.All() {
		at := it.DueAt()
		if at == 0 {
			continue
		}
		expected++
		if known := v.state.Deadlines.ByKey[state.DueKey{Kind: state.DueItem, Number: turn}]; known == nil || known.At != at {
			return fmt.Errorf("item %s changes at %d, but has no deadline then", it.Name, at)
		}
	}
	for w := range v.state.Queue.All.All() {
		expected++
		place := w.Record.More.Waiting
		known := v.state.Deadlines.ByKey[state.DueKey{Kind: state.DueWaiter, Number: place.Arrival}]
		if known == nil || known.At != place.EndsAt() {
			return fmt.Errorf("request %q leaves the queue at %d, but has no deadline then",
				w.Record.ID(), place.EndsAt())
		}
	}
	for _, r := range v.state.Requests.All {
		if r.State != quota.RequestOpen {
			continue
		}
		expected++
		known := v.state.Deadlines.ByKey[state.DueKey{Kind: state.DueRequest, Number: r.Number}]
		if known == nil || known.At != r.Ends {
			return fmt.Errorf("request for limits %d expires at %d, but has no deadline then", r.Number, r.Ends)
		}
	}
	for id, n := range v.state.Forest.OnHold {
		for kind, at := range map[state.DueKind]quota.Instant{state.DueHold: n.Hold.Until, state.DueDrain: n.Hold.DrainAt} {
			if at == 0 {
				continue
			}
			expected++
			if known := v.state.Deadlines.ByKey[state.DueKey{Kind: kind, Number: id}]; known == nil || known.At != at {
				return fmt.Errorf("the hold of %s changes at %d, but has no deadline then", n.Place(), at)
			}
		}
	}
	if counted := v.state.Deadlines.Leases; counted != leases {
		return fmt.Errorf("%d leases are held, but %d are counted", leases, counted)
	}
	if waiting := v.state.Deadlines.Order.Len(); waiting != expected || len(v.state.Deadlines.ByKey) != expected {
		return fmt.Errorf("%d instants are to be waited for, but %d are", expected, waiting)
	}
	return nil
}

func (v verifier) checkDenials() error {
	expected := &state.Journal{Environment: v.state.Journal.Environment}
	for _, e := range v.state.Journal.Events {
		expected.CountDenial(e)
	}
	if len(expected.Denials) != len(v.state.Journal.Denials) {
		return fmt.Errorf("%d users have denials, but %d are counted", len(expected.Denials), len(v.state.Journal.Denials))
	}
	for owner, denials := range expected.Denials {
		kept := v.state.Journal.Denials[owner]
		if kept == nil || !slices.Equal(denials.Numbers, kept.Numbers) || denials.Bytes != kept.Bytes {
			return fmt.Errorf("%s has the denials %+v, but %+v are counted", owner, denials, kept)
		}
	}
	return nil
}

// checkRequests verifies the bounds of the requests for limits, and that each is complete.
func (v verifier) checkRequests() error {
	s := &v.state.Requests
	open, seqs := map[string]int{}, map[uint64]bool{}
	all := 0
	for i, r := range s.All {
		isOpen := r.State == quota.RequestOpen
		switch {
		case i > 0 && s.All[i-1].Number >= r.Number || r.Number > s.Last:
			return fmt.Errorf("request for limits %d is not in its place; the last is %d", r.Number, s.Last)
		case r.State < quota.RequestOpen || r.State > quota.RequestExpired || isOpen != (r.ClosedSeq == 0) ||
			(r.State == quota.RequestApplied) != (r.Revision != 0):
			return fmt.Errorf("request for limits %d has state %d, end %d and revision %d, which do not fit together",
				r.Number, r.State, r.ClosedSeq, r.Revision)
		case !isOpen && (seqs[r.ClosedSeq] || r.ClosedSeq > s.ClosedSeq):
			return fmt.Errorf("the end of request for limits %d has the number of another, or none", r.Number)
		case r.Asker == "" || len(r.Limits) == 0 || len(r.Limits) > quota.MaxRequestLimits || r.Made.At > v.state.Now.At:
			return fmt.Errorf("request for limits %d is not complete, or from the future", r.Number)
		}
		if isOpen {
			all++
			open[r.Asker]++
			if open[r.Asker] > s.Bounds.RequestsOfOne {
				return fmt.Errorf("%s has more than %d open requests for limits", r.Asker, s.Bounds.RequestsOfOne)
			}
			continue
		}
		seqs[r.ClosedSeq] = true
	}
	if all > s.Bounds.Requests || len(seqs) > s.Bounds.ClosedRequests {
		return fmt.Errorf("%d requests for limits are open and %d closed; at most %d and %d may be", all, len(seqs),
			s.Bounds.Requests, s.Bounds.ClosedRequests)
	}
	return nil
}

func (v verifier) checkSizes() error {
	var expected quota.Sizes
	for _, a := range v.state.Allocations.Held.All() {
		expected.Allocations += v.state.CountedSize(a)
	}
	for _, a := range v.state.Allocations.Ended.All() {
		expected.Ended += v.state.CountedSize(a)
	}
	for w := range v.state.Queue.All.All() {
		expected.Waiting += v.state.Queue.SizeOf(w)
	}
	for _, it := range v.state.Inventory.Items.All() {
		expected.Items += v.state.CountedSize(it)
	}
	expected.Trees = v.state.Forest.Policies.Bytes()
	for _, t := range v.state.Forest.Trees { // a sum does not depend on the order
		expected.Trees += t.Bytes()
	}
	for _, r := range v.state.History.Revisions {
		expected.History += state.RevisionSize(r)
	}
	for _, e := range v.state.Journal.Events {
		expected.Events += state.EventSize(e)
	}
	if kept := v.state.CurrentSizes(); kept != expected {
		return fmt.Errorf("the ledger counts %+v bytes but has %+v", kept, expected)
	}
	return nil
}

// checkWebhooks verifies the bounds of the webhooks, and that each is complete.
func (v verifier) checkWebhooks() error {
	s, seen := &v.state.Webhooks, map[uint64]bool{}
	for i, w := range s.All {
		refused := s.CheckSpec(quota.SetWebhook{WebhookSpec: w.WebhookSpec}, w.Owner)
		switch {
		case w.Owner != "" && (w.Tree == "" || !access.IsUser(w.Owner)):
			return fmt.Errorf("webhook %q is of %q, which is not a user, or it has no tree", w.Name, w.Owner)
		case refused != nil:
			return fmt.Errorf("webhook %q: %w", w.Name, refused)
		case i > 0 && s.All[i-1].Name >= w.Name || len(s.All) > quota.MaxWebhooks:
			return fmt.Errorf("webhook %q is not in order, or one of more than %d", w.Name, quota.MaxWebhooks)
		case w.Version == 0 || w.Version > s.Version || seen[w.Version]:
			return fmt.Errorf("webhook %q has version %d, which is not its own; the last is %d", w.Name, w.Version, s.Version)
		case w.State != quota.WebhookActive && (w.State != quota.WebhookDead || w.LastError == "") ||
			w.RetryFor == 0 || len(w.LastError) > quota.MaxWebhookError || w.FailingSince.At > v.state.Now.At:
			return fmt.Errorf("webhook %q is not complete: %+v", w.Name, *w)
		}
		seen[w.Version] = true
	}
	return nil
}

// checkPolicies verifies that all trees use the policies of the ledger, and that those are what is defined.
func (v verifier) checkPolicies() error {
	for i, spec := range v.state.Forest.Policies.Specs {
		p, problem := state.BuiltIn.Define(spec)
		if problem != nil || !p.SameRules(v.state.Forest.Policies.Defined[spec.Name]) ||
			i > 0 && v.state.Forest.Policies.Specs[i-1].Name >= spec.Name {
			return fmt.Errorf("policy %s is not what is defined, or out of order", spec.Name)
		}
	}
	for _, t := range v.state.Forest.Trees {
		if t.Policies != v.state.Forest.Policies {
			return fmt.Errorf("tree %s does not use the policies of the ledger", t.Name)
		}
	}
	return nil
}

// checkMarks checks that the list of a tree has exactly its nodes with a mark, in order, and linked both ways.
func (v verifier) checkMarks(t *state.Tree) error {
	listed, newer, last := 0, (*state.Node)(nil), uint64(math.MaxUint64)
	for n := t.Marks.Newest; n != nil; newer, n = n, n.Mark.Older {
		if n.Mark.Newer != newer || n.Mark.Changed > last {
			return fmt.Errorf("%s was changed by entry %d, and is in the wrong place among changed nodes", n.Place(),
				n.Mark.Changed)
		}
		if t.ByPath[n.Path] != n || n.Mark.Queued > t.Marks.Queued {
			return fmt.Errorf("%s is among the changed nodes of tree %s, and should not be", n.Place(), t.Name)
		}
		listed, last = listed+1, n.Mark.Changed
	}
	for _, n := range t.ByPath {
		if n.Mark.Changed > 0 {
			listed--
		}
	}
	if listed != 0 {
		return fmt.Errorf("tree %s has %d more nodes in the list of changed ones than with a mark", t.Name, listed)
	}
	return nil
}
