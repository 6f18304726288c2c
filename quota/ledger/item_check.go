package ledger

import "github.com/quorate/quorate/quota"

// shelf is the items of one resource that are in one state.
type shelf struct {
	*stock
	state string
}

// wanted is what a whole request wants of items.
type wanted struct {
	any   map[shelf]int  // so many in a state
	named map[shelf]int  // those with names that are to be had, by the state that they are in
	all   map[*stock]int // those with names that there are
}

// checkItems says which items a request lacks, and who must not be overtaken there, in the order of the request: for those with names each by itself, for the
// others each state of a resource once.
func (inv *inventory) checkItems(a *Allocation) []quota.Violation {
	if !a.wantsItems() {
		return nil
	}
	var violations []quota.Violation
	w := a.wanted()
	for i := range a.claims {
		for _, p := range a.claims[i].picks() {
			s := a.claims[i].at.tree.resource(p.Resource).stock
			if len(p.Names) > 0 {
				violations = append(violations, s.lackOfNames(p)...)
				violations = inv.asker(a).behindNames(violations, a.claims[i].at.tree, p)
			} else if key := (shelf{s, p.WantedState()}); w.any[key] > 0 {
				violations = append(violations, w.lack(key)...)
				violations = inv.asker(a).behind(violations, s.resource.lines, lineKey{tree: a.claims[i].at.tree, resource: s.resource, state: key.state})
				delete(w.any, key)
			}
		}
	}
	return violations
}

func (a *Allocation) wanted() wanted {
	w := wanted{any: map[shelf]int{}, named: map[shelf]int{}, all: map[*stock]int{}}
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

// lackOfNames says which named items are not to be had; one that leaves counts as gone.
func (s *stock) lackOfNames(p quota.Pick) []quota.Violation {
	var violations []quota.Violation
	for _, name := range p.Names {
		v := quota.Violation{Tree: s.tree, Resource: s.resource.Name, Requested: 1, Kind: quota.OfItems, Item: name}
		switch it := s.byName[name]; {
		case it == nil || it.leaving:
		case it.owner == 0 && (p.State == "" || p.State == it.state):
			continue
		default:
			v.Limit, v.Used = 1, 1
		}
		violations = append(violations, v)
	}
	return violations
}

// lack says whether too few items are to be had in a state beside those that the request names.
func (w wanted) lack(s shelf) []quota.Violation {
	limit := max(0, s.resource.Items.MaxItems()-w.all[s.stock])
	available := min(limit, s.idleIn(s.state)-w.named[s]+s.makeable(s.state))
	if w.any[s] <= available {
		return nil
	}
	return []quota.Violation{{
		Tree: s.tree, Resource: s.resource.Name, Kind: quota.OfItems, Item: s.state,
		Limit: quota.Amount(limit), Used: quota.Amount(limit - available), Requested: quota.Amount(w.any[s]),
	}}
}
