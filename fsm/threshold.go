package fsm

import (
	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// encodeThresholds returns nil for the thresholds of the parent.
func encodeThresholds(w quota.Thresholds) *logv1.Thresholds {
	if w.IsZero() {
		return nil
	}
	return &logv1.Thresholds{Percents: each(w.Percents, toInt64), Margin: int64(w.Margin), None: w.None}
}

func decodeThresholds(w *logv1.Thresholds) quota.Thresholds {
	return quota.Thresholds{
		Percents: each(w.GetPercents(), decodeCount), Margin: decodeCount(w.GetMargin()), None: w.GetNone(),
	}
}

func toInt64(n int) int64 { return int64(n) }

func encodeCrossed(node uint64, c ledger.CrossedImage) *logv1.CrossedThresholds {
	return &logv1.CrossedThresholds{NodeId: node, Resource: c.Resource, Percents: each(c.Percents, toInt64)}
}

func decodeCrossed(c *logv1.CrossedThresholds) ledger.CrossedImage {
	return ledger.CrossedImage{Resource: c.GetResource(), Percents: each(c.GetPercents(), decodeCount)}
}

// encodeCrossing returns nil for events about something else.
func encodeCrossing(c *quota.Crossing) *logv1.CrossingRecord {
	if c == nil {
		return nil
	}
	return &logv1.CrossingRecord{
		Tree: c.Tree, Node: c.Node, Limit: encodeLimit(quota.ResourceLimit{Resource: c.Resource, Limit: c.Limit}),
		Percent: int64(c.Percent), Used: int64(c.Used), Omitted: int64(c.Omitted),
	}
}

func decodeCrossing(c *logv1.CrossingRecord) *quota.Crossing {
	if c == nil {
		return nil
	}
	limit := decodeLimit(c.GetLimit())
	return &quota.Crossing{
		Tree: c.GetTree(), Node: c.GetNode(), Resource: limit.Resource, Limit: limit.Limit,
		Percent: decodeCount(c.GetPercent()), Used: quota.Amount(c.GetUsed()), Omitted: decodeCount(c.GetOmitted()),
	}
}
