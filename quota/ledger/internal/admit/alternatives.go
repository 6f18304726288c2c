package admit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

type deniedList struct {
	// number is that of the list among the alternatives of the request, from 1; 0 if the request has none.
	number     int
	tx         Admission
	violations []quota.Violation
	blocker    state.Blocker // the first, once the list waits
}

func (d *deniedList) couldWait(f *state.Forest) bool {
	return !slices.ContainsFunc(d.violations, quota.Violation.NeverFits) && !deniesWaiting(f, d.violations)
}

func listsToWait(f *state.Forest, lists []deniedList) []deniedList {
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

// PlaceList is placeAtStep for one of the alternatives of a request, by its number.
func PlaceList(s *state.State, request *quota.Allocate, number, step int) (*state.Allocation, *quota.Error) {
	list := *request
	list.Claims = request.AnyOf[number-1]
	a, refused := placeAtStep(s, &list, step)
	if refused != nil {
		if strings.HasPrefix(refused.Field, "claims") {
			refused.Field = ListField(number, refused.Field)
		}
		return nil, refused
	}
	a.Owner = s.OwnerName()
	a.More.Resized.Given = number
	return a, nil
}

func ListField(number int, field string) string { return fmt.Sprintf("any_of[%d].%s", number-1, field) }

// decideAny decides a request with alternatives. It is granted the first list that fits without ending others, or else
// the first that fits by ending others. The transaction is that of the granted list; denied are all lists if none is
// granted.
func decideAny(s *state.State, request *quota.Allocate) (t Admission, d quota.Decision, denied []deniedList) {
	preempting := 0
	for number := 1; number <= len(request.AnyOf); number++ {
		t, d = decideList(s, request, number)
		switch {
		case d.Granted && len(t.victims()) == 0:
			return t, d, nil
		case d.Granted:
			t.Rollback()
			if preempting == 0 {
				preempting = number
			}
		default:
			denied = append(denied, deniedList{number: number, tx: t, violations: numbered(d.Violations, number)})
		}
	}
	if preempting > 0 {
		t, d = decideList(s, request, preempting)
		return t, d, nil
	}
	return Admission{State: s}, denialOf(denied), denied
}

// decideList expects a valid list. It counts as denied if the bound of nodes is reached.
func decideList(s *state.State, request *quota.Allocate, number int) (Admission, quota.Decision) {
	a, refused := PlaceList(s, request, number, 0)
	if refused != nil {
		return Admission{State: s}, quota.Decision{}
	}
	t := Begin(s, a)
	d := t.Decide()
	if d.Granted && state.AsksForRanges(request.AnyOf[number-1]) {
		list := quota.Allocate{Claims: request.AnyOf[number-1]}
		t, d = widen(s, t, d, list.Steps(), func(step int) (*state.Allocation, *quota.Error) {
			return PlaceList(s, request, number, step)
		})
	}
	d.Alternative = number
	return t, d
}

// numbered changes the violations, which must be the caller's own.
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
func addAlternatives(q *state.WaitQueue, w *state.Waiter, lists []deniedList) {
	for i := range lists {
		list := &lists[i]
		a := list.tx.Allocation
		list.blocker = blockerOfRequest(q, a, list.violations)
		need := list.blocker.AmountNeeded(a)
		wanted := w.Request.Claims
		if list.number > 0 {
			wanted = w.Request.AnyOf[list.number-1]
		}
		AddAlternative(w, a, list.number, wanted).Need = need
	}
}

// AddAlternative adds the claims of a, which is a new record, as the last alternative.
func AddAlternative(w *state.Waiter, a *state.Allocation, number int, wanted []quota.Claim) *state.Alternative {
	alt := &state.Alternative{}
	if number == 0 && w.Sole != nil {
		alt, w.Alternatives = &w.Sole.Alternative, w.Sole.List[:0]
	}
	*alt = state.Alternative{Of: w, Number: number, Turn: w.Turn, Resized: a.More.Resized}
	alt.Turn.Arrival += uint64(max(1, number) - 1)
	AssignNodes(alt, a, wanted)
	w.Alternatives = append(w.Alternatives, alt)
	return alt
}

// AssignNodes gives the alternative other nodes: those of the claims of a new record.
func AssignNodes(alt *state.Alternative, a *state.Allocation, wanted []quota.Claim) {
	a.ClearGrant()
	alt.Wanted, alt.Claims, alt.Lease = wanted, a.Claims, a.More.Lease
	alt.UnconfiguredPaths = nil
	useConfiguredNodes(alt)
}

// RequestOf is the request for the claims of this alternative.
func RequestOf(alt *state.Alternative) quota.Allocate {
	request := alt.Of.Request
	request.Claims = alt.Wanted
	return request
}

// preferGentler replaces a granted transaction that ends others by that of the first other alternative that fits
// without.
func preferGentler(s *state.State, alt *state.Alternative, t *Admission) {
	if len(alt.Of.Alternatives) == 1 || len(t.victims()) == 0 {
		return
	}
	t.Rollback()
	for _, other := range alt.Of.Alternatives {
		if other == alt {
			continue
		}
		gentler, d, full := JudgeAlternative(s, other)
		if d.Granted && !full && len(gentler.victims()) == 0 {
			*t = gentler
			return
		}
		gentler.Rollback()
	}
	*t, _, _ = JudgeAlternative(s, alt)
}

// PreviewWaiter decides a waiting request without changing anything.
func PreviewWaiter(s *state.State, w *state.Waiter) quota.Decision {
	var denied []deniedList
	for _, alt := range w.Alternatives {
		t, d, _ := JudgeAlternative(s, alt)
		t.Rollback()
		if alt.Number == 0 {
			return d
		}
		denied = append(denied, deniedList{number: alt.Number, tx: t, violations: numbered(d.Violations, alt.Number)})
	}
	return denialOf(denied)
}

func addPlacesTo(w *state.Waiter, info *quota.WaitingInfo) {
	for i, alt := range w.Alternatives {
		place := quota.WaitingPlace{
			Alternative: alt.Number, Position: alt.BlockedIn.Waiters.CountBefore(alt.Turn) + 1, Line: alt.BlockedIn.String(),
			BlockedAt: alt.BlockedIn.Place(),
		}
		if i == 0 {
			info.Position, info.Line, info.BlockedAt = place.Position, place.Line, place.BlockedAt
		}
		if alt.Number > 0 {
			for j := range alt.Claims {
				place.Claims = append(place.Claims, alt.Claims[j].Info())
			}
			info.Alternatives = append(info.Alternatives, place)
		}
	}
}
