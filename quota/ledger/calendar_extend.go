package ledger

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/quota"
)

// extendSchedule adds windows to a recurring scheduled limit, or skips those that a policy does not allow.
func (c *calendar) extendSchedule(command quota.ExtendSchedule, m mode) Outcome {
	s := c.find(command.ID)
	if s == nil || s.Rule == "" {
		return Outcome{Refused: noScheduledLimit(command.ID)}
	}
	if err := checkWindows(command.Windows); err != nil {
		return Outcome{Refused: err}
	}
	was := s.Windows
	skipped, _ := c.addWindows(s, c.unknownWindows(s, command.Windows))
	is := s.Windows
	if m != carryOut {
		s.Windows = was
	} else {
		c.skip(s, skipped)
		c.setDue(s)
		c.beginIfDue(s)
	}
	info := s.info()
	info.Windows = is
	return Outcome{ScheduledLimit: &info, Repeated: len(is) == len(was) && len(skipped) == 0}
}

// unknownWindows are those that the scheduled limit neither has nor has skipped, and that it has room for.
func (c *calendar) unknownWindows(s *scheduledLimit, windows []quota.CivilWindow) []quota.CivilWindow {
	skipped := s.skippedAfter(c.civil.now)
	var last quota.CivilTime
	if n := len(s.Windows); n > 0 {
		last = s.Windows[n-1].Until
	}
	if n := len(skipped); n > 0 {
		last = max(last, skipped[n-1].Until)
	}
	list := slices.DeleteFunc(slices.Clone(windows),
		func(w quota.CivilWindow) bool { return w.From < last || w.Until > s.RuleEnds && s.RuleEnds != 0 })
	list = c.remaining(list)
	return list[:min(len(list), quota.MaxWindows-len(s.Windows)-len(skipped))]
}

// remaining is what has not passed of some windows in order, in a list of its own.
func (c *calendar) remaining(windows []quota.CivilWindow) []quota.CivilWindow {
	var list []quota.CivilWindow
	for _, w := range windows {
		if w.From = max(w.From, c.civil.now); w.Until-w.From >= quota.MinWindow {
			list = append(list, w)
		}
	}
	return list
}

// addWindows adds those of some windows that the policies allow, and returns the others. Without room for more instants
// it stops, and returns false. If the policies do not allow all of the windows it asks about each half of them.
func (c *calendar) addWindows(
	s *scheduledLimit, more []quota.CivilWindow,
) (skipped []quota.SkippedWindow, hasRoom bool) {
	if len(more) == 0 {
		return nil, true
	}
	was, is := s.Windows, slices.Concat(s.Windows, more)
	err := c.checkAttached(s, more, func() { s.Windows = is }, func() { s.Windows = was })
	switch {
	case err == nil:
		s.Windows = is
		return nil, true
	case len(more) == 1 && err.Kind == quota.Full:
		return nil, false
	case len(more) == 1:
		return []quota.SkippedWindow{{CivilWindow: more[0], Reason: skipReason(err)}}, true
	}
	half := len(more) / 2
	skipped, hasRoom = c.addWindows(s, more[:half])
	if hasRoom {
		var rest []quota.SkippedWindow
		rest, hasRoom = c.addWindows(s, more[half:])
		skipped = append(skipped, rest...)
	}
	return skipped, hasRoom
}

// skipReason is a refusal without its numbers.
func skipReason(err *quota.Error) string {
	text := err.Text
	if len(err.Breaches) > 0 {
		b := err.Breaches[0]
		text = fmt.Sprintf("policy %s of %s forbids it for %s", b.Policy, quota.Place(b.Tree, b.Node), b.Resource)
	}
	return quota.Clip(text)
}

// skip remembers skipped windows until they are over.
func (c *calendar) skip(s *scheduledLimit, skipped []quota.SkippedWindow) {
	s.Skipped = slices.Concat(s.skippedAfter(c.civil.now), skipped)
	if len(skipped) == 0 {
		return
	}
	is := s.info()
	is.Windows, is.Skipped = nil, skipped
	c.journal.noteNodeEvent(quota.Event{
		Kind: quota.EventLimitSkipped, ID: s.ID, By: quota.Calendar, Scheduled: &quota.ScheduledLimitEvent{Limit: is},
	})
}

// skippedAfter are the skipped windows that are not over at a civil time.
func (s *scheduledLimit) skippedAfter(now quota.CivilTime) []quota.SkippedWindow {
	i := slices.IndexFunc(s.Skipped, func(w quota.SkippedWindow) bool { return w.Until > now })
	if i < 0 {
		return nil
	}
	return s.Skipped[i:]
}
