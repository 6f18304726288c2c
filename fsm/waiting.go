package fsm

import (
	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

func encodeWaiting(w ledger.WaitingImage) *logv1.WaitingRecord {
	return &logv1.WaitingRecord{
		Allocation: encodeAllocation(w.Allocation), Arrival: w.Arrival,
		SinceMs: int64(w.Since.At), SinceWallMs: w.Since.Wall, UntilMs: int64(w.Until), KeepUntilMs: int64(w.KeepUntil),
		Line: &logv1.LineRecord{
			Node: w.Line.Node, Resource: w.Line.Resource, Tree: w.Line.Tree, State: w.Line.State, Item: w.Line.Item,
			HolderKind: uint32(w.Line.Holder.Kind), Holder: w.Line.Holder.Name,
		},
		HeadSinceMs: int64(w.HeadSince),
	}
}

func decodeWaiting(r *logv1.WaitingRecord) ledger.WaitingImage {
	line := r.GetLine()
	return ledger.WaitingImage{
		Allocation: decodeAllocation(r.GetAllocation(), false), Arrival: r.GetArrival(),
		Since: quota.Stamp{At: quota.Instant(r.GetSinceMs()), Wall: r.GetSinceWallMs()},
		Until: quota.Instant(r.GetUntilMs()), KeepUntil: quota.Instant(r.GetKeepUntilMs()),
		Line: ledger.BlockerImage{
			Node: line.GetNode(), Resource: line.GetResource(), Tree: line.GetTree(), State: line.GetState(), Item: line.GetItem(),
			Holder: quota.Holder{Kind: quota.HolderKind(min(line.GetHolderKind(), 255)), Name: line.GetHolder()},
		},
		HeadSince: quota.Instant(r.GetHeadSinceMs()),
	}
}
