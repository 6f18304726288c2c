package admit

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// CreateItem adds an idle item.
func CreateItem(inv *state.Inventory, s *state.Stock, name string) {
	it := inv.WithNewState(&state.Item{Stock: s, Name: name}, s.Resource.Items.InitialState(), 0)
	ChangeItem(inv, nil, it)
	inv.Queue.UnblockItems(s.Resource, it.State, it.Name)
}

func createOnDemand(inv *state.Inventory, s *state.Stock, count int) {
	for len(s.ByName) < count {
		CreateItem(inv, s, nextName(s))
	}
}

// nextName is the name of the next item created on demand; no number is used twice.
func nextName(s *state.Stock) string {
	for {
		s.Number++
		name := strings.ReplaceAll(s.Resource.Name, "/", "-") + "-" + strconv.FormatUint(s.Number, 10)
		if s.ByName[name] == nil {
			return name
		}
	}
}

// createWanted creates items for a request that was denied only because items lack in a state other than the initial
// one, or because others wait for them. Some client that brings items into that state then finds them, as with Boskos.
func createWanted(inv *state.Inventory, a *state.Allocation, violations []quota.Violation) {
	for _, v := range violations {
		if v.Kind != quota.OfItems && v.Kind != quota.OfQueue || v.NeverFits() {
			return
		}
	}
	for i := range a.Claims {
		for _, p := range a.Claims[i].Picks() {
			s := a.Claims[i].At.Tree.Resource(p.Resource).Stock
			for _, v := range violations {
				if len(p.Names) == 0 && isCreatedFor(s, p.WantedState()) && isShortOf(v, s, p.WantedState()) {
					createOnDemand(inv, s, min(s.Resource.Items.Max, len(s.ByName)+int(v.Missing())))
				}
			}
		}
	}
}

func isShortOf(v quota.Violation, s *state.Stock, wanted string) bool {
	return v.Kind == quota.OfItems && v.Tree == s.Tree && v.Resource == s.Resource.Name && v.Item == wanted
}

// ReplaceRemoved creates items for removed ones, up to the configured minimum or to the unmet demand of waiting
// requests, and unblocks requests for new ones.
func ReplaceRemoved(inv *state.Inventory, s *state.Stock) {
	spec := s.Resource.Items
	if !spec.OnDemand() {
		return
	}
	createOnDemand(inv, s, spec.Min)
	createOnDemand(inv, s, len(s.ByName)+unmetDemand(s))
	if s.CreatableIn(spec.InitialState()) > 0 {
		inv.Queue.UnblockItems(s.Resource, spec.InitialState(), "")
	}
}

// unmetDemand is the number of further items that can be created for waiting requests for states other than the initial
// one, beyond the items that no client has brought there yet.
func unmetDemand(s *state.Stock) int {
	initial := s.Resource.Items.InitialState()
	room, want := s.CreatableIn(initial), -s.IdleIn(initial)
	for _, bq := range s.Resource.Queues {
		if bq.Item != "" || bq.State == initial || !isCreatedFor(s, bq.State) {
			continue
		}
		for alt := range bq.Waiters.All() {
			if want >= room {
				break
			}
			want += int(alt.Need)
		}
	}
	return max(0, min(room, want))
}

// checkUpdates refuses invalid changes of items. find returns the record of an item that may be changed.
func checkUpdates(e *state.Environment, updates []quota.ItemUpdate, field string,
	find func(quota.ItemName, string) (*state.Item, *quota.Error),
) ([]*state.Item, *quota.Error) {
	if n := len(updates); n > e.Bounds.Picks {
		return nil, quota.Errorf(quota.Invalid, field, "%d items are to be changed; at most %d are allowed at once",
			n, e.Bounds.Picks)
	}
	var list []*state.Item
	seen := map[quota.ItemName]bool{}
	for i, u := range updates {
		at := fmt.Sprintf("%s[%d]", field, i)
		it, err := find(u.Item, at+".item")
		if err != nil {
			return nil, err
		}
		if seen[u.Item] {
			return nil, quota.Errorf(quota.Invalid, at+".item", "item %s is changed twice; say both at once", it.Name)
		}
		seen[u.Item] = true
		if err := CheckStates(at+".state", u.State); err != nil {
			return nil, err
		}
		if err := checkLaid(e, it.Data, u.Data, at+".user_data"); err != nil {
			return nil, err
		}
		list = append(list, it)
	}
	return list, nil
}

