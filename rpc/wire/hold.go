package wire

import (
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

// FromNodeCordon converts a hold; nil stays nil.
func FromNodeCordon(h *quota.NodeCordonInfo) *quoratev1.NodeCordon {
	if h == nil {
		return nil
	}
	wire := &quoratev1.NodeCordon{
		Tree: h.Tree, Node: h.Node, Deny: h.Deny, EndsLedgerMs: int64(h.Until), Drain: h.Drain, GraceMs: int64(h.Grace),
		Drained: h.Drained, BeganLedgerMs: int64(h.Since.At), BeganAt: FromWall(h.Since.Wall),
		Actor: h.Actor, Reason: h.Reason,
		IsUsed: h.IsUsed, Revoking: h.Revoking,
	}
	if len(h.Used) > 0 {
		wire.Used = map[string]int64{}
	}
	for _, used := range h.Used {
		wire.Used[used.Resource] = int64(used.Amount)
	}
	return wire
}
