package ledger

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// deniedList is a list of claims of a request that cannot be granted now.
type deniedList struct {
	// number is that of the list among the alternatives of the request, from 1; 0 if the request has none.
	number     int
	tx         tx
	violations []quota.Violation
	blocker    blocker // the first, once the list waits
}

// couldWait is true if waiting could lead to a grant of the list.
func (d *deniedList) couldWait(f *forest) bool {
	return !slices.ContainsFunc(d.violations, quota.Violation.NeverFits) && !f.deniesWaiting(d.violations)
}

// listsToWait are the lists that waiting could help.
func (f *forest) listsToWait(lists []deniedList) []deniedList {
	if len(lists) == 1 && lists[0].couldWait(f) {
		return lists
	}
	var waiting []deniedList
	for i := range lists {
		if lists[i].couldWait(f) {
			waiting = append(waiting, lists[i])
		}
	}
	return waiting
}

// checkAlternatives refuses lists of claims that do not go together in one request.
func checkAlternatives(request *quota.Allocate) *quota.Error {
	switch n := len(request.AnyOf); {
	case len(request.Claims) > 0:
		return quota.Errorf(quota.Invalid, "claims",
			"a request has claims or alternatives, not both; make the claims the first alternative")
	case n > quota.MaxAlternatives:
		return quota.Errorf(quota.Invalid, "any_of", "the request has %d alternatives; at most %d are allowed", n,
			quota.MaxAlternatives)
	case request.Mode == quota.Force:
		return quota.Errorf(quota.Invalid, "any_of",
			"a forced request holds its first alternative whatever the limits are; name its claims alone")
	}
	return nil
}

// placeList is placeAtStep for one of the alternatives of a request, by its number.
func (l *Ledger) placeList(request *quota.Allocate, number, step int) (*Allocation, *quota.Error) {
	list := *request
	list.Claims = request.AnyOf[number-1]
	a, refused := l.placeAtStep(&list, step)
	if refused != nil {
		if strings.HasPrefix(refused.Field, "claims") {
			refused.Field = listField(number, refused.Field)
		}
		return nil, refused
	}
	a.owner = l.ownerName()
	a.more.resized.given = number
	return a, nil
}

func listField(number int, field string) string { return fmt.Sprintf("any_of[%d].%s", number-1, field) }

// decideAny decides a request with alternatives. It is granted the first list that fits without ending others, or else
// the first that fits by ending others. The transaction is that of the granted list; denied are all lists if none is
// granted.
func (l *Ledger) decideAny(request *quota.Allocate) (t tx, d quota.Decision, denied []deniedList) {
	preempting := 0
	for number := 1; number <= len(request.AnyOf); number++ {
		t, d = l.decideList(request, number)
		switch {
		case d.Granted && len(t.victims()) == 0:
			return t, d, nil
		case d.Granted:
			t.rollback()
			if preempting == 0 {
				preempting = number
			}
		default:
			denied = append(denied, deniedList{number: number, tx: t, violations: numbered(d.Violations, number)})
		}
	}
	if preempting > 0 {
		t, d = l.decideList(request, preempting)
		return t, d, nil
	}
	return tx{ledger: l}, denialOf(denied), denied
}

// decideList decides one list of a request, whose form is valid. It counts as denied if the bound of nodes is reached.
func (l *Ledger) decideList(request *quota.Allocate, number int) (tx, quota.Decision) {
	a, refused := l.placeList(request, number, 0)
	if refused != nil {
		return tx{ledger: l}, quota.Decision{}
	}
	t := l.beginTx(a)
	d := t.decide()
	if d.Granted && asksForRanges(request.AnyOf[number-1]) {
		list := quota.Allocate{Claims: request.AnyOf[number-1]}
		t, d = l.widen(t, d, list.Steps(), func(step int) (*Allocation, *quota.Error) {
			return l.placeList(request, number, step)
		})
	}
	d.Alternative = number
	return t, d
}

// numbered marks violations as those of an alternative. They must be the caller's own.
func numbered(violations []quota.Violation, number int) []quota.Violation {
	for i := range violations {
		violations[i].Alternative = number
	}
	return violations
}

