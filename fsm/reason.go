package fsm

import (
	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/quota"
)

func encodeReason(r *quota.Reason) *logv1.ReasonRecord {
	if r == nil {
		return nil
	}
	return &logv1.ReasonRecord{
		Kind: uint32(r.Kind), Tree: r.Tree, Node: r.Node, Share: r.Share, Borrower: r.Borrower, Priority: r.Priority,
		RequestPriority: r.RequestPriority, Actor: r.Actor, Text: r.Text, GraceMs: int64(r.Grace),
		Amounts: each(r.Amounts, func(a quota.ReasonAmount) *logv1.ReasonAmountRecord {
			return &logv1.ReasonAmountRecord{
				Resource: a.Resource, Requested: int64(a.Requested), Missing: int64(a.Missing), Given: int64(a.Given),
			}
		}),
	}
}

func decodeReason(r *logv1.ReasonRecord) *quota.Reason {
	if r == nil {
		return nil
	}
	return &quota.Reason{
		Kind: quota.ReasonKind(min(r.GetKind(), 255)), Tree: r.GetTree(), Node: r.GetNode(), Share: r.GetShare(),
		Borrower: r.GetBorrower(), Priority: r.GetPriority(), RequestPriority: r.GetRequestPriority(),
		Actor: r.GetActor(), Text: r.GetText(), Grace: quota.Span(r.GetGraceMs()),
		Amounts: each(r.GetAmounts(), func(a *logv1.ReasonAmountRecord) quota.ReasonAmount {
			return quota.ReasonAmount{
				Resource: a.GetResource(), Requested: quota.Amount(a.GetRequested()),
				Missing: quota.Amount(a.GetMissing()), Given: quota.Amount(a.GetGiven()),
			}
		}),
	}
}

func encodeMadeRoom(m *quota.MadeRoom) *logv1.MadeRoomRecord {
	if m == nil {
		return nil
	}
	return &logv1.MadeRoomRecord{
		Count: int64(m.Count), Totals: each(m.Totals, func(t quota.RoomTotal) *logv1.RoomTotalRecord {
			return &logv1.RoomTotalRecord{Tree: t.Tree, Resource: t.Resource, Amount: int64(t.Amount)}
		}),
	}
}

func decodeMadeRoom(m *logv1.MadeRoomRecord) *quota.MadeRoom {
	if m == nil {
		return nil
	}
	return &quota.MadeRoom{
		Count: int(m.GetCount()), Totals: each(m.GetTotals(), func(t *logv1.RoomTotalRecord) quota.RoomTotal {
			return quota.RoomTotal{Tree: t.GetTree(), Resource: t.GetResource(), Amount: quota.Amount(t.GetAmount())}
		}),
	}
}
