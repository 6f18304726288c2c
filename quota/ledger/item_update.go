package ledger

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/quota"
)

// checkUpdates refuses changes of items that cannot be. find answers the record of an item that may be changed.
func (e *environment) checkUpdates(updates []quota.ItemUpdate, field string, find func(quota.ItemName, string) (*item, *quota.Error)) ([]*item, *quota.Error) {
	if n := len(updates); n > e.bounds.Picks {
		return nil, quota.Errorf(quota.Invalid, field, "%d items are to be changed; at most %d are allowed at once", n, e.bounds.Picks)
	}
	var list []*item
	seen := map[quota.ItemName]bool{}
	for i, u := range updates {
		at := fmt.Sprintf("%s[%d]", field, i)
		it, err := find(u.Item, at+".item")
		if err != nil {
			return nil, err
		}
		if seen[u.Item] {
			return nil, quota.Errorf(quota.Invalid, at+".item", "item %s is changed twice; say both at once", it.name)
		}
		seen[u.Item] = true
		if err := checkStates(at+".state", u.State); err != nil {
			return nil, err
		}
		if err := e.checkLaid(it.data, u.Data, at+".user_data"); err != nil {
			return nil, err
		}
		list = append(list, it)
	}
	return list, nil
}

// updateItem changes an item, unless it is as it should be already, and answers its record.
func (inv *inventory) updateItem(it *item, u quota.ItemUpdate) *item {
	is := *it
	if u.State != "" && u.State != it.state {
		is = *inv.aged(it, u.State, it.owner)
	}
	is.data = lay(it.data, u.Data)
	if is.turn == it.turn && slices.Equal(is.data, it.data) {
		return it
	}
	is.updated = inv.now
	inv.changeItem(it, &is)
	return &is
}

// updateItems changes items that nobody holds, all or none.
func (l *Ledger) updateItems(c quota.UpdateItems, m mode) Outcome {
	list, err := l.updatable(c)
	if err != nil {
		return Outcome{Refused: err}
	}
	if m == dryRun {
		return Outcome{Items: l.inventory.itemInfos(list)}
	}
	var out Outcome
	for i, it := range list {
		is := l.inventory.updateItem(it, c.Updates[i])
		if is.turn != it.turn {
			l.queue.stirItems(is.stock.resource, is.state, is.name)
		}
		out.Items = append(out.Items, l.inventory.itemInfo(is))
	}
	return out
}

// updatable finds the items of an UpdateItems; it changes nothing.
func (l *Ledger) updatable(c quota.UpdateItems) ([]*item, *quota.Error) {
	if len(c.Updates) == 0 {
		return nil, quota.Errorf(quota.Invalid, "updates", "no item is to be changed; name at least one")
	}
	list, err := l.checkUpdates(c.Updates, "updates", func(name quota.ItemName, field string) (*item, *quota.Error) {
		it, err := l.forest.findItem(name, field)
		if err != nil {
			return nil, err
		}
		if it.owner != 0 {
			holder, _ := l.allocations.held.Get(it.owner)
			return nil, quota.Errorf(quota.InUse, field, "item %s is held by allocation %q; only its holder changes it, with a renewal, until it is given back", it.name, holder.id)
		}
		return it, nil
	})
	if err != nil {
		return nil, err
	}
	return list, l.checkDataGrowth(l.itemGrowth(list, c.Updates), "updates")
}

// findItem finds an item by its name.
func (f *forest) findItem(name quota.ItemName, field string) (*item, *quota.Error) {
	s, err := f.findStock(name.Tree, name.Resource, field)
	if err != nil {
		return nil, err
	}
	it := s.byName[name.Name]
	if it == nil {
		return nil, quota.Errorf(quota.NotFound, field, "resource %s of tree %s has no item %q", name.Resource, name.Tree, quota.Clip(name.Name))
	}
	return it, nil
}

// findStock finds the items of a resource.
func (f *forest) findStock(tree, resource, field string) (*stock, *quota.Error) {
	t := f.trees[tree]
	if t == nil {
		return nil, quota.Errorf(quota.NotFound, field, "there is no tree %q", quota.Clip(tree))
	}
	r := t.resource(resource)
	switch {
	case r == nil:
		return nil, quota.Errorf(quota.NotFound, field, "tree %s has no resource %q; it has %s", tree, quota.Clip(resource), t.resourceNames())
	case r.stock == nil:
		return nil, quota.Errorf(quota.NotFound, field, "resource %s of tree %s counts %s and has no items", resource, tree, r.Unit)
	}
	return r.stock, nil
}