// updateItem does nothing if the item is as wanted already.
func updateItem(inv *state.Inventory, it *state.Item, u quota.ItemUpdate) *state.Item {
	updated := *it
	if u.State != "" && u.State != it.State {
		updated = *inv.WithNewState(it, u.State, it.Owner)
	}
	if updated.IsRetired() {
		updated.Expires = quota.Stamp{}
	}
	updated.Data = state.OverlayData(it.Data, u.Data)
	if updated.StateSeq == it.StateSeq && slices.Equal(updated.Data, it.Data) {
		return it
	}
	updated.Updated = inv.Now
	ChangeItem(inv, it, &updated)
	spareLeaving(inv, updated.Stock)
	return &updated
}

// UpdateItems changes idle items, all or none.
func UpdateItems(s *state.State, c quota.UpdateItems, m state.Mode) state.Outcome {
	list, err := checkItemUpdates(s, c)
	if err != nil {
		return state.Outcome{Refused: err}
	}
	if m == state.DryRun {
		return state.Outcome{Items: s.Inventory.ItemInfos(list)}
	}
	var out state.Outcome
	for i, it := range list {
		updated := updateItem(&s.Inventory, it, c.Updates[i])
		out.Items = append(out.Items, s.Inventory.ItemInfo(updated))
		if updated.StateSeq != it.StateSeq {
			announceIdle(&s.Inventory, updated)
		}
	}
	return out
}

func checkItemUpdates(s *state.State, c quota.UpdateItems) ([]*state.Item, *quota.Error) {
	if len(c.Updates) == 0 {
		return nil, quota.Errorf(quota.Invalid, "updates", "no item is to be changed; name at least one")
	}
	find := func(name quota.ItemName, field string) (*state.Item, *quota.Error) {
		it, err := findItem(&s.Forest, name, field)
		if err != nil {
			return nil, err
		}
		if it.Owner != 0 {
			return nil, quota.Errorf(quota.InUse, field,
				"item %s is held%s; only its holder changes it, with a renewal, until it is given back", it.Name,
				heldBy(s, it))
		}
		return it, nil
	}
	list, err := checkUpdates(&s.Environment, c.Updates, "updates", find)
	if err != nil {
		return nil, err
	}
	if err := checkReturnsToUse(list, c.Updates); err != nil {
		return nil, err
	}
	return list, s.CheckDataGrowth(s.ItemGrowth(list, c.Updates), "updates")
}

// heldBy names the holder of an item for those who may read holders.
func heldBy(s *state.State, it *state.Item) string {
	holder, _ := s.Allocations.Held.Get(it.Owner)
	isOwn := holder.Owner != "" && holder.Owner == s.Caller.User()
	root := s.Forest.Trees[it.Stock.Tree].Root
	if s.Book.Mode() == access.Guarded && !isOwn && !s.Rights.May(access.HoldersRead, root) {
		return ""
	}
	return fmt.Sprintf(" by allocation %q", holder.ID())
}

func findItem(f *state.Forest, name quota.ItemName, field string) (*state.Item, *quota.Error) {
	s, err := FindStock(f, name.Tree, name.Resource, field)
	if err != nil {
		return nil, err
	}
	it := s.ByName[name.Name]
	if it == nil {
		return nil, quota.Errorf(quota.NotFound, field, "resource %s of tree %s has no item %q", name.Resource,
			name.Tree, quota.Clip(name.Name))
	}
	return it, nil
}

