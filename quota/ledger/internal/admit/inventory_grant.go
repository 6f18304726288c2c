package admit

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// takeItems assigns the requested items to a new allocation, named ones first. checkItems must have found them
// available.
func takeItems(inv *state.Inventory, a *state.Allocation) {
	if !a.WantsItems() {
		return
	}
	for _, named := range []bool{true, false} {
		for i := range a.Claims {
			for _, p := range a.Claims[i].Picks() {
				if named == (len(p.Names) > 0) {
					takePick(inv, a, i, p)
				}
			}
		}
	}
	for i := range a.Claims {
		slices.SortFunc(a.Claims[i].HeldItems(), state.CompareHeld)
	}
}

func takePick(inv *state.Inventory, a *state.Allocation, i int, p quota.Pick) {
	s := a.Claims[i].At.Tree.Resource(p.Resource).Stock
	names := p.Names
	if len(names) == 0 {
		if lack := p.Count - s.IdleIn(p.WantedState()); lack > 0 {
			createOnDemand(inv, s, len(s.ByName)+lack)
		}
		for _, it := range s.Idle[p.WantedState()].All() {
			if names = append(names, it.Name); len(names) == p.Count {
				break
			}
		}
	}
	taken := a.Claims[i].More.Items
	for _, name := range names {
		it := s.ByName[name]
		updated := takenItem(inv, it, p.StateWhileHeld(), a.Fence())
		ChangeItem(inv, it, updated)
		taken.Held = append(taken.Held, state.HeldItem{Resource: p.Resource, Name: name, Is: updated})
	}
}

// returnItem takes an item from its holder. A leaving item is retired or removed; so is any item while the stock
// exceeds its maximum, and then an item that was to leave stays instead. undo reverts the return.
func returnItem(inv *state.Inventory, it *state.Item, itemState string) (undo func()) {
	turn := inv.LastStateSeq
	var updated, leaver, stays *state.Item
	switch s := it.Stock; {
	case it.Leaving:
		updated = retiredItem(inv, it, itemState)
	case s.Resource.Items.OnDemand() && SurplusOf(s) > 0:
		leaver = oldestLeaving(s)
		spared := *leaver
		spared.Leaving, stays = false, &spared
		ChangeItem(inv, leaver, stays)
		updated = retiredItem(inv, it, itemState)
	default:
		updated = returnedItem(inv, it, itemState)
	}
	ChangeItem(inv, it, updated)
	return func() {
		ChangeItem(inv, updated, it)
		if leaver != nil {
			ChangeItem(inv, stays, leaver)
		}
		inv.LastStateSeq = turn
	}
}

// oldestLeaving is the leaving item that stays first. Of items created on demand, as many leave as exceed the maximum.
func oldestLeaving(s *state.Stock) *state.Item {
	var oldest *state.Item
	for _, it := range s.ByName { // a minimum does not depend on the order
		if it.Leaving && (oldest == nil || it.StateSeq < oldest.StateSeq) {
			oldest = it
		}
	}
	return oldest
}

// afterwards is the state that an item gets when the allocation ends.
type afterwards func(c *state.PlacedClaim, it *state.Item) string

func Released(_ *state.PlacedClaim, it *state.Item) string {
	return it.Stock.Resource.Items.ReleasedState()
}

func expired(_ *state.PlacedClaim, it *state.Item) string {
	return it.Stock.Resource.Items.ExpiredState()
}

func unused(c *state.PlacedClaim, it *state.Item) string {
	return state.UnusedItemState(c.PickOf(it.Stock.Resource.Name), it.Stock.Resource.Items)
}

func itemsAfter(end quota.State) afterwards {
	if end == quota.Released {
		return Released
	}
	return expired
}

func heldItems(a *state.Allocation) []*state.Item {
	var list []*state.Item
	for i := range a.Claims {
		for _, h := range a.Claims[i].HeldItems() {
			if it := h.Is.Stock.ByName[h.Name]; it != nil && it.Owner == a.Fence() {
				list = append(list, it)
			}
		}
	}
	return list
}

// ReturnItems takes all items from an allocation that ends, without unblocking requests.
func ReturnItems(inv *state.Inventory, a *state.Allocation, after afterwards) (undo UndoList) {
	if !a.WantsItems() {
		return nil
	}
	for i := range a.Claims {
		c := &a.Claims[i]
		for _, h := range c.HeldItems() {
			if it := h.Is.Stock.ByName[h.Name]; it != nil && it.Owner == a.Fence() {
				undo = append(undo, returnItem(inv, it, after(c, it)))
			}
		}
	}
	return undo
}

