package quota

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Thresholds has the thresholds of limits: at how much use of a limit an event says that it is reached. Every limit of
// an amount counts, also an advisory one, own or inherited; limits of users, groups and applications do not. The zero
// value inherits that of the parent, which is none at a root.
type Thresholds struct {
	// Percents are the thresholds, rising, 1 to MaxThresholdPercent, at most MaxThresholds.
	Percents []int
	// Margin is how many points the use must fall below a threshold until it can be crossed again: 1 to the lowest
	// threshold less one, or 0 for DefaultMargin or what the lowest threshold allows, if that is less.
	Margin int
	// None is true if there are none, whatever the parent has; then nothing else is set.
	None bool
}

// Bounds of thresholds.
const (
	MaxThresholds       = 4
	MaxThresholdPercent = 200
	DefaultMargin       = 5
	// MaxCrossings bounds the events about thresholds of one command; the last one counts those that are left out.
	MaxCrossings = 1_000
)

// IsZero is true if the thresholds are those of the parent.
func (w *Thresholds) IsZero() bool { return len(w.Percents) == 0 && w.Margin == 0 && !w.None }

// Equal is true if both say the same.
func (w *Thresholds) Equal(other *Thresholds) bool {
	return w.Margin == other.Margin && w.None == other.None && slices.Equal(w.Percents, other.Percents)
}

// MarginInForce is Margin with its default.
func (w *Thresholds) MarginInForce() int {
	if w.Margin != 0 || len(w.Percents) == 0 {
		return w.Margin
	}
	return min(DefaultMargin, w.Percents[0]-1)
}

// String is the thresholds as text, such as "80% 95%, margin 10"; empty if they are those of the parent, or for nil.
func (w *Thresholds) String() string {
	if w == nil {
		return ""
	}
	if w.None {
		return "none"
	}
	texts := make([]string, len(w.Percents))
	for i, percent := range w.Percents {
		texts[i] = strconv.Itoa(percent) + "%"
	}
	text := strings.Join(texts, " ")
	if w.Margin != 0 {
		text += fmt.Sprintf(", margin %d", w.Margin)
	}
	return text
}

// Reaches is true if an amount is at least so many percent of a limit. Nothing reaches a part of a limit without
// an amount, and of a limit of 0 only more than nothing does. Advisory limits count.
func (a Amount) Reaches(percent int, limit Limit) bool {
	return limit.HasAmount() && ShareOf(a, limit).IsAtLeast(percent)
}

// Exceeds is true if an amount is more than so many percent of a limit.
func (a Amount) Exceeds(percent int, limit Limit) bool {
	return limit.HasAmount() && ShareOf(a, limit).Compare(Share{Used: Amount(percent), Limit: 100}) > 0
}

// Crossing is the crossing of one threshold, upwards or back.
type Crossing struct {
	Tree, Node, Resource string
	// Percent is the threshold. Used is what the subtree of the node holds, Limit the limit in force, both after the
	// command that caused it.
	Percent int
	Used    Amount
	Limit   Limit
	// Omitted counts further crossings of the same command, which have no events; see MaxCrossings.
	Omitted int
}