// FindStock returns the items of a resource.
func FindStock(f *state.Forest, tree, resource, field string) (*state.Stock, *quota.Error) {
	t := f.Trees[tree]
	if t == nil {
		return nil, quota.Errorf(quota.NotFound, field, "there is no tree %q", quota.Clip(tree))
	}
	r := t.Resource(resource)
	switch {
	case r == nil:
		return nil, quota.Errorf(quota.NotFound, field, "tree %s has no resource %q; it has %s", tree,
			quota.Clip(resource), t.ResourceNames())
	case r.Stock == nil:
		return nil, quota.Errorf(quota.NotFound, field, "%s of tree %s is %s, it has no named items",
			resource, tree, AmountWords[r.Unit])
	}
	return r.Stock, nil
}

// AmountWords say what is counted where there are no items.
var AmountWords = map[quota.Unit]string{
	quota.Count: "a count", quota.Milli: "an amount in thousandths", quota.Bytes: "an amount in bytes",
}

// resetter is recorded as the cause when a ResetItems has taken all items of an allocation.
const resetter = "reset"

// itemSet is a set of held items by StateSeq, which is constant while an item is held.
type itemSet map[uint64]bool

// ResetItems takes items from holders that have not renewed for a while. An allocation that has nothing left ends.
func ResetItems(s *state.State, c quota.ResetItems, m state.Mode) state.Outcome {
	list, err := itemsToReset(s, c)
	if err != nil {
		return state.Outcome{Refused: err}
	}
	if m == state.DryRun {
		return state.Outcome{Items: s.Inventory.ItemInfos(list)}
	}
	var out state.Outcome
	lost := map[uint64]itemSet{}
	for _, it := range list {
		info := s.Inventory.ItemInfo(it)
		info.State = c.To
		out.Items = append(out.Items, info)
		if lost[it.Owner] == nil {
			lost[it.Owner] = itemSet{}
		}
		lost[it.Owner][it.StateSeq] = true
	}
	for _, it := range list {
		if gone := lost[it.Owner]; gone != nil {
			delete(lost, it.Owner)
			a, _ := s.Allocations.Held.Get(it.Owner)
			updated := takeAway(s, a, gone, c.To, state.Ending{State: quota.Expired, By: resetter})
			if updated.Ended != nil {
				s.Journal.NoteEvent(quota.Event{Kind: quota.EventExpired, ID: updated.ID(), By: resetter})
			}
		}
	}
	return out
}

// itemsToReset finds the items that a ResetItems takes, by name; it changes nothing. Reservations keep theirs, because
// they end soon by themselves.
func itemsToReset(s *state.State, c quota.ResetItems) ([]*state.Item, *quota.Error) {
	stock, err := FindStock(&s.Forest, c.Tree, c.Resource, "resource")
	switch {
	case err != nil:
		return nil, err
	case c.State == "":
		return nil, quota.Errorf(quota.Invalid, "state", "name the state of the items that are to be taken")
	case c.To == "":
		return nil, quota.Errorf(quota.Invalid, "to", "name the state that the items are to get")
	}
	if err := CheckStates("new_state", c.To); err != nil {
		return nil, err
	}
	var list []*state.Item
	for _, name := range stock.Names {
		it := stock.ByName[name]
		if it.Owner == 0 || it.State != c.State {
			continue
		}
		a, _ := s.Allocations.Held.Get(it.Owner)
		if a.State() == quota.Held && quota.Span(s.Now.At-it.Touched(a).At) >= max(0, c.Idle) {
			list = append(list, it)
		}
	}
	return list, nil
}

func holdsNothing(a *state.Allocation) bool {
	return !slices.ContainsFunc(a.Claims, func(c state.PlacedClaim) bool { return len(c.Amounts) > 0 })
}

// takeAway returns the allocation's record. An allocation with nothing left ends.
func takeAway(s *state.State, a *state.Allocation, gone itemSet, itemState string, end state.Ending) *state.Allocation {
	updated := withoutItems(a, gone)
	for _, it := range heldItems(a) {
		if gone[it.StateSeq] {
			returnItem(&s.Inventory, it.Stock.ByName[it.Name], stateOr(itemState, it.Stock.Resource.Items))
		}
	}
	if holdsNothing(updated) {
		return endAllocation(s, a, end)
	}
	shrinkAllocation(s, a, updated)
	announceReturned(&s.Inventory, a)
	s.Journal.NoteFact(state.FactShrunk, updated)
	return recheckResize(s, updated)
}