func announceReturned(inv *state.Inventory, a *state.Allocation) {
	for i := range a.Claims {
		for _, h := range a.Claims[i].HeldItems() {
			announceItem(inv, h.Is.Stock, h.Name)
		}
	}
}

func announceItem(inv *state.Inventory, s *state.Stock, name string) {
	switch it := s.ByName[name]; {
	case it == nil:
		ReplaceRemoved(inv, s)
	case it.Owner == 0:
		inv.Queue.UnblockItems(s.Resource, it.State, name)
	}
}

func (t *staged) returnItems(victim *state.Allocation) {
	t.Append(ReturnItems(&t.state.Inventory, victim, expired))
}

func checkPicks(e *state.Environment, claims []quota.Claim) *quota.Error {
	count := 0
	for i, c := range claims {
		for _, p := range c.Picks {
			if p.Count < 1 || p.Count > e.Bounds.Picks {
				return quota.Errorf(quota.Invalid, pickField(i, p), "%d items of %s are asked for; 1 to %d are allowed",
					p.Count, quota.Clip(p.Resource), e.Bounds.Picks)
			}
			count += p.Count
		}
	}
	if count > e.Bounds.Picks {
		return quota.Errorf(quota.Invalid, "claims", "%d items are asked for; at most %d are allowed in one request",
			count, e.Bounds.Picks)
	}
	return nil
}

func pickField(i int, p quota.Pick) string {
	return ClaimField(i, ".items["+quota.Clip(p.Resource)+"]")
}

// placePicks binds the picks of a claim to the resources of its tree. They count like amounts.
func placePicks(c *state.PlacedClaim, t *state.Tree, picks []quota.Pick, i int) *quota.Error {
	for j, p := range picks {
		if j > 0 && picks[j-1].Resource >= p.Resource {
			return quota.Errorf(quota.Invalid, pickField(i, p),
				"resource %s is not in order, or there twice; ask for its items at once", quota.Clip(p.Resource))
		}
		r := t.Resource(p.Resource)
		switch {
		case r == nil:
			return quota.Errorf(quota.NotFound, pickField(i, p), "tree %s has no resource %q; it has %s", t.Name,
				quota.Clip(p.Resource), t.ResourceNames())
		case r.Unit != quota.Items:
			return quota.Errorf(quota.Invalid, pickField(i, p),
				"%s of tree %s is %s, it has no named items; ask for an amount", r.Name, t.Name, AmountWords[r.Unit])
		}
		if err := checkPick(p, pickField(i, p)); err != nil {
			return err
		}
		c.Amounts[len(c.Amounts)-len(picks)+j] = state.PlacedAmount{Resource: r, Amount: quota.Amount(p.Count)}
	}
	slices.SortFunc(c.Amounts,
		func(a, b state.PlacedAmount) int { return cmp.Compare(a.Resource.Index, b.Resource.Index) })
	c.SetItems(picks, nil)
	return nil
}

func checkPick(p quota.Pick, field string) *quota.Error {
	if len(p.Names) > 0 && p.Count != len(p.Names) {
		return quota.Errorf(quota.Invalid, field, "%d items are asked for, but %d are named; their number is the count",
			p.Count, len(p.Names))
	}
	for i, name := range p.Names {
		switch {
		case !quota.IsItemName(name):
			return quota.Errorf(quota.Invalid, field, ItemNameRule, quota.MaxItemName, quota.NodeNameExtra,
				quota.Clip(name))
		case i > 0 && p.Names[i-1] >= name:
			return quota.Errorf(quota.Invalid, field, "item %s is not in order, or named twice", name)
		}
	}
	return CheckStates(field, p.State, p.HeldState)
}

// CheckStates refuses states that are too long; an empty state always means a default.
func CheckStates(field string, states ...string) *quota.Error {
	for _, s := range states {
		if len(s) > quota.MaxItemState {
			return quota.Errorf(quota.Invalid, field, "state %q has %d bytes; at most %d are allowed", quota.Clip(s),
				len(s), quota.MaxItemState)
		}
	}
	return nil
}

func checkNamedOnce(a *state.Allocation) *quota.Error {
	if len(a.Claims) < 2 || !a.WantsItems() {
		return nil
	}
	named := map[quota.ItemName]int{}
	for i := range a.Claims {
		for _, p := range a.Claims[i].Picks() {
			for _, name := range p.Names {
				key := quota.ItemName{Tree: a.Claims[i].At.TreeName, Resource: p.Resource, Name: name}
				if first, twice := named[key]; twice {
					return quota.Errorf(quota.Invalid, pickField(i, p),
						"item %s is asked for by claims[%d] too; one of them can have it", name, first)
				}
				named[key] = i
			}
		}
	}
	return nil
}