// denialOf joins what is in the way of each list. Leases would be revoked for the first list that needs it.
func denialOf(denied []deniedList) quota.Decision {
	var d quota.Decision
	for i := range denied {
		d.Violations = append(d.Violations, denied[i].violations...)
		if s := denied[i].tx.staged; s != nil && len(d.Preempted) == 0 {
			for _, r := range s.revocations {
				d.Preempted = append(d.Preempted, r.Preempted)
			}
		}
	}
	return d
}

// addAlternatives gives a request, whose turn is known, the lists that it waits for, and notes what blocks each.
func (q *waitQueue) addAlternatives(w *waiter, lists []deniedList) {
	for i := range lists {
		list := &lists[i]
		a := list.tx.allocation
		list.blocker = q.blockerOf(a, list.violations)
		need := list.blocker.amountNeeded(a)
		wanted := w.request.Claims
		if list.number > 0 {
			wanted = w.request.AnyOf[list.number-1]
		}
		w.addAlternative(a, list.number, wanted).need = need
	}
}

// addAlternative adds the claims of a, which is a new record, as the last alternative.
func (w *waiter) addAlternative(a *Allocation, number int, wanted []quota.Claim) *alternative {
	alt := &alternative{}
	if number == 0 && w.sole != nil {
		alt, w.alternatives = &w.sole.alternative, w.sole.list[:0]
	}
	*alt = alternative{of: w, number: number, turn: w.turn, resized: a.more.resized}
	alt.turn.Arrival += uint64(max(1, number) - 1)
	alt.placeAt(a, wanted)
	w.alternatives = append(w.alternatives, alt)
	return alt
}

// placeAt gives the alternative other nodes: those of the claims of a new record.
func (alt *alternative) placeAt(a *Allocation, wanted []quota.Claim) {
	a.clearGrant()
	alt.wanted, alt.claims, alt.lease = wanted, a.claims, a.more.lease
	alt.unconfiguredPaths = nil
	alt.useConfiguredNodes()
}

// asked is the request for the claims of this alternative.
func (alt *alternative) asked() quota.Allocate {
	request := alt.of.request
	request.Claims = alt.wanted
	return request
}

// preferGentler replaces a granted transaction that ends others by that of the first other alternative that fits
// without.
func (l *Ledger) preferGentler(alt *alternative, t *tx) {
	if len(alt.of.alternatives) == 1 || len(t.victims()) == 0 {
		return
	}
	t.rollback()
	for _, other := range alt.of.alternatives {
		if other == alt {
			continue
		}
		gentler, d, full := l.judgeAlternative(other)
		if d.Granted && !full && len(gentler.victims()) == 0 {
			*t = gentler
			return
		}
		gentler.rollback()
	}
	*t, _, _ = l.judgeAlternative(alt)
}

// previewWaiter decides a waiting request without changing anything.
func (l *Ledger) previewWaiter(w *waiter) quota.Decision {
	var denied []deniedList
	for _, alt := range w.alternatives {
		t, d, _ := l.judgeAlternative(alt)
		t.rollback()
		if alt.number == 0 {
			return d
		}
		denied = append(denied, deniedList{number: alt.number, tx: t, violations: numbered(d.Violations, alt.number)})
	}
	return denialOf(denied)
}

// addPlacesTo adds the places of the alternatives in their queues.
func (w *waiter) addPlacesTo(info *quota.WaitingInfo) {
	for i, alt := range w.alternatives {
		place := quota.WaitingPlace{
			Alternative: alt.number, Position: alt.blockedIn.waiters.CountBefore(alt.turn) + 1, Line: alt.blockedIn.String(),
			BlockedAt: alt.blockedIn.place(),
		}
		if i == 0 {
			info.Position, info.Line, info.BlockedAt = place.Position, place.Line, place.BlockedAt
		}
		if alt.number > 0 {
			for j := range alt.claims {
				place.Claims = append(place.Claims, alt.claims[j].info())
			}
			info.Alternatives = append(info.Alternatives, place)
		}
	}
}
