package quotatest

import (
	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
)

// Thresholds draws thresholds of limits.
func Thresholds(t *rapid.T) quota.Thresholds {
	return pick(t, []quota.Thresholds{
		{},
		{None: true},
		{Percents: []int{80, 95}},
		{Percents: []int{50}},
		{Percents: []int{50, 95}, Margin: 25},
		{Percents: []int{1, 100, 150, 200}},
	}, "thresholds")
}
