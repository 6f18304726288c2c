package fsm

import (
	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/quota/ledger"
)

// What the end of a reservation restores, in snapshots, both ways.

func encodeReservationUndo(u *ledger.UndoImage) *logv1.ReservationUndo {
	if u == nil {
		return nil
	}
	return &logv1.ReservationUndo{
		Arrival: u.Arrival, LiveBytes: u.LiveBytes,
		Trees: each(u.Trees, func(v ledger.TreeVersionImage) *logv1.TreeVersion {
			return &logv1.TreeVersion{Tree: v.Tree, Before: v.Before, After: v.After}
		}),
		Nodes: each(u.Nodes, func(n ledger.DynamicNodeImage) *logv1.DynamicNode {
			return &logv1.DynamicNode{Tree: n.Tree, Path: n.Path, Id: n.ID}
		}),
		Items: each(u.Items, func(b ledger.ItemBeforeImage) *logv1.ItemBefore {
			return &logv1.ItemBefore{Item: encodeItem(b.ItemImage), IsNew: b.IsNew, Owner: b.Owner, Turn: b.Now}
		}),
	}
}

func decodeReservationUndo(u *logv1.ReservationUndo) *ledger.UndoImage {
	if u == nil {
		return nil
	}
	return &ledger.UndoImage{
		Arrival: u.GetArrival(), LiveBytes: u.GetLiveBytes(),
		Trees: each(u.GetTrees(), func(v *logv1.TreeVersion) ledger.TreeVersionImage {
			return ledger.TreeVersionImage{Tree: v.GetTree(), Before: v.GetBefore(), After: v.GetAfter()}
		}),
		Nodes: each(u.GetNodes(), func(n *logv1.DynamicNode) ledger.DynamicNodeImage {
			return ledger.DynamicNodeImage{Tree: n.GetTree(), Path: n.GetPath(), ID: n.GetId()}
		}),
		Items: each(u.GetItems(), func(b *logv1.ItemBefore) ledger.ItemBeforeImage {
			return ledger.ItemBeforeImage{ItemImage: decodeItem(b.GetItem()), IsNew: b.GetIsNew(), Owner: b.GetOwner(), Now: b.GetTurn()}
		}),
	}
}
