package wire

import (
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

// reasonKinds is the one table of kinds of reasons.
var reasonKinds = map[quota.ReasonKind]quoratev1.EndReasonKind{
	quota.ByPriority: quoratev1.EndReasonKind_END_REASON_KIND_PRIORITY,
	quota.ByShare:    quoratev1.EndReasonKind_END_REASON_KIND_SHARE,
	quota.ByDrain:    quoratev1.EndReasonKind_END_REASON_KIND_DRAIN,
	quota.ByRelease:  quoratev1.EndReasonKind_END_REASON_KIND_RELEASE,
}

func fromReason(r *quota.Reason) *quoratev1.EndReason {
	if r == nil {
		return nil
	}
	wire := &quoratev1.EndReason{
		Kind: reasonKinds[r.Kind], Tree: r.Tree, Node: r.Node, Share: r.Share, Borrower: r.Borrower, Priority: r.Priority,
		RequestPriority: r.RequestPriority, Actor: r.Actor, Text: r.Text, GraceMs: int64(r.Grace),
	}
	for _, a := range r.Amounts {
		wire.Amounts = append(wire.Amounts, &quoratev1.EndReasonAmount{
			Resource: a.Resource, Requested: int64(a.Requested), Missing: int64(a.Missing), Given: int64(a.Given),
		})
	}
	return wire
}

func fromMadeRoom(m *quota.MadeRoom) *quoratev1.MadeRoom {
	if m == nil {
		return nil
	}
	wire := &quoratev1.MadeRoom{Count: int64(m.Count)}
	for _, t := range m.Totals {
		wire.Totals = append(wire.Totals, &quoratev1.RoomTotal{Tree: t.Tree, Resource: t.Resource, Amount: int64(t.Amount)})
	}
	return wire
}
