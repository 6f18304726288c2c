package fsm

import (
	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

func encodeHold(node uint64, h *ledger.HoldImage) *logv1.HoldRecord {
	return &logv1.HoldRecord{
		NodeId: node, Deny: h.Deny, UntilMs: int64(h.Until), Drain: h.Drain, GraceMs: int64(h.Grace), Drained: h.Drained,
		DrainAtMs: int64(h.DrainAt), DrainAfter: h.DrainAfter, SinceMs: int64(h.Since.At), SinceWallMs: h.Since.Wall,
		Actor: h.Actor, Reason: h.Reason,
	}
}

func decodeHold(r *logv1.HoldRecord) *ledger.HoldImage {
	return &ledger.HoldImage{
		NodeCordon: quota.NodeCordon{
			Deny: r.GetDeny(), Drain: r.GetDrain(), Grace: quota.Span(r.GetGraceMs()), Until: quota.Instant(r.GetUntilMs()),
			Drained: r.GetDrained(), Since: quota.Stamp{At: quota.Instant(r.GetSinceMs()), Wall: r.GetSinceWallMs()},
			Actor: r.GetActor(), Reason: r.GetReason(),
		},
		DrainAt: quota.Instant(r.GetDrainAtMs()), DrainAfter: r.GetDrainAfter(),
	}
}
