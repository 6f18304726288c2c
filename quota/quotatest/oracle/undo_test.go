package oracle

import (
	"maps"
	"slices"
)

// undoRecord is what the oracle remembers of a reservation: the items from before it, and what it has left behind.
type undoRecord struct {
	before, after map[string]int // versions of trees
	items         map[*item]item
	stateSeqs     map[*item]int // that items had afterwards
}

// markChanged gives a tree a version that none had.
func (o *oracle) markChanged(tree string) {
	o.lastVersion++
	o.versions[tree] = o.lastVersion
}

// copiesOfItems are all items as they are.
func (o *oracle) copiesOfItems() map[*item]item {
	all := map[*item]item{}
	for _, it := range o.items {
		all[it] = *it
	}
	return all
}

// markAllocated marks the trees that an allocation has changed, and completes what a reservation remembers.
func (o *oracle) markAllocated(a *allocation, victims []*allocation, items map[*item]item) {
	before := maps.Clone(o.versions)
	for _, of := range append([]*allocation{a}, victims...) {
		for _, c := range of.request.Claims {
			o.markChanged(c.Tree)
		}
	}
	if a.until == 0 {
		return
	}
	a.undo = &undoRecord{before: map[string]int{}, after: map[string]int{}, items: items, stateSeqs: map[*item]int{}}
	for tree, version := range o.versions {
		if version != before[tree] {
			a.undo.before[tree], a.undo.after[tree] = before[tree], version
		}
	}
	for _, it := range o.items {
		a.undo.stateSeqs[it] = it.stateSeq
	}
}

// changedItems are those that the reservation has changed or made.
func (u *undoRecord) changedItems() []*item {
	var list []*item
	for it, seq := range u.stateSeqs {
		if was, known := u.items[it]; !known || was.stateSeq != seq {
			list = append(list, it)
		}
	}
	return list
}

// restoreExactly restores what was before a reservation that ends, if nothing came in between; false if something did.
func (o *oracle) restoreExactly(a *allocation) bool {
	if a.undo == nil {
		return false
	}
	for tree, version := range a.undo.after {
		if o.versions[tree] != version {
			return false
		}
	}
	changed := a.undo.changedItems()
	for _, it := range changed {
		if !slices.Contains(o.items, it) || it.stateSeq != a.undo.stateSeqs[it] {
			return false
		}
	}
	a.rememberItems(o.heldBy(a))
	for _, it := range changed {
		was, known := a.undo.items[it]
		if !known {
			o.items = slices.DeleteFunc(o.items, func(other *item) bool { return other == it })
			continue
		}
		if data, updated := it.data, it.updated; !slices.Equal(data, was.data) {
			was.data, was.updated = data, updated
		}
		*it = was
	}
	maps.Copy(o.versions, a.undo.before)
	return true
}

// foundState is the state of an item that was idle before a reservation; empty if that is not known.
func (a *allocation) foundState(it *item) string {
	if a.undo == nil {
		return ""
	}
	if was := a.undo.items[it]; was.owner == nil {
		return was.state
	}
	return ""
}
