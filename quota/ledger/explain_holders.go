package ledger

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/quota"
)

// holdersInTheWay are who holds what counts against each violated limit of a resource or of items, as far as sees says
// that the asker sees them. It looks at the newest held allocations, at most as many as a search for releases.
func (v View) holdersInTheWay(
	violations []quota.Violation, sees func(*quota.AllocationInfo) bool,
) []quota.LevelHolders {
	var levels []*levelTotals
	for _, violation := range violations[:min(len(violations), maxEventViolations)] {
		if violation.Kind == quota.OfResource || violation.Kind == quota.OfItems {
			levels = append(levels, &levelTotals{violation: violation, groups: map[quota.HolderGroup]*quota.HolderGroup{}})
		}
	}
	if len(levels) == 0 {
		return nil
	}
	looked := 0
	for _, a := range v.ledger.allocations.held.Backward() {
		if looked++; looked > scanned {
			break
		}
		if countsAgainstAny(a, levels) {
			if info := a.currentInfo(); sees(&info) {
				for _, level := range levels {
					level.add(a)
				}
			}
		}
	}
	list := make([]quota.LevelHolders, len(levels))
	for i, level := range levels {
		list[i] = level.holders()
	}
	return list
}

// DenialHolders are who holds now what counts against the limits that the last denied request of an id exceeded, as far
// as the caller sees the holders: at most MaxDenialHolders for each limit, the largest amounts first. There are none if
// the denial is not remembered, or is not the caller's to see. It visits at most 10,000 allocations.
func (r Reader) DenialHolders(id string) []quota.LevelHolders {
	for _, e := range slices.Backward(r.view.ledger.journal.events) {
		if e.Kind != quota.EventDenied || e.ID != id || !r.seesEvent(e) {
			continue
		}
		list := r.view.holdersInTheWay(e.Decision.Violations, r.sees)
		for i := range list {
			list[i] = list[i].Largest(quota.MaxDenialHolders)
		}
		if r.id != nil {
			list = r.shownHolders(list)
		}
		return list
	}
	return nil
}

// levelTotals adds up what counts against one violated limit.
type levelTotals struct {
	violation quota.Violation
	// groups are by their names, without amounts.
	groups map[quota.HolderGroup]*quota.HolderGroup
}

func countsAgainstAny(a *Allocation, levels []*levelTotals) bool {
	return slices.ContainsFunc(levels, func(t *levelTotals) bool { return a.releasedAmount(t.violation) > 0 })
}

func (t *levelTotals) add(a *Allocation) {
	for i := range a.claims {
		c := &a.claims[i]
		amount := a.releasedByClaim(c, t.violation)
		if amount == 0 {
			continue
		}
		key := quota.HolderGroup{
			Node: c.countedAt(t.violation.Holder).path, User: a.principal().User, Owner: a.owner,
		}
		group := t.groups[key]
		if group == nil {
			group = &quota.HolderGroup{Node: key.Node, User: key.User, Owner: key.Owner}
			t.groups[key] = group
		}
		group.Amount += amount
		group.Claims++
	}
}

// holders lists the largest groups.
func (t *levelTotals) holders() quota.LevelHolders {
	v := t.violation
	list := quota.LevelHolders{
		Tree: v.Tree, Node: v.Node, Resource: v.Resource, Kind: v.Kind, Holder: v.Holder, Item: v.Item, Others: v.Used,
	}
	for _, group := range t.groups { // sorted below
		list.Groups = append(list.Groups, *group)
	}
	slices.SortFunc(list.Groups, func(a, b quota.HolderGroup) int {
		return cmp.Or(cmp.Compare(b.Amount, a.Amount), cmp.Compare(a.Node, b.Node), cmp.Compare(a.User, b.User),
			cmp.Compare(a.Owner, b.Owner))
	})
	list.Groups = list.Groups[:min(len(list.Groups), quota.MaxHolderGroups)]
	for _, group := range list.Groups {
		list.Others = max(0, list.Others-group.Amount)
	}
	return list
}

// shownHolders are the holders as far as the caller may see the totals of their levels.
func (r Reader) shownHolders(list []quota.LevelHolders) []quota.LevelHolders {
	var shown []quota.LevelHolders
	for _, level := range list {
		switch r.seenOf(r.view.ledger.forest.nearestNode(level.Tree, level.Node)) {
		case quota.SeeTotals:
		case quota.SeeNames:
			level.Others = 0
		case quota.SeeNothing:
			continue
		}
		shown = append(shown, level)
	}
	return shown
}
