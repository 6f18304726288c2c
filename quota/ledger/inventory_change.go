package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// createItem adds an idle item.
func (inv *inventory) createItem(s *stock, name string) {
	it := inv.withNewState(&item{stock: s, name: name}, s.resource.Items.InitialState(), 0)
	inv.changeItem(nil, it)
	inv.queue.unblockItems(s.resource, it.state, it.name)
}

// createOnDemand creates items until the stock has count.
func (inv *inventory) createOnDemand(s *stock, count int) {
	for len(s.byName) < count {
		inv.createItem(s, s.nextName())
	}
}

// nextName is the name of the next item created on demand; no number is used twice.
func (s *stock) nextName() string {
	for {
		s.number++
		name := strings.ReplaceAll(s.resource.Name, "/", "-") + "-" + strconv.FormatUint(s.number, 10)
		if s.byName[name] == nil {
			return name
		}
	}
}

// createWanted creates items for a request that was denied only because items lack in a state other than the initial
// one, or because others wait for them. Some client that brings items into that state then finds them, as with Boskos.
func (inv *inventory) createWanted(a *Allocation, violations []quota.Violation) {
	for _, v := range violations {
		if v.Kind != quota.OfItems && v.Kind != quota.OfQueue || v.NeverFits() {
			return
		}
	}
	for i := range a.claims {
		for _, p := range a.claims[i].picks() {
			s := a.claims[i].at.tree.resource(p.Resource).stock
			for _, v := range violations {
				if len(p.Names) == 0 && s.isCreatedFor(p.WantedState()) && isShortOf(v, s, p.WantedState()) {
					inv.createOnDemand(s, min(s.resource.Items.Max, len(s.byName)+int(v.Missing())))
				}
			}
		}
	}
}

// isShortOf is true if the violation concerns items of a stock in a state.
func isShortOf(v quota.Violation, s *stock, state string) bool {
	return v.Kind == quota.OfItems && v.Tree == s.tree && v.Resource == s.resource.Name && v.Item == state
}

// replaceRemoved creates items for removed ones, up to the configured minimum or to the unmet demand of waiting
// requests, and unblocks requests for new ones.
func (inv *inventory) replaceRemoved(s *stock) {
	spec := s.resource.Items
	if !spec.OnDemand() {
		return
	}
	inv.createOnDemand(s, spec.Min)
	inv.createOnDemand(s, len(s.byName)+s.unmetDemand())
	if s.creatableIn(spec.InitialState()) > 0 {
		inv.queue.unblockItems(s.resource, spec.InitialState(), "")
	}
}

// unmetDemand is the number of further items that can be created for waiting requests for states other than the initial
// one, beyond the items that no client has brought there yet.
func (s *stock) unmetDemand() int {
	state := s.resource.Items.InitialState()
	room, want := s.creatableIn(state), -s.idleIn(state)
	for _, bq := range s.resource.queues {
		if bq.item != "" || bq.state == state || !s.isCreatedFor(bq.state) {
			continue
		}
		for alt := range bq.waiters.All() {
			if want >= room {
				break
			}
			want += int(alt.need)
		}
	}
	return max(0, min(room, want))
}

