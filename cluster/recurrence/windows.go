package recurrence

import (
	"time"

	"github.com/quorate/quorate/quota"
)

// maxDays is more days than any window lasts that no other one touches.
const maxDays = 8

// Windows are the next windows of the rule, in order and disjoint: at most some, those that end after an instant and
// begin before the end of the rule, which is 0 for none. What they have outside of that is cut off, and what is then
// shorter than [quota.MinWindow] is left out.
//
// A window begins and ends at the first instant at which the clock of the time zone shows the date and the time, or a
// later one. So a time that the clock skips is the instant of the change, and of a time that occurs twice the first
// counts. A window of which nothing is left is left out. Windows that touch or overlap are one.
func (r Rule) Windows(after, ends quota.CivilTime, most int) []quota.CivilWindow {
	if ends == 0 || ends > quota.MaxCivilTime {
		ends = quota.MaxCivilTime
	}
	var list []quota.CivilWindow
	take := func(w quota.CivilWindow) {
		w.From, w.Until = max(w.From, after), min(w.Until, ends)
		if w.Until-w.From >= quota.MinWindow {
			list = append(list, w)
		}
	}
	var last quota.CivilWindow
	for w := range r.windowsFrom(after) {
		switch {
		case w.From <= last.Until:
			last.Until = max(last.Until, w.Until)
			continue
		case last.Until > after:
			take(last)
		}
		if len(list) >= most || last.From >= ends {
			return list
		}
		last = w
	}
	return list
}

// windowsFrom yields the windows of one date after the other, as they are before those that touch are joined. It begins
// before the first one that ends after an instant, and does not end.
func (r Rule) windowsFrom(after quota.CivilTime) func(yield func(quota.CivilWindow) bool) {
	return func(yield func(quota.CivilWindow) bool) {
		year, month, day := time.UnixMilli(int64(after)).In(r.location).Date()
		for date := time.Date(year, month, day-maxDays, 0, 0, 0, 0, time.UTC); ; date = date.AddDate(0, 0, 1) {
			if !r.days.includes(date) {
				continue
			}
			w := quota.CivilWindow{
				From:  r.firstInstant(date, r.span.begin),
				Until: r.firstInstant(r.span.endDate(date), r.span.end),
			}
			if w.From < w.Until && !yield(w) {
				return
			}
		}
	}
}

// firstInstant is the first instant at which the clock of the time zone shows a time of a date, or a later one. date is
// the midnight of the date in UTC.
//
// It looks at the spans of time between changes of the clock in their order, beginning with an instant at which the
// clock of no time zone shows the time yet.
func (r Rule) firstInstant(date time.Time, clock clockTime) quota.CivilTime {
	const mostAhead = 24 * time.Hour
	shown := date.Add(time.Duration(clock))
	for at := shown.Add(-mostAhead).In(r.location); ; {
		_, ahead := at.Zone()
		_, changes := at.ZoneBounds()
		if !changes.IsZero() && !changes.After(at) {
			changes = at.Add(time.Hour) // Go 1.26 tells a past end on the last day of leap years
		}
		if local := shown.Add(-time.Duration(ahead) * time.Second); local.After(at) {
			at = local
		}
		if changes.IsZero() || at.Before(changes) {
			return quota.CivilTime(at.UnixMilli())
		}
		at = changes
	}
}

// pauses is true if there is a pause between windows. The time zone does not matter: no change of the clock lasts as
// long as a window that joins many others.
func (r Rule) pauses() bool {
	r.location = time.UTC
	const many = 400
	var until quota.CivilTime
	seen := 0
	for w := range r.windowsFrom(0) {
		if seen > 0 && w.From > until {
			return true
		}
		if seen++; seen == many {
			return false
		}
		until = w.Until
	}
	return true
}
