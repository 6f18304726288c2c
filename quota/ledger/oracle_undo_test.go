package ledger_test

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/quota"
)

// undoing is what the oracle remembers of a reservation: the items from before it, and what it has left behind.
type undoing struct {
	before, after map[string]int // versions of trees
	items         map[*thing]thing
	turns         map[*thing]int // that items had afterwards
}

// mark gives a tree a version that none had.
func (o *oracle) mark(tree string) {
	o.lastVersion++
	o.versions[tree] = o.lastVersion
}

// copiesOfItems are all items as they are.
func (o *oracle) copiesOfItems() map[*thing]thing {
	all := map[*thing]thing{}
	for _, it := range o.items {
		all[it] = *it
	}
	return all
}

// markHold marks the trees that a grant has changed, and completes what a reservation remembers.
func (o *oracle) markHold(g *grant, victims []*grant, items map[*thing]thing) {
	before := maps.Clone(o.versions)
	for _, of := range append([]*grant{g}, victims...) {
		for _, c := range of.request.Claims {
			o.mark(c.Tree)
		}
	}
	if g.until == 0 {
		return
	}
	g.undo = &undoing{before: map[string]int{}, after: map[string]int{}, items: items, turns: map[*thing]int{}}
	for tree, version := range o.versions {
		if version != before[tree] {
			g.undo.before[tree], g.undo.after[tree] = before[tree], version
		}
	}
	for _, it := range o.items {
		g.undo.turns[it] = it.turn
	}
}

// changedItems are those that the reservation has changed or made.
func (u *undoing) changedItems() []*thing {
	var list []*thing
	for it, turn := range u.turns {
		if was, known := u.items[it]; !known || was.turn != turn {
			list = append(list, it)
		}
	}
	return list
}

// takenBack restores what was before a reservation that ends, if nothing came in between; false if something did.
func (o *oracle) takenBack(g *grant) bool {
	if g.undo == nil {
		return false
	}
	for tree, version := range g.undo.after {
		if o.versions[tree] != version {
			return false
		}
	}
	changed := g.undo.changedItems()
	for _, it := range changed {
		if !slices.Contains(o.items, it) || it.turn != g.undo.turns[it] {
			return false
		}
	}
	g.remember(o.heldBy(g))
	for _, it := range changed {
		was, known := g.undo.items[it]
		if !known {
			o.items = slices.DeleteFunc(o.items, func(other *thing) bool { return other == it })
			continue
		}
		if data, updated := it.data, it.updated; !slices.Equal(data, was.data) {
			was.data, was.updated = data, updated
		}
		*it = was
	}
	maps.Copy(o.versions, g.undo.before)
	return true
}

// foundState is the state of an item that was idle before a reservation; empty if that is not known.
func (g *grant) foundState(it *thing) string {
	if g.undo == nil {
		return ""
	}
	if was := g.undo.items[it]; was.owner == nil {
		return was.state
	}
	return ""
}

// markChanges marks the trees whose configuration has changed.
func (o *oracle) markChanges(changes []quota.Change) {
	for _, c := range changes {
		o.mark(c.Tree)
	}
}
