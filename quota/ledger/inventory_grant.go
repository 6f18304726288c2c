package ledger

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/quota"
)

// takeItems assigns the requested items to a new allocation, named ones first. checkItems must have found them
// available.
func (inv *inventory) takeItems(a *Allocation) {
	if !a.wantsItems() {
		return
	}
	for _, named := range []bool{true, false} {
		for i := range a.claims {
			for _, p := range a.claims[i].picks() {
				if named == (len(p.Names) > 0) {
					inv.takePick(a, i, p)
				}
			}
		}
	}
	for i := range a.claims {
		slices.SortFunc(a.claims[i].heldItems(), compareHeld)
	}
}

func (inv *inventory) takePick(a *Allocation, i int, p quota.Pick) {
	s := a.claims[i].at.tree.resource(p.Resource).stock
	names := p.Names
	if len(names) == 0 {
		if lack := p.Count - s.idleIn(p.WantedState()); lack > 0 {
			inv.createOnDemand(s, len(s.byName)+lack)
		}
		for _, it := range s.idle[p.WantedState()].All() {
			if names = append(names, it.name); len(names) == p.Count {
				break
			}
		}
	}
	of := a.claims[i].more.items
	for _, name := range names {
		it := s.byName[name]
		is := inv.takenItem(it, p.StateWhileHeld(), a.fence)
		inv.changeItem(it, is)
		of.held = append(of.held, heldItem{p.Resource, name, is})
	}
}

// returnItem takes an item from its holder. A leaving item is retired or removed; so is any item while the stock
// exceeds its maximum, and then an item that was to leave stays instead. undo reverts the return.
func (inv *inventory) returnItem(it *item, state string) (undo func()) {
	turn := inv.lastStateSeq
	var is, leaver, stays *item
	switch s := it.stock; {
	case it.leaving:
		is = inv.retiredItem(it, state)
	case s.resource.Items.OnDemand() && s.surplus() > 0:
		leaver = s.oldestLeaving()
		spared := *leaver
		spared.leaving, stays = false, &spared
		inv.changeItem(leaver, stays)
		is = inv.retiredItem(it, state)
	default:
		is = inv.returnedItem(it, state)
	}
	inv.changeItem(it, is)
	return func() {
		inv.changeItem(is, it)
		if leaver != nil {
			inv.changeItem(stays, leaver)
		}
		inv.lastStateSeq = turn
	}
}

// oldestLeaving is the leaving item that stays first. Of items created on demand, as many leave as exceed the maximum.
func (s *stock) oldestLeaving() *item {
	var oldest *item
	for _, it := range s.byName { // a minimum does not depend on the order
		if it.leaving && (oldest == nil || it.stateSeq < oldest.stateSeq) {
			oldest = it
		}
	}
	return oldest
}

// afterwards is the state that an item gets when the allocation ends.
type afterwards func(c *placedClaim, it *item) string

func released(_ *placedClaim, it *item) string { return it.stock.resource.Items.ReleasedState() }

func expired(_ *placedClaim, it *item) string { return it.stock.resource.Items.ExpiredState() }

func unused(c *placedClaim, it *item) string {
	return unusedItemState(c.pickOf(it.stock.resource.Name), it.stock.resource.Items)
}

// itemsAfter returns the states of the items of an allocation that ends.
func itemsAfter(end quota.State) afterwards {
	if end == quota.Released {
		return released
	}
	return expired
}

// heldItems are the present records of the items of an allocation, by claim, resource and name.
func (a *Allocation) heldItems() []*item {
	var list []*item
	for i := range a.claims {
		for _, h := range a.claims[i].heldItems() {
			if it := h.is.stock.byName[h.name]; it != nil && it.owner == a.fence {
				list = append(list, it)
			}
		}
	}
	return list
}

// returnItems takes all items from an allocation that ends, without unblocking requests.
func (inv *inventory) returnItems(a *Allocation, after afterwards) (undo undoList) {
	if !a.wantsItems() {
		return nil
	}
	for i := range a.claims {
		c := &a.claims[i]
		for _, h := range c.heldItems() {
			if it := h.is.stock.byName[h.name]; it != nil && it.owner == a.fence {
				undo = append(undo, inv.returnItem(it, after(c, it)))
			}
		}
	}
	return undo
}

