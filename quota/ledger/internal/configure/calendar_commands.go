package configure

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// BeginNow replaces a begin of 0 by now.
func BeginNow(c *state.Calendar, windows []quota.CivilWindow) []quota.CivilWindow {
	if len(windows) == 0 || windows[0].From != 0 {
		return windows
	}
	windows = slices.Clone(windows)
	windows[0].From = c.Civil.Now
	return windows
}

// ChangesOfScheduled are what audit records say of a scheduled limit.
func ChangesOfScheduled(s *state.ScheduledLimit, kind quota.ChangeKind) []quota.Change {
	list := make([]quota.Change, len(s.Adjustments))
	for i, a := range s.Adjustments {
		text := a.In(s.Node.Tree.UnitOf(a.Resource)) + whenText(s)
		list[i] = quota.Change{
			Kind: kind, Tree: s.Node.TreeName, Node: s.Node.Path, Field: "limit " + a.Resource + " scheduled as " + s.ID,
		}
		if kind == quota.Added {
			list[i].After = text
		} else {
			list[i].Before = text
		}
	}
	return list
}

func whenText(s *state.ScheduledLimit) string {
	if s.Rule != "" {
		text := " every " + s.Rule
		if s.RuleBegins != 0 {
			text += " from " + s.RuleBegins.String()
		}
		if s.RuleEnds != 0 {
			text += " until " + s.RuleEnds.String()
		}
		return text
	}
	if len(s.Windows) == 0 {
		return ""
	}
	return fmt.Sprintf(" from %s until %s", s.Windows[0].From, s.Windows[0].Until)
}

// AnswerToRepeatedSchedule answers a repeated command, and refuses another one under a known id. The windows of a rule
// may have been computed at another time, and a begin of 0 is the begin that the first command got.
func AnswerToRepeatedSchedule(
	c *state.Calendar, s *state.ScheduledLimit, asked []quota.CivilWindow,
) (state.Outcome, bool) {
	known := c.Find(s.ID)
	if known == nil {
		return state.Outcome{}, false
	}
	if len(asked) > 0 && asked[0].From == 0 && len(known.Windows) > 0 {
		s.Windows[0].From = known.Windows[0].From
	}
	if known.Node != s.Node || !slices.Equal(known.Adjustments, s.Adjustments) || known.Rule != s.Rule ||
		known.RuleBegins != s.RuleBegins || known.RuleEnds != s.RuleEnds || known.Reason != s.Reason ||
		s.Rule == "" && !slices.Equal(known.Windows, s.Windows) {
		return state.Outcome{Refused: quota.Errorf(quota.IDTaken, "id",
			"scheduled limit %q exists with other content; use another id, or cancel it first", s.ID)}, true
	}
	info := known.Info()
	return state.Outcome{ScheduledLimit: &info, Repeated: true}, true
}

// CheckNew refuses a scheduled limit that could not be at any node.
func CheckNew(c *state.Calendar, s *state.ScheduledLimit) *quota.Error {
	if c.Civil.Now == 0 {
		return quota.Errorf(quota.InUse, "", "the members have not agreed on civil time yet; try again in some seconds")
	}
	if err := CheckShape(c, &s.ScheduledLimit); err != nil {
		return err
	}
	if len(s.Windows) == 0 {
		return quota.Errorf(quota.Invalid, "windows", "the limit has no window in which it is in force")
	}
	if w := s.Windows[0]; w.Until <= c.Civil.Now {
		return quota.Errorf(quota.Invalid, "ends_at",
			"the window ends at %s, and now is %s; it must end in the future", w.Until, c.Civil.Now)
	}
	return nil
}

// CheckShape refuses what no scheduled limit may be.
func CheckShape(c *state.Calendar, s *quota.ScheduledLimit) *quota.Error {
	if err := admit.CheckID(s.ID); err != nil {
		return err
	}
	if n := len(s.Adjustments); n < 1 || n > quota.MaxAdjustments {
		return quota.Errorf(quota.Invalid, "adjustments", "the limit changes %d resources; 1 to %d are allowed", n,
			quota.MaxAdjustments)
	}
	for i, a := range s.Adjustments {
		if err := checkAdjustment(a, fmt.Sprintf("adjustments[%d]", i)); err != nil {
			return err
		}
		if i > 0 && s.Adjustments[i-1].Resource >= a.Resource {
			return quota.Errorf(quota.Invalid, fmt.Sprintf("adjustments[%d].resource", i),
				"resource %s is not in order, or changed twice", quota.Clip(a.Resource))
		}
	}
	switch {
	case len(s.Rule) > quota.MaxRule:
		return quota.Errorf(quota.Invalid, "every", "the rule has %d bytes; at most %d are allowed", len(s.Rule),
			quota.MaxRule)
	case s.Rule == "" && (s.RuleBegins != 0 || s.RuleEnds != 0 || len(s.Windows) > 1):
		return quota.Errorf(quota.Invalid, "every", "a limit without a rule has one window; schedule one limit for each")
	case s.RuleBegins < 0 || s.RuleBegins > quota.MaxCivilTime:
		return quota.Errorf(quota.Invalid, "begins_at", "a rule begins at 1 to %d ms after 1970, not %d; 0 for now",
			int64(quota.MaxCivilTime), int64(s.RuleBegins))
	case s.RuleEnds < 0 || s.RuleEnds > quota.MaxCivilTime:
		return quota.Errorf(quota.Invalid, "ends_at", "a rule ends at 1 to %d ms after 1970, not %d; 0 for never",
			int64(quota.MaxCivilTime), int64(s.RuleEnds))
	case len(s.Actor) > quota.MaxActor || len(s.Reason) > quota.MaxReason:
		return quota.Errorf(quota.Invalid, "reason", "actor and reason have %d and %d bytes; at most %d and %d are allowed",
			len(s.Actor), len(s.Reason), quota.MaxActor, quota.MaxReason)
	}
	return checkWindows(s.Windows)
}