// checkUpdates refuses invalid changes of items. find returns the record of an item that may be changed.
func (e *environment) checkUpdates(updates []quota.ItemUpdate, field string,
	find func(quota.ItemName, string) (*item, *quota.Error),
) ([]*item, *quota.Error) {
	if n := len(updates); n > e.bounds.Picks {
		return nil, quota.Errorf(quota.Invalid, field, "%d items are to be changed; at most %d are allowed at once",
			n, e.bounds.Picks)
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

// updateItem changes an item and returns its record. It does nothing if the item is as wanted already.
func (inv *inventory) updateItem(it *item, u quota.ItemUpdate) *item {
	is := *it
	if u.State != "" && u.State != it.state {
		is = *inv.withNewState(it, u.State, it.owner)
	}
	if is.isRetired() {
		is.expires = quota.Stamp{}
	}
	is.data = overlayData(it.data, u.Data)
	if is.stateSeq == it.stateSeq && slices.Equal(is.data, it.data) {
		return it
	}
	is.updated = inv.now
	inv.changeItem(it, &is)
	inv.spareLeaving(is.stock)
	return &is
}

// updateItems changes idle items, all or none.
func (l *Ledger) updateItems(c quota.UpdateItems, m mode) Outcome {
	list, err := l.checkItemUpdates(c)
	if err != nil {
		return Outcome{Refused: err}
	}
	if m == dryRun {
		return Outcome{Items: l.inventory.itemInfos(list)}
	}
	var out Outcome
	for i, it := range list {
		is := l.inventory.updateItem(it, c.Updates[i])
		out.Items = append(out.Items, l.inventory.itemInfo(is))
		if is.stateSeq != it.stateSeq {
			l.inventory.announceIdle(is)
		}
	}
	return out
}

// checkItemUpdates finds the items of an UpdateItems; it changes nothing.
func (l *Ledger) checkItemUpdates(c quota.UpdateItems) ([]*item, *quota.Error) {
	if len(c.Updates) == 0 {
		return nil, quota.Errorf(quota.Invalid, "updates", "no item is to be changed; name at least one")
	}
	list, err := l.checkUpdates(c.Updates, "updates", func(name quota.ItemName, field string) (*item, *quota.Error) {
		it, err := l.forest.findItem(name, field)
		if err != nil {
			return nil, err
		}
		if it.owner != 0 {
			return nil, quota.Errorf(quota.InUse, field,
				"item %s is held%s; only its holder changes it, with a renewal, until it is given back", it.name,
				l.heldBy(it))
		}
		return it, nil
	})
	if err != nil {
		return nil, err
	}
	if err := checkReturnsToUse(list, c.Updates); err != nil {
		return nil, err
	}
	return list, l.checkDataGrowth(l.itemGrowth(list, c.Updates), "updates")
}

// heldBy names the holder of an item for those who may read holders.
func (l *Ledger) heldBy(it *item) string {
	holder, _ := l.allocations.held.Get(it.owner)
	isOwn := holder.owner != "" && holder.owner == l.caller.user()
	root := l.forest.trees[it.stock.tree].root
	if l.book.Mode() == access.Guarded && !isOwn && !l.rights.may(access.HoldersRead, root) {
		return ""
	}
	return fmt.Sprintf(" by allocation %q", holder.id)
}

func (f *forest) findItem(name quota.ItemName, field string) (*item, *quota.Error) {
	s, err := f.findStock(name.Tree, name.Resource, field)
	if err != nil {
		return nil, err
	}
	it := s.byName[name.Name]
	if it == nil {
		return nil, quota.Errorf(quota.NotFound, field, "resource %s of tree %s has no item %q", name.Resource,
			name.Tree, quota.Clip(name.Name))
	}
	return it, nil
}

// findStock returns the items of a resource.
func (f *forest) findStock(tree, resource, field string) (*stock, *quota.Error) {
	t := f.trees[tree]
	if t == nil {
		return nil, quota.Errorf(quota.NotFound, field, "there is no tree %q", quota.Clip(tree))
	}
	r := t.resource(resource)
	switch {
	case r == nil:
		return nil, quota.Errorf(quota.NotFound, field, "tree %s has no resource %q; it has %s", tree,
			quota.Clip(resource), t.resourceNames())
	case r.stock == nil:
		return nil, quota.Errorf(quota.NotFound, field, "%s of tree %s is %s, it has no named items",
			resource, tree, amountWords[r.Unit])
	}
	return r.stock, nil
}

// amountWords say what is counted where there are no items.
var amountWords = map[quota.Unit]string{
	quota.Count: "a count", quota.Milli: "an amount in thousandths", quota.Bytes: "an amount in bytes",
}

// resetter is recorded as the cause when a ResetItems has taken all items of an allocation.
const resetter = "reset"

// itemSet is a set of held items by stateSeq, which is constant while an item is held.
type itemSet map[uint64]bool

// resetItems takes items from holders that have not renewed for a while. An allocation that has nothing left ends.
func (l *Ledger) resetItems(c quota.ResetItems, m mode) Outcome {
	list, err := l.itemsToReset(c)
	if err != nil {
		return Outcome{Refused: err}
	}
	if m == dryRun {
		return Outcome{Items: l.inventory.itemInfos(list)}
	}
	var out Outcome
	lost := map[uint64]itemSet{}
	for _, it := range list {
		info := l.inventory.itemInfo(it)
		info.State = c.To
		out.Items = append(out.Items, info)
		if lost[it.owner] == nil {
			lost[it.owner] = itemSet{}
		}
		lost[it.owner][it.stateSeq] = true
	}
	for _, it := range list {
		if gone := lost[it.owner]; gone != nil {
			delete(lost, it.owner)
			a, _ := l.allocations.held.Get(it.owner)
			if is := l.takeAway(a, gone, c.To, ending{state: quota.Expired, by: resetter}); is.ended != nil {
				l.journal.noteEvent(quota.Event{Kind: quota.EventExpired, ID: is.id, By: resetter})
			}
		}
	}
	return out
}

// itemsToReset finds the items that a ResetItems takes, by name; it changes nothing. Reservations keep theirs, because
// they end soon by themselves.
func (l *Ledger) itemsToReset(c quota.ResetItems) ([]*item, *quota.Error) {
	s, err := l.forest.findStock(c.Tree, c.Resource, "resource")
	switch {
	case err != nil:
		return nil, err
	case c.State == "":
		return nil, quota.Errorf(quota.Invalid, "state", "name the state of the items that are to be taken")
	case c.To == "":
		return nil, quota.Errorf(quota.Invalid, "to", "name the state that the items are to get")
	}
	if err := checkStates("to", c.To); err != nil {
		return nil, err
	}
	var list []*item
	for _, name := range s.names {
		it := s.byName[name]
		if it.owner == 0 || it.state != c.State {
			continue
		}
		a, _ := l.allocations.held.Get(it.owner)
		if a.State() == quota.Held && quota.Span(l.now.At-it.touched(a).At) >= max(0, c.Idle) {
			list = append(list, it)
		}
	}
	return list, nil
}

// holdsNothing is true if a reduced allocation has nothing left.
func (a *Allocation) holdsNothing() bool {
	return !slices.ContainsFunc(a.claims, func(c placedClaim) bool { return len(c.amounts) > 0 })
}

// takeAway takes items from an allocation, sets their state, and returns the allocation's record. An allocation with
// nothing left ends.
func (l *Ledger) takeAway(a *Allocation, gone itemSet, itemState string, end ending) *Allocation {
	is := a.withoutItems(gone)
	for _, it := range a.heldItems() {
		if gone[it.stateSeq] {
			l.inventory.returnItem(it.stock.byName[it.name], stateOr(itemState, it.stock.resource.Items))
		}
	}
	if is.holdsNothing() {
		return l.endAllocation(a, end)
	}
	l.shrinkAllocation(a, is)
	l.inventory.announceReturned(a)
	l.journal.noteFact(FactShrunk, is)
	return l.recheckResize(is)
}

// shrinkAllocation replaces an allocation by a smaller record and refunds the difference.
func (l *Ledger) shrinkAllocation(a, is *Allocation) {
	l.forest.markChangedBy(a)
	for i := range a.claims {
		l.allocations.refundClaim(a, i)
	}
	is.updateAddresses()
	l.allocations.replaceRecord(is)
	for i := range is.claims {
		l.allocations.chargeClaim(is, i)
	}
	for i := range is.claims {
		l.allocations.reclaimAt(is.claims[i].at)
	}
	l.queue.unblockFreed(a)
}

// stateOr is the state, or by default the resource's state for returned items.
func stateOr(state string, s *quota.ItemSpec) string {
	if state == "" {
		return s.ReleasedState()
	}
	return state
}

// withoutItems is a copy of the record without some items.
func (a *Allocation) withoutItems(gone itemSet) *Allocation {
	is := *a
	is.claims = slices.Clone(a.claims)
	for i := range is.claims {
		c := &is.claims[i]
		left := slices.DeleteFunc(slices.Clone(c.heldItems()),
			func(h heldItem) bool { return gone[h.is.stock.byName[h.name].stateSeq] })
		if len(left) == len(c.heldItems()) {
			continue
		}
		c.setItems(c.picks(), left)
		c.amounts = slices.Clone(c.amounts)
		for j, p := range c.amounts {
			if p.resource.Unit == quota.Items {
				c.amounts[j].amount = c.countOf(p.resource.Name)
			}
		}
		c.amounts = slices.DeleteFunc(c.amounts,
			func(p placedAmount) bool { return p.resource.Unit == quota.Items && p.amount == 0 })
	}
	return &is
}

// changeItem replaces the record of an item; was is nil for a new item, is for a removed one. Changing back reverts it.
func (inv *inventory) changeItem(was, is *item) {
	inv.noteItem(was, is)
	cmp.Or(is, was).stock.markChanged(inv.index)
	if was != nil {
		was.stock.countLeaving(was, -1)
		was.stock.removeIdle(was)
		inv.items.Delete(was.stateSeq)
		inv.deadlines.drop(dueKey{dueItem, was.stateSeq})
	}
	switch {
	case was == nil:
		is.stock.addItem(is.name)
	case is == nil:
		was.stock.removeItem(was.name)
		return
	}
	is.stock.countLeaving(is, 1)
	is.stock.byName[is.name] = is
	inv.items.Set(is.stateSeq, is)
	is.stock.addIdle(is)
	inv.deadlines.set(dueKey{dueItem, is.stateSeq}, is.dueAt())
}

// takenItem is the record of an idle item that an allocation takes. A retired item that is one too many leaves when it
// is returned: nothing but its state has marked it so far.
func (inv *inventory) takenItem(it *item, state string, owner uint64) *item {
	is := inv.withNewState(it, state, owner)
	is.leaving = it.isRetired() && it.stock.surplus() >= 0
	return is
}

// advanceItem applies an item's deadline: ends its lifespan or turns its state.
func (inv *inventory) advanceItem(turn uint64) {
	it, _ := inv.items.Get(turn)
	if it.expires.At != 0 && it.expires.At <= inv.now.At {
		inv.placeIdle(it, inv.retiredItem(it, ""))
		return
	}
	inv.placeIdle(it, inv.idleItem(it, it.stateDeadline().To))
}

// itemNameRule formats the rule for names of items with the maximum length, the extra characters and the given name.
const itemNameRule = "an item's name is 1 to %d letters, digits and %s, beginning with a letter, digit or _; got %q"