// announceReturned unblocks the requests that wait for the returned items.
func (inv *inventory) announceReturned(a *Allocation) {
	for i := range a.claims {
		for _, h := range a.claims[i].heldItems() {
			inv.announceItem(h.is.stock, h.name)
		}
	}
}

func (inv *inventory) announceItem(s *stock, name string) {
	switch it := s.byName[name]; {
	case it == nil:
		inv.replaceRemoved(s)
	case it.owner == 0:
		inv.queue.unblockItems(s.resource, it.state, name)
	}
}

// returnItems takes all items from a victim as a step of the transaction.
func (t *staged) returnItems(victim *Allocation) {
	t.append(t.ledger.inventory.returnItems(victim, expired))
}

// checkPicks refuses requests for more items than the bound.
func (e *environment) checkPicks(claims []quota.Claim) *quota.Error {
	count := 0
	for i, c := range claims {
		for _, p := range c.Picks {
			if p.Count < 1 || p.Count > e.bounds.Picks {
				return quota.Errorf(quota.Invalid, pickField(i, p), "%d items of %s are asked for; 1 to %d are allowed",
					p.Count, quota.Clip(p.Resource), e.bounds.Picks)
			}
			count += p.Count
		}
	}
	if count > e.bounds.Picks {
		return quota.Errorf(quota.Invalid, "claims", "%d items are asked for; at most %d are allowed in one request",
			count, e.bounds.Picks)
	}
	return nil
}

func pickField(i int, p quota.Pick) string {
	return claimField(i, ".items["+quota.Clip(p.Resource)+"]")
}

// placePicks binds the picks of a claim to the resources of its tree. They count like amounts.
func (c *placedClaim) placePicks(t *tree, picks []quota.Pick, i int) *quota.Error {
	for j, p := range picks {
		if j > 0 && picks[j-1].Resource >= p.Resource {
			return quota.Errorf(quota.Invalid, pickField(i, p),
				"resource %s is not in order, or there twice; ask for its items at once", quota.Clip(p.Resource))
		}
		r := t.resource(p.Resource)
		switch {
		case r == nil:
			return quota.Errorf(quota.NotFound, pickField(i, p), "tree %s has no resource %q; it has %s", t.name,
				quota.Clip(p.Resource), t.resourceNames())
		case r.Unit != quota.Items:
			return quota.Errorf(quota.Invalid, pickField(i, p),
				"%s of tree %s is %s, it has no named items; ask for an amount", r.Name, t.name, amountWords[r.Unit])
		}
		if err := checkPick(p, pickField(i, p)); err != nil {
			return err
		}
		c.amounts[len(c.amounts)-len(picks)+j] = placedAmount{resource: r, amount: quota.Amount(p.Count)}
	}
	slices.SortFunc(c.amounts, func(a, b placedAmount) int { return cmp.Compare(a.resource.index, b.resource.index) })
	c.setItems(picks, nil)
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
			return quota.Errorf(quota.Invalid, field, itemNameRule, quota.MaxItemName, quota.NodeNameExtra,
				quota.Clip(name))
		case i > 0 && p.Names[i-1] >= name:
			return quota.Errorf(quota.Invalid, field, "item %s is not in order, or named twice", name)
		}
	}
	return checkStates(field, p.State, p.HeldState)
}

// checkStates refuses states that are too long; an empty state always means a default.
func checkStates(field string, states ...string) *quota.Error {
	for _, s := range states {
		if len(s) > quota.MaxItemState {
			return quota.Errorf(quota.Invalid, field, "state %q has %d bytes; at most %d are allowed", quota.Clip(s),
				len(s), quota.MaxItemState)
		}
	}
	return nil
}

