package quota

import (
	"fmt"
	"strings"
)

// Calendar is the actor of what happens to limits by itself, because its time has come. No caller can have this name.
const Calendar = "system/calendar"

// ScheduledLimit changes limits of one node for a while, or again and again. The configuration stays as it is: in each
// of its windows the scheduled limit is in force over it. Of several in force for one resource of a node, the limit is
// what the newest says that sets it, or else the configured one; plus the sum of what is added, but not below 0; and
// at most the smallest cap.
type ScheduledLimit struct {
	// ID is chosen by the caller, by the rules for ids of allocations.
	ID string
	// Tree and Node are the place, which follows the node when that is moved. The end of the node ends it too.
	Tree, Node string
	// Adjustments are sorted by resource, 1 to MaxAdjustments, one for each resource.
	Adjustments []LimitAdjustment
	// Windows are those that are in force or to come, in order and disjoint, at most MaxWindows. There is none while a
	// rule waits for the next.
	Windows []CivilWindow
	// Rule is the text of a recurring one, for those who compute the next windows; empty for a single window. RuleBegins
	// is when the rule begins, 0 for when it was scheduled, and RuleEnds when it ends, 0 for never.
	Rule                 string
	RuleBegins, RuleEnds CivilTime
	// Skipped are windows to come that a policy did not allow when the rule was extended by them, in order. Together with
	// Windows there are at most MaxWindows.
	Skipped []SkippedWindow
	// Actor and Reason say who has scheduled it and why.
	Actor, Reason string
	// InForce is true in the first window.
	InForce bool
}

// AdjustmentKind is what a scheduled limit does to a limit. The numbers are part of the log format.
type AdjustmentKind uint8

// The closed list of kinds.
const (
	// SetLimit replaces the limit.
	SetLimit AdjustmentKind = 1
	// AddToLimit adds an amount, which may be negative. An unlimited limit stays unlimited.
	AddToLimit AdjustmentKind = 2
	// CapLimit bounds the limit.
	CapLimit AdjustmentKind = 3
)

// LimitAdjustment is what a scheduled limit does to the limit of one resource.
type LimitAdjustment struct {
	Resource string
	Kind     AdjustmentKind
	// Amount is 0 to MaxAmount; for AddToLimit it is -MaxAmount to MaxAmount and not 0.
	Amount Amount
}

// String is the adjustment as text, such as "cores=200", "cores=+50" or "cores<=10".
func (a LimitAdjustment) String() string { return a.In(Count) }

// In is the adjustment as text with the amount in a unit, see [FormatAmount].
func (a LimitAdjustment) In(unit Unit) string {
	switch a.Kind {
	case AddToLimit:
		sign := "+"
		if a.Amount < 0 {
			sign = ""
		}
		return a.Resource + "=" + sign + FormatAmount(a.Amount, unit)
	case CapLimit:
		return a.Resource + "<=" + FormatAmount(a.Amount, unit)
	case SetLimit:
	}
	return a.Resource + "=" + FormatAmount(a.Amount, unit)
}

// CivilWindow is a span of civil time, without its end.
type CivilWindow struct{ From, Until CivilTime }

// SkippedWindow is a window of a rule in which the limit will not be in force.
type SkippedWindow struct {
	CivilWindow
	// Reason says which policy did not allow it, clipped by Clip. It names no amounts: those who may read the limit may
	// not be allowed to know the limits above it.
	Reason string
}

// FormatAdjustments is a list of adjustments as text.
func FormatAdjustments(list []LimitAdjustment) string {
	words := make([]string, len(list))
	for i, a := range list {
		words[i] = a.String()
	}
	return strings.Join(words, " ")
}

// ScheduledLimitEvent is what happened to a scheduled limit.
type ScheduledLimitEvent struct {
	// Limit has the window that the event is about, and no other. For an EventLimitSkipped it has no window but those
	// that were skipped.
	Limit ScheduledLimit
	// Over lists, for a warning, what would be over its limit if the window ended now; at most MaxOver.
	Over []Overuse
}

// String is the time as text, in UTC and whole seconds, such as 2026-11-27T18:00:00Z.
func (t CivilTime) String() string {
	const day = 24 * 60 * 60
	seconds := int64(t) / 1000
	year, month, date := dateOfDay(seconds / day)
	rest := seconds % day
	return fmt.Sprintf("%04d-%02d-%02dT%02d:%02d:%02dZ", year, month, date, rest/3600, rest/60%60, rest%60)
}

// dateOfDay is the date of a day counted from 1970-01-01, which is 0. It counts in eras of 400 years, which all have as
// many days, and in years that begin in March, so that the day that leap years add is the last.
func dateOfDay(day int64) (year, month, date int64) {
	day += 719_468 // from 0000-03-01
	era, dayOfEra := day/146_097, day%146_097
	yearOfEra := (dayOfEra - dayOfEra/1460 + dayOfEra/36_524 - dayOfEra/146_096) / 365
	dayOfYear := dayOfEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	fromMarch := (5*dayOfYear + 2) / 153
	year, month, date = era*400+yearOfEra, fromMarch+3, dayOfYear-(153*fromMarch+2)/5+1
	if month > 12 {
		year, month = year+1, month-12
	}
	return year, month, date
}