// shelf is the items of one resource in one state.
type shelf struct {
	*state.Stock
	state string
}

// itemDemand is the demand of a whole request for items.
type itemDemand struct {
	any   map[shelf]int        // number by state
	named map[shelf]int        // number of available named items, by their present state
	all   map[*state.Stock]int // number of existing named items
}

// checkItems returns the items that a request lacks, and the requests that it must not overtake, in the order of the
// request: each named item by itself, other items once for each state of a resource.
func checkItems(inv *state.Inventory, a *state.Allocation) []quota.Violation {
	if !a.WantsItems() {
		return nil
	}
	var violations []quota.Violation
	w := itemDemands(a)
	for i := range a.Claims {
		for _, p := range a.Claims[i].Picks() {
			s := a.Claims[i].At.Tree.Resource(p.Resource).Stock
			if len(p.Names) > 0 {
				violations = append(violations, lackOfNames(s, p)...)
				violations = inv.AskerFor(a).OvertakeByName(violations, a.Claims[i].At.Tree, p)
			} else if key := (shelf{s, p.WantedState()}); w.any[key] > 0 {
				violations = append(violations, w.shortage(key)...)
				violations = inv.AskerFor(a).OvertakeViolations(violations, s.Resource.Queues,
					state.Blocker{Tree: a.Claims[i].At.Tree, Resource: s.Resource, State: key.state})
				delete(w.any, key)
			}
		}
	}
	return violations
}

func itemDemands(a *state.Allocation) itemDemand {
	w := itemDemand{any: map[shelf]int{}, named: map[shelf]int{}, all: map[*state.Stock]int{}}
	for i := range a.Claims {
		for _, p := range a.Claims[i].Picks() {
			s := a.Claims[i].At.Tree.Resource(p.Resource).Stock
			if len(p.Names) == 0 {
				w.any[shelf{s, p.WantedState()}] += p.Count
			}
			for _, name := range p.Names {
				if it := s.ByName[name]; it != nil && !it.Leaving {
					w.all[s]++
					if it.Owner == 0 {
						w.named[shelf{s, it.State}]++
					}
				}
			}
		}
	}
	return w
}

func lackOfNames(s *state.Stock, p quota.Pick) []quota.Violation {
	var violations []quota.Violation
	for _, name := range p.Names {
		if v := levelOfName(s, p, name); v.Missing() > 0 {
			violations = append(violations, v)
		}
	}
	return violations
}

// levelOfName has one named item as a limit of 1, or of 0 if it does not exist; a leaving one counts as removed.
func levelOfName(s *state.Stock, p quota.Pick, name string) quota.Violation {
	v := quota.Violation{Tree: s.Tree, Resource: s.Resource.Name, Requested: 1, Kind: quota.OfItems, Item: name}
	it := s.ByName[name]
	if it == nil || it.Leaving {
		return v
	}
	v.Limit = 1
	if it.Owner != 0 || p.State != "" && p.State != it.State {
		v.Used = 1
	}
	return v
}

// shortage returns a violation if fewer items of a state are available, beside those that the request names, than
// requested.
func (w itemDemand) shortage(s shelf) []quota.Violation {
	if v := w.levelOf(s); v.Missing() > 0 {
		return []quota.Violation{v}
	}
	return nil
}

// levelOf has the items of a state, beside those that the request names, as a limit.
func (w itemDemand) levelOf(s shelf) quota.Violation {
	limit := max(0, s.Resource.Items.MaxItems()-w.all[s.Stock])
	available := min(limit, s.IdleIn(s.state)-w.named[s]+s.CreatableIn(s.state))
	return quota.Violation{
		Tree: s.Tree, Resource: s.Resource.Name, Kind: quota.OfItems, Item: s.state,
		Limit: quota.Amount(limit), Used: quota.Amount(limit - available), Requested: quota.Amount(w.any[s]),
	}
}

// ItemLevels has what a request wants of items as limits, in the order of checkItems.
func ItemLevels(inv *state.Inventory, a *state.Allocation) []quota.Violation {
	if !a.WantsItems() {
		return nil
	}
	var levels []quota.Violation
	w := itemDemands(a)
	for i := range a.Claims {
		for _, p := range a.Claims[i].Picks() {
			s := a.Claims[i].At.Tree.Resource(p.Resource).Stock
			for _, name := range p.Names {
				levels = append(levels, levelOfName(s, p, name))
			}
			if key := (shelf{s, p.WantedState()}); len(p.Names) == 0 && w.any[key] > 0 {
				levels = append(levels, w.levelOf(key))
				delete(w.any, key)
			}
		}
	}
	return levels
}