// checkNamedOnce refuses a request that names an item in two claims.
func (a *Allocation) checkNamedOnce() *quota.Error {
	if len(a.claims) < 2 || !a.wantsItems() {
		return nil
	}
	named := map[quota.ItemName]int{}
	for i := range a.claims {
		for _, p := range a.claims[i].picks() {
			for _, name := range p.Names {
				key := quota.ItemName{Tree: a.claims[i].at.treeName, Resource: p.Resource, Name: name}
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
	*stock
	state string
}

// itemDemand is the demand of a whole request for items.
type itemDemand struct {
	any   map[shelf]int  // number by state
	named map[shelf]int  // number of available named items, by their present state
	all   map[*stock]int // number of existing named items
}

// checkItems returns the items that a request lacks, and the requests that it must not overtake, in the order of the
// request: each named item by itself, other items once for each state of a resource.
func (inv *inventory) checkItems(a *Allocation) []quota.Violation {
	if !a.wantsItems() {
		return nil
	}
	var violations []quota.Violation
	w := a.itemDemands()
	for i := range a.claims {
		for _, p := range a.claims[i].picks() {
			s := a.claims[i].at.tree.resource(p.Resource).stock
			if len(p.Names) > 0 {
				violations = append(violations, s.lackOfNames(p)...)
				violations = inv.askerFor(a).overtakeByName(violations, a.claims[i].at.tree, p)
			} else if key := (shelf{s, p.WantedState()}); w.any[key] > 0 {
				violations = append(violations, w.shortage(key)...)
				violations = inv.askerFor(a).overtakeViolations(violations, s.resource.queues,
					blocker{tree: a.claims[i].at.tree, resource: s.resource, state: key.state})
				delete(w.any, key)
			}
		}
	}
	return violations
}

func (a *Allocation) itemDemands() itemDemand {
	w := itemDemand{any: map[shelf]int{}, named: map[shelf]int{}, all: map[*stock]int{}}
	for i := range a.claims {
		for _, p := range a.claims[i].picks() {
			s := a.claims[i].at.tree.resource(p.Resource).stock
			if len(p.Names) == 0 {
				w.any[shelf{s, p.WantedState()}] += p.Count
			}
			for _, name := range p.Names {
				if it := s.byName[name]; it != nil && !it.leaving {
					w.all[s]++
					if it.owner == 0 {
						w.named[shelf{s, it.state}]++
					}
				}
			}
		}
	}
	return w
}

// lackOfNames returns a violation for each named item that is not available.
func (s *stock) lackOfNames(p quota.Pick) []quota.Violation {
	var violations []quota.Violation
	for _, name := range p.Names {
		if v := s.levelOfName(p, name); v.Missing() > 0 {
			violations = append(violations, v)
		}
	}
	return violations
}

// levelOfName has one named item as a limit of 1, or of 0 if it does not exist; a leaving one counts as removed.
func (s *stock) levelOfName(p quota.Pick, name string) quota.Violation {
	v := quota.Violation{Tree: s.tree, Resource: s.resource.Name, Requested: 1, Kind: quota.OfItems, Item: name}
	it := s.byName[name]
	if it == nil || it.leaving {
		return v
	}
	v.Limit = 1
	if it.owner != 0 || p.State != "" && p.State != it.state {
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
	limit := max(0, s.resource.Items.MaxItems()-w.all[s.stock])
	available := min(limit, s.idleIn(s.state)-w.named[s]+s.creatableIn(s.state))
	return quota.Violation{
		Tree: s.tree, Resource: s.resource.Name, Kind: quota.OfItems, Item: s.state,
		Limit: quota.Amount(limit), Used: quota.Amount(limit - available), Requested: quota.Amount(w.any[s]),
	}
}

// itemLevels has what a request wants of items as limits, in the order of checkItems.
func (inv *inventory) itemLevels(a *Allocation) []quota.Violation {
	if !a.wantsItems() {
		return nil
	}
	var levels []quota.Violation
	w := a.itemDemands()
	for i := range a.claims {
		for _, p := range a.claims[i].picks() {
			s := a.claims[i].at.tree.resource(p.Resource).stock
			for _, name := range p.Names {
				levels = append(levels, s.levelOfName(p, name))
			}
			if key := (shelf{s, p.WantedState()}); len(p.Names) == 0 && w.any[key] > 0 {
				levels = append(levels, w.levelOf(key))
				delete(w.any, key)
			}
		}
	}
	return levels
}
