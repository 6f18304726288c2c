package wire

import (
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

func fromLevelHolders(list []quota.LevelHolders) []*quoratev1.LevelHolders {
	var wire []*quoratev1.LevelHolders
	for _, h := range list {
		level := &quoratev1.LevelHolders{
			Tree: h.Tree, Node: h.Node, Resource: h.Resource, Kind: violationKinds[h.Kind],
			HolderKind: holderKinds[h.Holder.Kind], Holder: h.Holder.Name, Item: h.Item, Others: int64(h.Others),
			Allocations: fromBlockers(h.Allocations), OtherAllocations: int64(h.OtherAllocations),
			Blockers: fromBlockers(h.Ahead), OtherBlockers: int64(h.OtherAhead), Alternative: int32(h.Alternative),
		}
		for _, g := range h.Groups {
			level.Groups = append(level.Groups, &quoratev1.HolderGroup{
				Node: g.Node, User: g.User, Owner: g.Owner, Amount: int64(g.Amount), Claims: int32(g.Claims),
			})
		}
		wire = append(wire, level)
	}
	return wire
}

func fromBlockers(list []quota.Blocker) []*quoratev1.Blocker {
	var wire []*quoratev1.Blocker
	for _, b := range list {
		namespace, id := quota.SplitID(b.ID)
		wire = append(wire, &quoratev1.Blocker{
			Namespace: namespace, Id: id, Node: b.Node, User: b.User, Application: b.Application, Owner: b.Owner,
			Amount:        int64(b.Amount),
			BeganLedgerMs: int64(b.Since), BeganAt: FromWall(b.SinceWall), ExpiresLedgerMs: int64(b.ExpiresAt),
			Position: int64(b.Position), Alternative: int32(b.Alternative),
		})
	}
	return wire
}
