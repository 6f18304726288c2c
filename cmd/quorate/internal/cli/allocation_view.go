package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// DrawAllocation writes one allocation in detail. Remaining times are relative to nowMs, in ledger time; 0 omits them.
func (u Units) DrawAllocation(p *Page, a *quoratev1.Allocation, nowMs int64) error {
	if err := p.Table(u.AllocationRows(a)); err != nil {
		return err
	}
	if namespace := a.GetNamespace(); namespace != "" && namespace != DefaultNamespace {
		p.Linef("in the namespace %s", namespace)
	}
	if principal := a.GetPrincipal(); principal != nil {
		p.Linef("held by %s", principalText(principal))
	}
	reserved := a.GetState() == quoratev1.AllocationState_ALLOCATION_STATE_RESERVED
	if until := a.GetReservedUntilLedgerMs(); until > 0 && reserved {
		p.Linef("reserved for %v from its grant", time.Duration(until-a.GetGrantedLedgerMs())*time.Millisecond)
	}
	for _, text := range []string{u.LeaseText(a, nowMs), WaitingText(a), u.ResizeText(a)} {
		if text != "" {
			p.Linef("%s", text)
		}
	}
	for _, victim := range a.GetPreempted() {
		p.Linef("%s %s", PreemptionWord(a), u.VictimText(victim))
	}
	if text := u.madeRoomText(a.GetMadeRoom()); text != "" {
		p.Linef("%s", text)
	}
	if text := u.EndText(a); text != "" {
		p.Linef("%s", text)
	}
	return nil
}

// PreemptionWord says what happened to those who made room for an allocation: a request that waits revokes leases.
func PreemptionWord(a *quoratev1.Allocation) string {
	if a.GetFence() == 0 {
		return "revoked"
	}
	return "preempted"
}

// EndText says who ended an allocation, and why; empty if it is held, or ended by its holder or its time.
func (u Units) EndText(a *quoratev1.Allocation) string {
	switch {
	case a.GetPreemptedBy() != nil:
		by := CauseText(a.GetPreemptedBy(), a.GetNamespace(), a.GetReason())
		return u.withReason("preempted by "+by, a.GetReason())
	case a.GetState() == quoratev1.AllocationState_ALLOCATION_STATE_PREEMPTED:
		return u.withReason("preempted", a.GetReason())
	case a.GetReason().GetKind() == quoratev1.EndReasonKind_END_REASON_KIND_RELEASE:
		return u.ReasonText(a.GetReason())
	}
	return ""
}

func principalText(principal *quoratev1.Principal) string {
	text := "user " + principal.GetUser()
	if len(principal.GetGroups()) > 0 {
		text += " of " + strings.Join(principal.GetGroups(), ", ")
	}
	if principal.GetApplication() != "" {
		text += ", application " + principal.GetApplication()
	}
	return text
}

// AllocationRows is the table of allocations, one per row.
func (u Units) AllocationRows(allocations ...*quoratev1.Allocation) [][]string {
	rows := [][]string{{"ID", "STATE", "FENCE", "GRANTED", "HOLDS", "LABELS"}}
	for _, a := range allocations {
		var labels []string
		for _, name := range slices.Sorted(maps.Keys(a.GetLabels())) {
			labels = append(labels, name+"="+a.GetLabels()[name])
		}
		state := StateText(a)
		if a.GetForced() {
			state += " by force"
		}
		if number := a.GetAlternative(); number > 0 {
			state += ", " + AlternativeText(number)
		}
		rows = append(rows, []string{
			a.GetId(), state, strconv.FormatUint(a.GetFence(), 10), FormatTime(a.GetGrantedAt()),
			u.ClaimsText(a), strings.Join(labels, " "),
		})
	}
	return withNamespaces(rows, allocations)
}

// WithDetails adds the columns of -o wide that a table with one allocation per row does not have yet. Remaining times
// are relative to nowMs, in ledger time.
func WithDetails(rows [][]string, allocations []*quoratev1.Allocation, nowMs int64) [][]string {
	columns := []struct {
		heading string
		text    func(*quoratev1.Allocation) string
	}{
		{"USER", func(a *quoratev1.Allocation) string { return a.GetPrincipal().GetUser() }},
		{"GROUPS", func(a *quoratev1.Allocation) string { return strings.Join(a.GetPrincipal().GetGroups(), ",") }},
		{"APPLICATION", func(a *quoratev1.Allocation) string { return a.GetPrincipal().GetApplication() }},
		{"MADE BY", (*quoratev1.Allocation).GetOwner},
		{"PRIORITY", func(a *quoratev1.Allocation) string { return strconv.FormatInt(a.GetPriority(), 10) }},
		{"LEFT", func(a *quoratev1.Allocation) string {
			if a.GetExpiresLedgerMs() == 0 {
				return ""
			}
			return RoundSpan(a.GetExpiresLedgerMs() - nowMs)
		}},
	}
	if !slices.Contains(rows[0], namespaceHeading) {
		rows = namespaceColumn(rows, allocations)
	}
	known := slices.Clone(rows[0])
	for _, column := range columns {
		if slices.Contains(known, column.heading) {
			continue
		}
		rows[0] = append(rows[0], column.heading)
		for i, a := range allocations {
			rows[i+1] = append(rows[i+1], cmp.Or(column.text(a), "-"))
		}
	}
	return rows
}

