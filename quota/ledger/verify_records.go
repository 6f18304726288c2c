package ledger

import (
	"fmt"
	"math"
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// checkDue verifies that exactly the expected deadlines are set.
func (v verifier) checkDue() error {
	expected, leases := 0, 0
	for fence, a := range v.ledger.allocations.held.All() {
		if a.State() != quota.Reserved && a.more != nil && (len(a.more.displaced) > 0 || a.more.undo != nil) {
			return fmt.Errorf("allocation %q is held for good, but remembers whom it displaced", a.id)
		}
		if a.holdsLease() {
			leases++
		}
		at := a.endsAt()
		if at == 0 {
			continue
		}
		expected++
		if known := v.ledger.deadlines.byKey[dueKey{dueAllocation, fence}]; known == nil || known.at != at {
			return fmt.Errorf("allocation %q ends at %d, but has no deadline then", a.id, at)
		}
	}
	for turn, it := range v.ledger.inventory.items.All() {
		at := it.dueAt()
		if at == 0 {
			continue
		}
		expected++
		if known := v.ledger.deadlines.byKey[dueKey{dueItem, turn}]; known == nil || known.at != at {
			return fmt.Errorf("item %s changes at %d, but has no deadline then", it.name, at)
		}
	}
	for w := range v.ledger.queue.all.All() {
		expected++
		place := w.record.more.waiting
		if known := v.ledger.deadlines.byKey[dueKey{dueWaiter, place.arrival}]; known == nil || known.at != place.endsAt() {
			return fmt.Errorf("request %q leaves the queue at %d, but has no deadline then",
				w.record.id, place.endsAt())
		}
	}
	for _, r := range v.ledger.requests.all {
		if r.State != quota.RequestOpen {
			continue
		}
		expected++
		if known := v.ledger.deadlines.byKey[dueKey{dueRequest, r.Number}]; known == nil || known.at != r.Ends {
			return fmt.Errorf("request for limits %d expires at %d, but has no deadline then", r.Number, r.Ends)
		}
	}
	for id, n := range v.ledger.forest.onHold {
		for kind, at := range map[dueKind]quota.Instant{dueHold: n.hold.Until, dueDrain: n.hold.DrainAt} {
			if at == 0 {
				continue
			}
			expected++
			if known := v.ledger.deadlines.byKey[dueKey{kind, id}]; known == nil || known.at != at {
				return fmt.Errorf("the hold of %s changes at %d, but has no deadline then", n.place(), at)
			}
		}
	}
	if counted := v.ledger.deadlines.leases; counted != leases {
		return fmt.Errorf("%d leases are held, but %d are counted", leases, counted)
	}
	if waiting := v.ledger.deadlines.order.Len(); waiting != expected || len(v.ledger.deadlines.byKey) != expected {
		return fmt.Errorf("%d instants are to be waited for, but %d are", expected, waiting)
	}
	return nil
}

// checkDenials recounts the denials of each user.
func (v verifier) checkDenials() error {
	is := &journal{environment: v.ledger.journal.environment}
	for _, e := range v.ledger.journal.events {
		is.countDenial(e)
	}
	if len(is.denials) != len(v.ledger.journal.denials) {
		return fmt.Errorf("%d users have denials, but %d are counted", len(is.denials), len(v.ledger.journal.denials))
	}
	for owner, of := range is.denials {
		was := v.ledger.journal.denials[owner]
		if was == nil || !slices.Equal(of.numbers, was.numbers) || of.bytes != was.bytes {
			return fmt.Errorf("%s has the denials %+v, but %+v are counted", owner, of, was)
		}
	}
	return nil
}

// checkRequests verifies the bounds of the requests for limits, and that each is complete.
func (v verifier) checkRequests() error {
	s := &v.ledger.requests
	open, seqs := map[string]int{}, map[uint64]bool{}
	all := 0
	for i, r := range s.all {
		isOpen := r.State == quota.RequestOpen
		switch {
		case i > 0 && s.all[i-1].Number >= r.Number || r.Number > s.last:
			return fmt.Errorf("request for limits %d is not in its place; the last is %d", r.Number, s.last)
		case r.State < quota.RequestOpen || r.State > quota.RequestExpired || isOpen != (r.ClosedSeq == 0) ||
			(r.State == quota.RequestApplied) != (r.Revision != 0):
			return fmt.Errorf("request for limits %d has state %d, end %d and revision %d, which do not fit together",
				r.Number, r.State, r.ClosedSeq, r.Revision)
		case !isOpen && (seqs[r.ClosedSeq] || r.ClosedSeq > s.closedSeq):
			return fmt.Errorf("the end of request for limits %d has the number of another, or none", r.Number)
		case r.Asker == "" || len(r.Limits) == 0 || len(r.Limits) > quota.MaxRequestLimits || r.Made.At > v.ledger.now.At:
			return fmt.Errorf("request for limits %d is not complete, or from the future", r.Number)
		}
		if isOpen {
			all++
			open[r.Asker]++
			if open[r.Asker] > s.bounds.RequestsOfOne {
				return fmt.Errorf("%s has more than %d open requests for limits", r.Asker, s.bounds.RequestsOfOne)
			}
			continue
		}
		seqs[r.ClosedSeq] = true
	}
	if all > s.bounds.Requests || len(seqs) > s.bounds.ClosedRequests {
		return fmt.Errorf("%d requests for limits are open and %d closed; at most %d and %d may be", all, len(seqs),
			s.bounds.Requests, s.bounds.ClosedRequests)
	}
	return nil
}

// checkSizes recomputes the sizes.
func (v verifier) checkSizes() error {
	var is quota.Sizes
	for _, a := range v.ledger.allocations.held.All() {
		is.Allocations += v.ledger.countedSize(a)
	}
	for _, a := range v.ledger.allocations.ended.All() {
		is.Ended += v.ledger.countedSize(a)
	}
	for w := range v.ledger.queue.all.All() {
		is.Waiting += v.ledger.queue.sizeOf(w)
	}
	for _, it := range v.ledger.inventory.items.All() {
		is.Items += v.ledger.countedSize(it)
	}
	is.Trees = v.ledger.forest.policies.bytes()
	for _, t := range v.ledger.forest.trees { // a sum does not depend on the order
		is.Trees += t.bytes()
	}
	for _, r := range v.ledger.history.revisions {
		is.History += revisionSize(r)
	}
	for _, e := range v.ledger.journal.events {
		is.Events += eventSize(e)
	}
	if was := v.ledger.currentSizes(); was != is {
		return fmt.Errorf("the ledger counts %+v bytes but has %+v", was, is)
	}
	return nil
}

// checkWebhooks verifies the bounds of the webhooks, and that each is complete.
func (v verifier) checkWebhooks() error {
	s, seen := &v.ledger.webhooks, map[uint64]bool{}
	for i, w := range s.all {
		refused := s.checkSpec(quota.SetWebhook{WebhookSpec: w.WebhookSpec}, w.Owner)
		switch {
		case w.Owner != "" && (w.Tree == "" || !access.IsUser(w.Owner)):
			return fmt.Errorf("webhook %q is of %q, which is not a user, or it has no tree", w.Name, w.Owner)
		case refused != nil:
			return fmt.Errorf("webhook %q: %w", w.Name, refused)
		case i > 0 && s.all[i-1].Name >= w.Name || len(s.all) > quota.MaxWebhooks:
			return fmt.Errorf("webhook %q is not in order, or one of more than %d", w.Name, quota.MaxWebhooks)
		case w.Version == 0 || w.Version > s.version || seen[w.Version]:
			return fmt.Errorf("webhook %q has version %d, which is not its own; the last is %d", w.Name, w.Version, s.version)
		case w.State != quota.WebhookActive && (w.State != quota.WebhookDead || w.LastError == "") ||
			w.RetryFor == 0 || len(w.LastError) > quota.MaxWebhookError || w.FailingSince.At > v.ledger.now.At:
			return fmt.Errorf("webhook %q is not complete: %+v", w.Name, *w)
		}
		seen[w.Version] = true
	}
	return nil
}

// checkPolicies verifies that all trees use the policies of the ledger, and that those are what is defined.
func (v verifier) checkPolicies() error {
	for i, spec := range v.ledger.forest.policies.specs {
		p, problem := builtIn.Define(spec)
		if problem != nil || !p.SameRules(v.ledger.forest.policies.defined[spec.Name]) ||
			i > 0 && v.ledger.forest.policies.specs[i-1].Name >= spec.Name {
			return fmt.Errorf("policy %s is not what is defined, or out of order", spec.Name)
		}
	}
	for _, t := range v.ledger.forest.trees {
		if t.policies != v.ledger.forest.policies {
			return fmt.Errorf("tree %s does not use the policies of the ledger", t.name)
		}
	}
	return nil
}

// checkMarks checks that the list of a tree has exactly its nodes with a mark, in order, and linked both ways.
func (v verifier) checkMarks(t *tree) error {
	listed, newer, last := 0, (*node)(nil), uint64(math.MaxUint64)
	for n := t.marks.newest; n != nil; newer, n = n, n.mark.older {
		if n.mark.newer != newer || n.mark.changed > last {
			return fmt.Errorf("%s was changed by entry %d, and is in the wrong place among changed nodes", n.place(),
				n.mark.changed)
		}
		if t.byPath[n.path] != n || n.mark.queued > t.marks.queued {
			return fmt.Errorf("%s is among the changed nodes of tree %s, and should not be", n.place(), t.name)
		}
		listed, last = listed+1, n.mark.changed
	}
	for _, n := range t.byPath {
		if n.mark.changed > 0 {
			listed--
		}
	}
	if listed != 0 {
		return fmt.Errorf("tree %s has %d more nodes in the list of changed ones than with a mark", t.name, listed)
	}
	return nil
}
