package cli

import (
	"fmt"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/quantity"
	"github.com/quorate/quorate/internal/manifest"
)

// CrossingText writes where a threshold is and how much of the limit is used.
func (u Units) CrossingText(c *quoratev1.ThresholdCrossing) string {
	unit := u[c.GetTree()][c.GetResource()]
	text := fmt.Sprintf("%s  %s: %d%% of limit %s, used %s", Place{c.GetTree(), c.GetNode()}, c.GetResource(),
		c.GetPercent(), manifest.FormatLimit(c.GetLimit(), unit), quantity.Format(c.GetUsed(), unit))
	if n := c.GetOmitted(); n > 0 {
		text += fmt.Sprintf("; and %d more thresholds", n)
	}
	return text
}
