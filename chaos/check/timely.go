package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/quorate/quorate/chaos/history"
)

// civilSlack is how far civil time may be ahead of the true time, in milliseconds: the cluster corrects it beyond a
// second, and reads a clock with an error of at most half a second.
const civilSlack = 2000

// maxStandstill is how long civil time may stand still, in milliseconds of ledger time: only as long as it was ahead,
// and a correction has an error too. A read tells ledger time as of now and civil time as of the last entry, which is
// older by up to a tick.
const maxStandstill = civilSlack + 1000 + 1500

type scheduleView struct {
	server      string
	index       uint64
	civil, wall int64
	ledger      int64
	scheduled   []history.ScheduledLimit
	// called and returned are the times of the call. isExact is false if the answer may be older than the call.
	called, returned int64
	isExact          bool
}

func scheduleViews(ops []history.Op, f Finals) []scheduleView {
	var all []scheduleView
	for i := range ops {
		if o := &ops[i]; o.Kind == history.ReadSchedule && o.Outcome == history.OK {
			all = append(all, scheduleView{
				o.ServedBy, o.Index, o.Civil, o.Wall, o.Ledger, o.Scheduled, o.Call, o.Return, !o.Stale,
			})
		}
	}
	for _, s := range f.States {
		all = append(all, scheduleView{s.Node, s.Index, s.Civil, s.Wall, s.Ledger, s.Scheduled, never, never, true})
	}
	slices.SortStableFunc(all, func(a, b scheduleView) int { return cmp.Compare(a.index, b.index) })
	return all
}

func (w *scheduleView) shows(id string) (history.ScheduledLimit, bool) {
	i := slices.IndexFunc(w.scheduled, func(l history.ScheduledLimit) bool { return l.ID == id })
	if i < 0 {
		return history.ScheduledLimit{}, false
	}
	return w.scheduled[i], true
}

// checkTimely (P11): civil time is not ahead of the true time, does not go back and does not stand still while ledger
// time goes on, and scheduled limits begin and end by it, not earlier. That they do not begin or end too late is a
// matter of checkLive, because there may be no leader.
func (s *timeline) checkTimely() *Verdict {
	v := &Verdict{
		Promise: "P11", Title: "timely: scheduled limits follow the clocks of a majority", Counts: map[string]int{},
	}
	s.checkCivilTime(v)
	for _, w := range s.windows {
		s.checkWindow(v, w)
	}
	return v
}

func (s *timeline) checkCivilTime(v *Verdict) {
	var last scheduleView
	var lead int64 // the most that civil time was ahead of ledger time
	for _, view := range s.scheduleViews {
		if view.civil == 0 {
			continue
		}
		v.Count("civil times", 1)
		if ahead := view.civil - view.wall; ahead > civilSlack {
			v.AddViolation("at index %d %s shows the civil time %v, %v ahead of the clocks of a majority", view.index,
				view.server, formatWall(view.civil), time.Duration(ahead)*time.Millisecond)
		}
		if view.civil < last.civil {
			v.AddViolation("civil time is %v at index %d (%s), but was %v at index %d (%s)", formatWall(view.civil),
				view.index, view.server, formatWall(last.civil), last.index, last.server)
		}
		if lost := lead - (view.civil - view.ledger); lost > maxStandstill {
			v.AddViolation("civil time is %v at index %d (%s): it stood still for %v of ledger time",
				formatWall(view.civil), view.index, view.server, time.Duration(lost)*time.Millisecond)
		}
		last, lead = view, max(lead, view.civil-view.ledger)
	}
}

// checkWindow: no answer shows a scheduled limit in force before its begin, and none lacks it before its end.
func (s *timeline) checkWindow(v *Verdict, w *scheduledWindow) {
	if w.inForceFrom > 0 {
		v.Count("begun limits", 1)
	}
	if w.goneIndex > 0 {
		v.Count("ended limits", 1)
	}
	for _, view := range s.scheduleViews {
		shown, isScheduled := view.shows(w.ID)
		switch {
		case isScheduled && shown.InForce && view.civil < w.From:
			v.AddViolation("%s is in force at index %d (%s), at the civil time %v, and begins at %v", w.ID, view.index,
				view.server, formatWall(view.civil), formatWall(w.From))
		case !isScheduled && w.isKnownTo(view) && view.civil < w.Until:
			v.AddViolation("%s has ended at index %d (%s), at the civil time %v, and ends at %v", w.ID, view.index,
				view.server, formatWall(view.civil), formatWall(w.Until))
		}
	}
}

func formatWall(millis int64) string {
	return time.UnixMilli(millis).UTC().Format("2006-01-02 15:04:05.000")
}

// CheckLateness returns an error if civil time is behind in a final state, or something that is due has not happened.
// The cluster may need some seconds after healing.
func (f *Finals) CheckLateness() error {
	const allowed = 5 * time.Second
	for _, s := range f.States {
		if behind := time.Duration(s.Wall-s.Civil) * time.Millisecond; s.Civil > 0 && behind > allowed {
			return fmt.Errorf("civil time is %v behind on %s", behind, s.Node)
		}
		for _, l := range s.Scheduled {
			if l.Until <= s.Civil || !l.InForce && l.From <= s.Civil {
				return fmt.Errorf("%s should have begun or ended on %s at index %d", l.ID, s.Node, s.Index)
			}
		}
	}
	return nil
}