// ClaimsText writes the claims of an allocation, or of a request that waits.
func (u Units) ClaimsText(a *quoratev1.Allocation) string {
	var lists []string
	for _, alternative := range a.GetWaiting().GetAlternatives() {
		lists = append(lists, u.claimTexts(alternative.GetClaims()))
	}
	if len(lists) == 0 {
		return u.claimTexts(a.GetClaims())
	}
	return strings.Join(lists, " or ")
}

func (u Units) claimTexts(list []*quoratev1.HeldClaim) string {
	var claims []string
	for _, claim := range list {
		claims = append(claims, u.claimText(claim))
	}
	return strings.Join(claims, "; ")
}

// StateText is the state of an allocation.
func StateText(a *quoratev1.Allocation) string {
	word := strings.ToLower(strings.TrimPrefix(a.GetState().String(), "ALLOCATION_STATE_"))
	return strings.ReplaceAll(word, "_", " ")
}

// claimText writes the node and amounts of a claim, and in brackets everything that differs from the default.
func (u Units) claimText(c *quoratev1.HeldClaim) string {
	held := []string{Place{c.GetTree(), c.GetNode()}.String()}
	if len(c.GetAmounts()) > 0 {
		held = append(held, u.FormatHeld(c))
	}
	text := strings.Join(append(held, itemsText(c)...), " ")
	var notes []string
	if c.GetPlaced() != c.GetNode() {
		notes = append(notes, "counted at "+Place{c.GetTree(), c.GetPlaced()}.String())
	}
	if c.GetPriority() != 0 {
		notes = append(notes, "priority "+strconv.FormatInt(c.GetPriority(), 10))
	}
	if c.GetPreemptionClass() != 0 {
		notes = append(notes, "type "+strconv.FormatInt(c.GetPreemptionClass(), 10))
	}
	if c.GetUnpreemptable() {
		notes = append(notes, "unpreemptable")
	}
	if c.GetGroup() != "" {
		notes = append(notes, "counted for group "+c.GetGroup())
	}
	if len(notes) > 0 {
		text += " (" + strings.Join(notes, ", ") + ")"
	}
	return text
}

// FormatHeld writes the amounts of a claim, those of ranges with their ranges.
func (u Units) FormatHeld(c *quoratev1.HeldClaim) string {
	var parts []string
	for _, resource := range slices.Sorted(maps.Keys(c.GetAmounts())) {
		write := func(amount int64) string { return u.FormatAmount(c.GetTree(), resource, amount) }
		parts = append(parts, resource+"="+write(c.GetAmounts()[resource]))
		for _, r := range c.GetRanges() {
			if r.GetResource() == resource {
				parts = append(parts, "of "+write(r.GetLeast())+".."+write(r.GetMost())+"/"+write(r.GetStep()))
			}
		}
	}
	return strings.Join(parts, " ")
}

// LeaseText writes the TTL and the remaining time of a lease at a moment of ledger time, if that is known. It is
// empty for allocations that are not leases.
func (u Units) LeaseText(a *quoratev1.Allocation, nowMs int64) string {
	if a.GetExpiresLedgerMs() == 0 || a.GetState() != quoratev1.AllocationState_ALLOCATION_STATE_HELD {
		return ""
	}
	left, end := "", ""
	if nowMs > 0 {
		left, end = " in "+RoundSpan(a.GetExpiresLedgerMs()-nowMs), " in "+RoundSpan(a.GetEndsLedgerMs()-nowMs)
	}
	declared := "held for " + RoundSpan(a.GetForMs()) + ": ends" + cmp.Or(end, " then")
	if a.GetForMs() == 0 {
		declared = "ends" + cmp.Or(end, " at a declared time")
	}
	if revoker := RevokerText(a); revoker != "" {
		text := fmt.Sprintf("revoked by %s: ends%s", revoker, cmp.Or(left, " soon"))
		if why := u.ReasonText(a.GetReason()); why != "" {
			text += "; " + why
		}
		return text
	}
	switch {
	case a.GetTtlMs() == 0 && a.GetEndsLedgerMs() == 0:
		return "granted from the queue and not collected: it ends after its keep span unless its caller repeats the request"
	case a.GetTtlMs() == 0:
		return declared
	case a.GetEndsLedgerMs() != 0:
		return fmt.Sprintf("a lease of %s, %s", RoundSpan(a.GetTtlMs()), declared)
	}
	return fmt.Sprintf("a lease of %s: ends%s unless it is renewed", RoundSpan(a.GetTtlMs()), left)
}

