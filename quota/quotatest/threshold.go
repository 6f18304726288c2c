package quotatest

import (
	"pgregory.net/rapid"

	"github.com/quorate/quorate/quota"
)

// WarnAt draws thresholds of limits.
func WarnAt(t *rapid.T) quota.WarnAt {
	return pick(t, []quota.WarnAt{
		{},
		{None: true},
		{Percents: []int{80, 95}},
		{Percents: []int{50}},
		{Percents: []int{50, 95}, Margin: 25},
		{Percents: []int{1, 100, 150, 200}},
	}, "thresholds")
}
