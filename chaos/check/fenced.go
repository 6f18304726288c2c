package check

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/chaos/history"
)

// checkFenced (P5): fences grow with the log index, and with time as clients see it.
func (s *timeline) checkFenced() *Verdict {
	v := &Verdict{Promise: "P5", Title: "fenced: tokens only grow", Counts: map[string]int{"fences": len(s.byFence)}}
	var last *allocationHistory
	for _, l := range s.byFence {
		if l.grantIndex == 0 {
			continue
		}
		if last != nil && l.grantIndex < last.grantIndex {
			v.AddViolation("%s was granted fence %d at index %d, but %s already had fence %d at index %d", l.id,
				l.fence, l.grantIndex, last.id, last.fence, last.grantIndex)
		}
		last = l
	}
	s.checkFencedByTime(v)
	return v
}

// checkFencedByTime finds grants with a smaller fence than a grant that was answered before they were requested.
func (s *timeline) checkFencedByTime(v *Verdict) {
	byAnswer, byAsk := slices.Clone(s.byFence), slices.Clone(s.byFence)
	slices.SortFunc(byAnswer, func(a, b *allocationHistory) int { return cmp.Compare(a.grantedAt, b.grantedAt) })
	slices.SortFunc(byAsk, func(a, b *allocationHistory) int { return cmp.Compare(a.askedAt, b.askedAt) })
	var highest *allocationHistory
	done := 0
	for _, l := range byAsk {
		for ; done < len(byAnswer) && byAnswer[done].grantedAt < l.askedAt; done++ {
			if highest == nil || byAnswer[done].fence > highest.fence {
				highest = byAnswer[done]
			}
		}
		if highest != nil && l.fence <= highest.fence && l != highest {
			v.AddViolation("%s was granted fence %d, but %s had been answered with fence %d before the request", l.id,
				l.fence, highest.id, highest.fence)
		}
	}
}

// checkAllOrNothing (P6): an allocation holds all claims that were requested until a change asks for others, and then
// exactly those, and a read shows all limits that one change sets together or none of them.
func (s *timeline) checkAllOrNothing() *Verdict {
	v := &Verdict{Promise: "P6", Title: "all or nothing", Counts: map[string]int{}}
	for _, l := range s.byFence {
		s.checkHeldClaims(v, l)
		l.checkRefusedChanges(v)
	}
	var changes [][]history.Limit
	for i := range s.ops {
		if o := &s.ops[i]; o.Kind == history.Configure && (o.Outcome == history.OK || o.Outcome == history.Unknown) {
			changes = append(changes, o.Limits)
		}
	}
	for i := range s.ops {
		if o := &s.ops[i]; o.Kind == history.ReadLimits && len(o.Limits) > 0 {
			v.Count("configurations", 1)
			if !slices.ContainsFunc(changes, func(c []history.Limit) bool { return setsAll(c, o.Limits) }) {
				v.AddViolation("%s at index %d shows limits that no change set together: %+v", o.ServedBy, o.Index,
					o.Limits)
			}
		}
	}
	return v
}

// claimDifference returns an empty text if there is no difference.
func claimDifference(asked, held []history.Claim) string {
	if len(asked) != len(held) {
		return "the number of claims held differs from the number requested"
	}
	for _, want := range asked {
		i := slices.IndexFunc(held, func(h history.Claim) bool { return h.Tree == want.Tree && h.Node == want.Node })
		if i < 0 {
			return "nothing is held at " + want.Tree + ":" + want.Node
		}
		for resource, amount := range want.Amounts {
			if held[i].Amounts[resource] != amount {
				return "the amount held at " + want.Tree + ":" + want.Node + " differs from the amount requested"
			}
		}
		if want.Pick != "" && len(held[i].Items) != 1 {
			return "no item is held at " + want.Tree + ":" + want.Node
		}
	}
	return ""
}

// setsAll reports whether a change sets all limits of a read to the values that the read shows.
func setsAll(change, seen []history.Limit) bool {
	return !slices.ContainsFunc(seen, func(l history.Limit) bool { return !slices.Contains(change, l) })
}
