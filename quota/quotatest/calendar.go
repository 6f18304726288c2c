package quotatest

import (
	"fmt"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
)

// civilStep is the unit of the windows of CalendarCommands: the shortest window there may be.
const civilStep = quota.MinWindow

// CalendarCommands are about civil time and scheduled limits.
func CalendarCommands() *rapid.Generator[quota.Command] { return rapid.Custom(calendarCommand) }

func calendarCommand(t *rapid.T) quota.Command {
	id := fmt.Sprintf("s%d", Die(t, 6, "schedule"))
	switch Die(t, 8, "calendar") {
	case 0, 1:
		return quota.SetCivilOffset{Offset: quota.Span(rapid.Int64Range(0, 8).Draw(t, "offset")) * quota.Span(civilStep)}
	case 2:
		return quota.CancelScheduledLimit{ID: id}
	case 3:
		return quota.ExtendSchedule{ID: id, Windows: windows(t, 3)}
	}
	c := quota.ScheduleLimits{
		ID: id, Tree: TreeNames[Die(t, 2, "tree")], Node: path(t), Windows: windows(t, 1), Reason: "a campaign",
	}
	if Die(t, 3, "recurs") == 0 {
		c.Rule, c.Windows = "daily", windows(t, 3)
		if last := c.Windows[len(c.Windows)-1].Until; Die(t, 3, "ends") == 0 {
			c.RuleBegins, c.RuleEnds = c.Windows[0].From, last+civilStep
		}
	}
	for _, name := range resources[:2] {
		if Die(t, 3, "adjusted") > 0 {
			c.Adjustments = append(c.Adjustments, quota.LimitAdjustment{
				Resource: name, Kind: quota.AdjustmentKind(1 + Die(t, 3, "adjustment")),
				Amount: quota.Amount(rapid.Int64Range(-2, 8).Draw(t, "amount")),
			})
		}
	}
	return c
}

func windows(t *rapid.T, most int) []quota.CivilWindow {
	var list []quota.CivilWindow
	at := quota.CivilTime(Die(t, 12, "from")) * civilStep
	for range 1 + Die(t, most, "windows") {
		w := quota.CivilWindow{From: at, Until: at + quota.CivilTime(1+Die(t, 4, "length"))*civilStep}
		list = append(list, w)
		at = w.Until + quota.CivilTime(Die(t, 3, "pause"))*civilStep
	}
	return list
}