// shrinkAllocation refunds what the smaller record does not have.
func shrinkAllocation(s *state.State, a, updated *state.Allocation) {
	markChangedBy(&s.Forest, a)
	for i := range a.Claims {
		s.Allocations.RefundClaim(a, i)
	}
	updateAddresses(updated)
	s.Allocations.ReplaceRecord(updated)
	for i := range updated.Claims {
		s.Allocations.ChargeClaim(updated, i)
	}
	for i := range updated.Claims {
		reclaimAt(&s.Allocations, updated.Claims[i].At)
	}
	s.Queue.UnblockFreed(a)
}

func stateOr(itemState string, s *quota.ItemSpec) string {
	if itemState == "" {
		return s.ReleasedState()
	}
	return itemState
}

func withoutItems(a *state.Allocation, gone itemSet) *state.Allocation {
	updated := *a
	updated.Claims = slices.Clone(a.Claims)
	for i := range updated.Claims {
		c := &updated.Claims[i]
		left := slices.DeleteFunc(slices.Clone(c.HeldItems()),
			func(h state.HeldItem) bool { return gone[h.Is.Stock.ByName[h.Name].StateSeq] })
		if len(left) == len(c.HeldItems()) {
			continue
		}
		c.SetItems(c.Picks(), left)
		c.Amounts = slices.Clone(c.Amounts)
		for j, p := range c.Amounts {
			if p.Resource.Unit == quota.Items {
				c.Amounts[j].Amount = c.CountOf(p.Resource.Name)
			}
		}
		c.Amounts = slices.DeleteFunc(c.Amounts,
			func(p state.PlacedAmount) bool { return p.Resource.Unit == quota.Items && p.Amount == 0 })
	}
	return &updated
}

// ChangeItem replaces the record of an item; was is nil for a new item, is for a removed one. Changing back reverts it.
func ChangeItem(inv *state.Inventory, previous, updated *state.Item) {
	noteItem(inv, previous, updated)
	cmp.Or(updated, previous).Stock.MarkChanged(inv.Index)
	if previous != nil {
		previous.Stock.CountLeaving(previous, -1)
		previous.Stock.RemoveIdle(previous)
		inv.Items.Delete(previous.StateSeq)
		inv.Deadlines.Drop(state.DueKey{Kind: state.DueItem, Number: previous.StateSeq})
	}
	switch {
	case previous == nil:
		updated.Stock.AddItem(updated.Name)
	case updated == nil:
		previous.Stock.RemoveItem(previous.Name)
		return
	}
	updated.Stock.CountLeaving(updated, 1)
	updated.Stock.ByName[updated.Name] = updated
	inv.Items.Set(updated.StateSeq, updated)
	updated.Stock.AddIdle(updated)
	inv.Deadlines.Set(state.DueKey{Kind: state.DueItem, Number: updated.StateSeq}, updated.DueAt())
}

// takenItem is the record of an idle item that an allocation takes. A retired item that is one too many leaves when it
// is returned: nothing but its state has marked it so far.
func takenItem(inv *state.Inventory, it *state.Item, itemState string, owner uint64) *state.Item {
	updated := inv.WithNewState(it, itemState, owner)
	updated.Leaving = it.IsRetired() && SurplusOf(it.Stock) >= 0
	return updated
}

// AdvanceItem applies an item's deadline: ends its lifespan or turns its state.
func AdvanceItem(inv *state.Inventory, turn uint64) {
	it, _ := inv.Items.Get(turn)
	if it.Expires.At != 0 && it.Expires.At <= inv.Now.At {
		placeIdle(inv, it, retiredItem(inv, it, ""))
		return
	}
	placeIdle(inv, it, idleItem(inv, it, it.StateDeadline().To))
}

// ItemNameRule formats the rule for names of items with the maximum length, the extra characters and the given name.
const ItemNameRule = "an item's name is 1 to %d letters, digits and %s, beginning with a letter, digit or _; got %q"