// CheckSkipped refuses a list of skipped windows that no scheduled limit may have.
func CheckSkipped(s *quota.ScheduledLimit) error {
	windows := make([]quota.CivilWindow, len(s.Skipped))
	for i, w := range s.Skipped {
		windows[i] = w.CivilWindow
	}
	if err := checkWindows(windows); err != nil {
		return err
	}
	if n := len(s.Windows) + len(s.Skipped); n > quota.MaxWindows || s.Rule == "" && len(s.Skipped) > 0 {
		return fmt.Errorf("scheduled limit %q has %d windows and %d skipped ones", s.ID, len(s.Windows), len(s.Skipped))
	}
	return nil
}

func checkAdjustment(a quota.LimitAdjustment, field string) *quota.Error {
	switch {
	case a.Kind < quota.SetLimit || a.Kind > quota.CapLimit:
		return quota.Errorf(quota.Invalid, field+".kind", "%d is unknown; a limit is set (1), added to (2) or capped (3)",
			a.Kind)
	case a.Kind == quota.AddToLimit && (a.Amount == 0 || a.Amount < -quota.MaxAmount || a.Amount > quota.MaxAmount):
		return quota.Errorf(quota.Invalid, field+".amount",
			"%d is added to the limit of %s; 1 to %d are allowed, or as many less", a.Amount, quota.Clip(a.Resource),
			quota.MaxAmount)
	case a.Kind != quota.AddToLimit && (a.Amount < 0 || a.Amount > quota.MaxAmount):
		return quota.Errorf(quota.Invalid, field+".amount", "the limit of %s is %d; 0 to %d are allowed",
			quota.Clip(a.Resource), a.Amount, quota.MaxAmount)
	}
	return nil
}

func checkWindows(windows []quota.CivilWindow) *quota.Error {
	if n := len(windows); n > quota.MaxWindows {
		return quota.Errorf(quota.Invalid, "windows", "there are %d windows; at most %d are allowed", n, quota.MaxWindows)
	}
	for i, w := range windows {
		field := fmt.Sprintf("windows[%d]", i)
		switch {
		case w.From < 0 || w.Until > quota.MaxCivilTime:
			return quota.Errorf(quota.Invalid, field, "a window is within 0 and %d ms after 1970; this is %d to %d",
				int64(quota.MaxCivilTime), int64(w.From), int64(w.Until))
		case w.Until-w.From < quota.MinWindow:
			return quota.Errorf(quota.Invalid, field+".until_ms",
				"a window lasts %d ms or more; this is from %s until %s", int64(quota.MinWindow), w.From, w.Until)
		case i > 0 && windows[i-1].Until > w.From:
			return quota.Errorf(quota.Invalid, field+".from_ms", "the window begins before the end of the one before it")
		}
	}
	return nil
}

// CheckPlace refuses a scheduled limit that does not fit its node or the bounds.
func CheckPlace(c *state.Calendar, s *state.ScheduledLimit) *quota.Error {
	for i, a := range s.Adjustments {
		if s.Node.Tree.Resource(a.Resource) == nil {
			return quota.Errorf(quota.NotFound, fmt.Sprintf("adjustments[%d].resource", i),
				"tree %s registers no resource %q; it has %s", s.Node.TreeName, quota.Clip(a.Resource),
				s.Node.Tree.ResourceNames())
		}
	}
	if len(c.All) >= c.Bounds.Scheduled {
		return quota.Errorf(quota.Full, "", "%d limits are scheduled, as many as may be; cancel some", len(c.All))
	}
	return nil
}

// CheckAttached changes the scheduled limits of a node for a moment and asks whether the policies allow every limit
// that follows from that, now and later.
func CheckAttached(
	c *state.Calendar, s *state.ScheduledLimit, windows []quota.CivilWindow, change, revert func(),
) *quota.Error {
	before := familiesOf(s.Node, s.Adjustments, windows)
	change()
	defer revert()
	for _, a := range s.Adjustments {
		for _, top := range []*state.Node{s.Node.Parent, s.Node} {
			if top == nil {
				continue
			}
			if n := len(familyInstants(top, a.Resource)); n > quota.MaxFamilyInstants {
				return quota.Errorf(quota.Full, "windows",
					"the limits of %s at %s and its children would change at %d instants; at most %d are allowed: "+
						"cancel some scheduled limits", a.Resource, top.Place(), n, quota.MaxFamilyInstants)
			}
		}
	}
	if breaches := checkFamilies(s.Node, s.Adjustments, before); len(breaches) > 0 {
		return quota.NewBreachError(breaches)
	}
	return nil
}

// NoScheduledLimit is the refusal of an id that is not known, or that the caller may not know.
func NoScheduledLimit(id string) *quota.Error {
	return quota.Errorf(quota.NotFound, "id", "no limit is scheduled as %q; it may have ended", quota.Clip(id))
}
