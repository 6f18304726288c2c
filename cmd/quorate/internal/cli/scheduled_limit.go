package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/quantity"
)

// ScheduledText writes what a scheduled limit does, and when.
func (u Units) ScheduledText(s *quoratev1.ScheduledLimit) string {
	text := u.AdjustmentsText(s)
	if s.GetEvery() != "" {
		text += " every " + s.GetEvery() + ruleSpan(s)
		if s.GetEndsAt() != nil {
			text += ", next"
		}
	}
	if s.GetBeginsAt() != nil {
		text += " from " + FormatTime(s.GetBeginsAt())
	}
	if s.GetEndsAt() != nil {
		text += " until " + FormatTime(s.GetEndsAt())
	}
	if s.GetInForce() {
		text += ", in force"
	}
	return text
}

// ruleSpan writes when a rule begins and ends, if that is known.
func ruleSpan(s *quoratev1.ScheduledLimit) string {
	var text string
	if s.GetRuleBeginsAt() != nil {
		text = " from " + FormatTime(s.GetRuleBeginsAt())
	}
	if s.GetRuleEndsAt() != nil {
		text += " until " + FormatTime(s.GetRuleEndsAt())
	}
	return text
}

// SkippedText writes the windows in which a recurring limit will not be in force, one in each line.
func SkippedText(s *quoratev1.ScheduledLimit) []string {
	var lines []string
	for _, w := range s.GetSkipped() {
		lines = append(lines, fmt.Sprintf("not in force from %s until %s: %s", FormatTime(w.GetBeginsAt()),
			FormatTime(w.GetEndsAt()), w.GetReason()))
	}
	return lines
}

// AdjustmentsText writes what a scheduled limit does to each resource, as it is written in a command.
func (u Units) AdjustmentsText(s *quoratev1.ScheduledLimit) string {
	var list []string
	for _, resource := range slices.Sorted(maps.Keys(s.GetAdjustments())) {
		unit := u[s.GetTree()][resource]
		text := resource + "="
		switch value := s.GetAdjustments()[resource].GetValue().(type) {
		case *quoratev1.LimitAdjustment_Set:
			text += quantity.Format(value.Set, unit)
		case *quoratev1.LimitAdjustment_Add:
			sign := "+"
			if value.Add < 0 {
				sign = "-"
			}
			text += sign + quantity.Format(max(value.Add, -value.Add), unit)
		case *quoratev1.LimitAdjustment_Cap:
			text += "cap:" + quantity.Format(value.Cap, unit)
		}
		list = append(list, text)
	}
	return strings.Join(list, " ")
}

// ScheduledEventText writes what happened to a scheduled limit.
func (u Units) ScheduledEventText(e *quoratev1.ScheduledLimitEvent) string {
	s := e.GetLimit()
	parts := []string{PlaceOf(s.GetTree(), s.GetNode()).String() + "  " + u.ScheduledText(s)}
	parts = append(parts, SkippedText(s)...)
	for _, o := range e.GetOveruses() {
		parts = append(parts, fmt.Sprintf("then over: %s %s, used %s of %s", PlaceOf(o.GetTree(), o.GetNode()),
			o.GetResource(), u.FormatAmount(o.GetTree(), o.GetResource(), o.GetUsed()),
			u.FormatAmount(o.GetTree(), o.GetResource(), o.GetLimit())))
	}
	return strings.Join(parts, "; ")
}
