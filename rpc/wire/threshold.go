package wire

import (
	"slices"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

func toThresholds(w *quoratev1.LimitThresholds) quota.Thresholds {
	spec := quota.Thresholds{Margin: int(w.GetMarginPercent()), None: w.GetNone()}
	for _, percent := range slices.Sorted(slices.Values(w.GetPercents())) {
		spec.Percents = append(spec.Percents, int(percent))
	}
	return spec
}

// fromThresholds is nil for the thresholds of the parent.
func fromThresholds(w quota.Thresholds) *quoratev1.LimitThresholds {
	if w.IsZero() {
		return nil
	}
	shown := &quoratev1.LimitThresholds{MarginPercent: int32(w.Margin), None: w.None}
	for _, percent := range w.Percents {
		shown.Percents = append(shown.Percents, int32(percent))
	}
	return shown
}

// FromCrossing converts the crossing of a threshold; nil stays nil.
func FromCrossing(c *quota.Crossing, cleared bool) *quoratev1.ThresholdCrossing {
	if c == nil {
		return nil
	}
	return &quoratev1.ThresholdCrossing{
		Tree: c.Tree, Node: c.Node, Resource: c.Resource, Percent: int32(c.Percent), Used: int64(c.Used),
		Limit: FromLimit(c.Limit), Cleared: cleared, Omitted: int32(c.Omitted),
	}
}