// WaitingText is the position of a waiting request; empty if it does not wait.
func WaitingText(a *quoratev1.Allocation) string { return QueueText(a.GetWaiting()) }

// ResizeText is what a waiting resize asks for, and its position; empty if none waits.
func (u Units) ResizeText(a *quoratev1.Allocation) string {
	r := a.GetResize()
	if r == nil {
		return ""
	}
	return u.ResizeClaims(r) + " " + cmp.Or(QueueText(r.GetWaiting()), "waits")
}

// ResizeClaims is what a waiting resize asks for.
func (u Units) ResizeClaims(r *quoratev1.WaitingResize) string {
	var claims []string
	for _, c := range r.GetClaims() {
		claims = append(claims, PlaceOf(c.GetTree(), c.GetNode()).String()+" "+u.FormatAmounts(c.GetTree(), c.GetAmounts()))
	}
	return "resize to " + strings.Join(claims, ", ")
}

// QueueText says that something waits at a position; empty if it does not wait.
func QueueText(w *quoratev1.Waiting) string {
	if w.GetPosition() == 0 { // not in the queue, or not yet assigned a position
		return ""
	}
	return "waits at position " + PositionText(w)
}

// CertainText is in how long a request is granted at the latest, rounded up; in hours if it is a day or more.
func CertainText(at, now int64) string {
	if at == 0 {
		return "-"
	}
	const hour = int64(time.Hour / time.Millisecond)
	span := at - now
	if span >= 24*hour {
		span = (span + hour - 1) / hour * hour
	}
	return "in " + RoundSpan(span)
}

// PositionText is the position of a waiting request with what it counts for, or that of each alternative.
func PositionText(w *quoratev1.Waiting) string {
	text := positionFor(w.GetPosition(), w.GetLine())
	for i, at := range w.GetAlternatives() {
		if i == 0 {
			text = ""
		} else {
			text += ", "
		}
		text += positionFor(at.GetPosition(), at.GetLine()) + " (" + AlternativeText(at.GetAlternative()) + ")"
	}
	return text
}

func positionFor(position int64, line string) string {
	return strings.TrimSuffix(strconv.FormatInt(position, 10)+" for "+line, " for ")
}

// pickText writes requested items as --item takes them.
func pickText(pick *quoratev1.ItemPick) string {
	text := pick.GetResource()
	if pick.GetState() != "" && pick.GetState() != freeState {
		text += "@" + pick.GetState()
	}
	if len(pick.GetNames()) > 0 {
		return text + ":" + strings.Join(pick.GetNames(), ",")
	}
	return text + "=" + strconv.FormatInt(max(pick.GetCount(), 1), 10)
}

// freeState is the state that a request without a state asks for.
const freeState = "free"

// itemsText writes the items that a claim holds, or the requested items if it holds none yet.
func itemsText(c *quoratev1.HeldClaim) []string {
	if len(c.GetItems()) == 0 {
		var asked []string
		for _, pick := range c.GetPicks() {
			asked = append(asked, pickText(pick))
		}
		return asked
	}
	var held []string
	resource := ""
	for _, item := range c.GetItems() {
		if item.GetResource() != resource {
			resource = item.GetResource()
			held = append(held, resource+":"+item.GetName())
			continue
		}
		held[len(held)-1] += "," + item.GetName()
	}
	return held
}

// LeaseRows is the table of leases at a moment of ledger time.
func (u Units) LeaseRows(leases []*quoratev1.Allocation, nowMs int64) [][]string {
	rows := [][]string{{"ID", "FENCE", "TTL", "LEFT", "USER", "HOLDS", "REVOKED BY"}}
	for _, a := range leases {
		rows = append(rows, []string{
			a.GetId(), strconv.FormatUint(a.GetFence(), 10), RoundSpan(a.GetTtlMs()),
			RoundSpan(a.GetExpiresLedgerMs() - nowMs),
			a.GetPrincipal().GetUser(), u.ClaimsText(a), RevokerText(a),
		})
	}
	return withNamespaces(withJobs(rows, leases), leases)
}

func withJobs(rows [][]string, allocations []*quoratev1.Allocation) [][]string {
	if !slices.ContainsFunc(allocations, func(a *quoratev1.Allocation) bool { return JobText(a.GetLabels()) != "" }) {
		return rows
	}
	rows[0] = append(rows[0], "JOB")
	for i, a := range allocations {
		rows[i+1] = append(rows[i+1], JobText(a.GetLabels()))
	}
	return rows
}
