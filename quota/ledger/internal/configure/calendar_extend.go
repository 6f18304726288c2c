package configure

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// ExtendSchedule adds windows to a recurring scheduled limit, or skips those that a policy does not allow.
func ExtendSchedule(c *state.Calendar, command quota.ExtendSchedule, m state.Mode) state.Outcome {
	s := c.Find(command.ID)
	if s == nil || s.Rule == "" {
		return state.Outcome{Refused: NoScheduledLimit(command.ID)}
	}
	if err := checkWindows(command.Windows); err != nil {
		return state.Outcome{Refused: err}
	}
	previous := s.Windows
	skipped, _ := addWindows(c, s, unknownWindows(c, s, command.Windows))
	updated := s.Windows
	if m != state.CarryOut {
		s.Windows = previous
	} else {
		rememberSkipped(c, s, skipped)
		c.SetDue(s)
		c.BeginIfDue(s)
	}
	info := s.Info()
	info.Windows = updated
	return state.Outcome{ScheduledLimit: &info, Repeated: len(updated) == len(previous) && len(skipped) == 0}
}

// unknownWindows are those that the scheduled limit neither has nor has skipped, and that it has room for.
func unknownWindows(c *state.Calendar, s *state.ScheduledLimit, windows []quota.CivilWindow) []quota.CivilWindow {
	skipped := SkippedAfter(s, c.Civil.Now)
	var last quota.CivilTime
	if n := len(s.Windows); n > 0 {
		last = s.Windows[n-1].Until
	}
	if n := len(skipped); n > 0 {
		last = max(last, skipped[n-1].Until)
	}
	list := slices.DeleteFunc(slices.Clone(windows),
		func(w quota.CivilWindow) bool { return w.From < last || w.Until > s.RuleEnds && s.RuleEnds != 0 })
	list = Remaining(c, list)
	return list[:min(len(list), quota.MaxWindows-len(s.Windows)-len(skipped))]
}

// Remaining is what has not passed of some windows in order, in a list of its own.
func Remaining(c *state.Calendar, windows []quota.CivilWindow) []quota.CivilWindow {
	var list []quota.CivilWindow
	for _, w := range windows {
		if w.From = max(w.From, c.Civil.Now); w.Until-w.From >= quota.MinWindow {
			list = append(list, w)
		}
	}
	return list
}

// addWindows returns the windows that the policies do not allow. Without room for more instants it stops, and returns
// false. If the policies do not allow all of the windows it asks about each half of them.
func addWindows(c *state.Calendar,
	s *state.ScheduledLimit, more []quota.CivilWindow,
) (skipped []quota.SkippedWindow, hasRoom bool) {
	if len(more) == 0 {
		return nil, true
	}
	previous, updated := s.Windows, slices.Concat(s.Windows, more)
	err := CheckAttached(c, s, more, func() { s.Windows = updated }, func() { s.Windows = previous })
	switch {
	case err == nil:
		s.Windows = updated
		return nil, true
	case len(more) == 1 && err.Kind == quota.Full:
		return nil, false
	case len(more) == 1:
		return []quota.SkippedWindow{{CivilWindow: more[0], Reason: skipReason(err)}}, true
	}
	half := len(more) / 2
	skipped, hasRoom = addWindows(c, s, more[:half])
	if hasRoom {
		var rest []quota.SkippedWindow
		rest, hasRoom = addWindows(c, s, more[half:])
		skipped = append(skipped, rest...)
	}
	return skipped, hasRoom
}

func skipReason(err *quota.Error) string {
	text := err.Text
	if len(err.Breaches) > 0 {
		b := err.Breaches[0]
		text = fmt.Sprintf("policy %s of %s forbids it for %s", b.Policy, quota.Place(b.Tree, b.Node), b.Resource)
	}
	return quota.Clip(text)
}

func rememberSkipped(c *state.Calendar, s *state.ScheduledLimit, skipped []quota.SkippedWindow) {
	s.Skipped = slices.Concat(SkippedAfter(s, c.Civil.Now), skipped)
	if len(skipped) == 0 {
		return
	}
	limit := s.Info()
	limit.Windows, limit.Skipped = nil, skipped
	c.Journal.NoteNodeEvent(quota.Event{
		Kind: quota.EventLimitSkipped, ID: s.ID, By: quota.Calendar, Scheduled: &quota.ScheduledLimitEvent{Limit: limit},
	})
}

// SkippedAfter are the skipped windows that are not over at a civil time.
func SkippedAfter(s *state.ScheduledLimit, now quota.CivilTime) []quota.SkippedWindow {
	i := slices.IndexFunc(s.Skipped, func(w quota.SkippedWindow) bool { return w.Until > now })
	if i < 0 {
		return nil
	}
	return s.Skipped[i:]
}
