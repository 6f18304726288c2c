package cli

import (
	"fmt"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// ReasonText says why an allocation was ended or a lease revoked; empty if there is no reason. What the caller may not
// see of the other side is left out.
func (u Units) ReasonText(r *quoratev1.EndReason) string {
	at := PlaceOf(r.GetTree(), r.GetNode()).String()
	var parts []string
	switch r.GetKind() {
	case quoratev1.EndReasonKind_END_REASON_KIND_UNSPECIFIED:
		return ""
	case quoratev1.EndReasonKind_END_REASON_KIND_DRAIN:
		return drainText(r, at)
	case quoratev1.EndReasonKind_END_REASON_KIND_RELEASE:
		if r.GetActor() == "" {
			return "released by another caller"
		}
		return "released by " + r.GetActor()
	case quoratev1.EndReasonKind_END_REASON_KIND_PRIORITY:
		text := fmt.Sprintf("priority %d over %d", r.GetRequestPriority(), r.GetPriority())
		if r.GetRequestPriority() <= r.GetPriority() { // it is not shown
			text = "a higher priority"
		}
		parts = append(parts, text)
	case quoratev1.EndReasonKind_END_REASON_KIND_SHARE:
		text := "a share was taken back"
		if r.GetShare() != "" {
			text = PlaceOf(r.GetTree(), r.GetShare()).String() + " took back its share"
		}
		parts = append(parts, text)
	}
	for _, a := range r.GetAmounts() {
		parts = append(parts, u.missingText(r, a, at))
	}
	if r.GetBorrower() != "" {
		parts = append(parts, "borrowed by "+PlaceOf(r.GetTree(), r.GetBorrower()).String())
	}
	return strings.Join(parts, ", ")
}

// missingText is such as "2 of 3 cores missing at cern, 4 given".
func (u Units) missingText(r *quoratev1.EndReason, a *quoratev1.EndReasonAmount, at string) string {
	amount := func(n int64) string { return u.FormatAmount(r.GetTree(), a.GetResource(), n) }
	if a.GetMissing() == 0 { // it is not shown
		return amount(a.GetGiven()) + " " + a.GetResource() + " given"
	}
	return fmt.Sprintf("%s of %s %s missing at %s, %s given", amount(a.GetMissing()), amount(a.GetRequested()),
		a.GetResource(), at, amount(a.GetGiven()))
}

// ReasonClause is why an allocation was ended or revoked, in brackets behind a space; empty if there is no reason.
func (u Units) ReasonClause(a *quoratev1.Allocation) string {
	return reasonClause(u.ReasonText(a.GetReason()))
}

func drainText(r *quoratev1.EndReason, at string) string {
	text := at + " is drained"
	if r.GetActor() != "" {
		text += " by " + r.GetActor()
	}
	return text + reasonClause(r.GetText())
}

func (u Units) withReason(text string, r *quoratev1.EndReason) string {
	if why := u.ReasonText(r); why != "" {
		return text + ": " + why
	}
	return text
}

// VictimText says who makes room at which node, and why.
func (u Units) VictimText(p *quoratev1.Preempted) string {
	id := p.GetId()
	if id == "" {
		id = "an allocation"
	}
	return u.withReason(id+" at "+PlaceOf(p.GetTree(), p.GetNode()).String(), p.GetReason())
}

// madeRoomText sums up what others gave up; empty if no more than one did.
func (u Units) madeRoomText(m *quoratev1.MadeRoom) string {
	if m.GetCount() < 2 {
		return ""
	}
	parts := []string{fmt.Sprintf("%d allocations made room", m.GetCount())}
	for _, t := range m.GetTotals() {
		amount := u.FormatAmount(t.GetTree(), t.GetResource(), t.GetAmount())
		parts = append(parts, fmt.Sprintf("%s %s of %s", amount, t.GetResource(), t.GetTree()))
	}
	return strings.Join(parts, ", ")
}
