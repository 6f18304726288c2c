package wire

import (
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/quota"
)

// levelVerdicts is the one table of what limits say to a request.
var levelVerdicts = map[quota.LevelVerdict]quoratev1.LevelVerdict{
	quota.LevelFits:      quoratev1.LevelVerdict_LEVEL_VERDICT_FITS,
	quota.LevelExceeded:  quoratev1.LevelVerdict_LEVEL_VERDICT_EXCEEDED,
	quota.LevelBorrows:   quoratev1.LevelVerdict_LEVEL_VERDICT_BORROWS,
	quota.LevelMakesRoom: quoratev1.LevelVerdict_LEVEL_VERDICT_MAKES_ROOM,
	quota.LevelUnchecked: quoratev1.LevelVerdict_LEVEL_VERDICT_UNCHECKED,
}

// FromLevels converts the limits that a request passes.
func FromLevels(list []quota.LevelCheck) []*quoratev1.LevelCheck {
	var levels []*quoratev1.LevelCheck
	for _, c := range list {
		shown := &quoratev1.LevelCheck{
			Tree: c.Tree, Node: c.Node, Resource: c.Resource, Kind: violationKinds[c.Kind],
			HolderKind: holderKinds[c.Holder.Kind], Holder: c.Holder.Name, Item: c.Item,
			Alternative: int32(c.Alternative), Used: int64(c.Used), Requested: int64(c.Requested), Left: int64(c.Left()),
			Verdict: levelVerdicts[c.Verdict], Seen: fromSeen(c.Seen),
		}
		if c.Limit.HasAmount() {
			limit := int64(c.Limit.Amount)
			shown.Limit, shown.Advisory = &limit, c.Limit.Kind == quota.Advisory
		}
		levels = append(levels, shown)
	}
	return levels
}
