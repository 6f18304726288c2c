package ledger

import (
	"strconv"
	"strings"

	"github.com/quorate/quorate/quota"
)

// makeItem makes an item that nobody holds.
func (inv *inventory) makeItem(s *stock, name string) {
	it := inv.aged(&item{stock: s, name: name}, s.resource.Items.InitialState(), 0)
	inv.changeItem(nil, it)
	inv.queue.stirItems(s.resource, it.state, it.name)
}

// makeOnDemand makes items until there are so many.
func (inv *inventory) makeOnDemand(s *stock, count int) {
	for len(s.byName) < count {
		inv.makeItem(s, s.nextName())
	}
}

// nextName is that of the next item on demand; no number is given twice.
func (s *stock) nextName() string {
	for {
		s.number++
		name := strings.ReplaceAll(s.resource.Name, "/", "-") + "-" + strconv.FormatUint(s.number, 10)
		if s.byName[name] == nil {
			return name
		}
	}
}

// makeWanted makes items for a request that was not granted for nothing but the lack of items in a state that new ones do
// not have, or because others wait for them: whoever brings items into that state finds them, as with Boskos.
func (inv *inventory) makeWanted(a *Allocation, violations []quota.Violation) {
	for _, v := range violations {
		if v.Kind != quota.OfItems && v.Kind != quota.OfQueue || v.NeverFits() {
			return
		}
	}
	for i := range a.claims {
		for _, p := range a.claims[i].picks() {
			s := a.claims[i].at.tree.resource(p.Resource).stock
			for _, v := range violations {
				if len(p.Names) == 0 && s.resource.Items.OnDemand() && isShortOf(v, s, p.WantedState()) {
					inv.makeOnDemand(s, min(s.resource.Items.Max, len(s.byName)+int(v.Missing())))
				}
			}
		}
	}
}

// isShortOf is true if the violation is about items of a stock in a state.
func isShortOf(v quota.Violation, s *stock, state string) bool {
	return v.Kind == quota.OfItems && v.Tree == s.tree && v.Resource == s.resource.Name && v.Item == state
}

// replaceGone makes items for those that have gone, as far as there must be so many, or somebody waits that others bring them
// into another state; and tells that there is room.
func (inv *inventory) replaceGone(s *stock) {
	spec := s.resource.Items
	if !spec.OnDemand() {
		return
	}
	inv.makeOnDemand(s, spec.Min)
	inv.makeOnDemand(s, len(s.byName)+s.unmet())
	if s.makeable(spec.InitialState()) > 0 {
		inv.queue.stirItems(s.resource, spec.InitialState(), "")
	}
}

// unmet is how many more items can be made of those that requests wait for in states that new ones do not have, beyond those
// that nobody has brought there yet.
func (s *stock) unmet() int {
	state := s.resource.Items.InitialState()
	room, want := s.makeable(state), -s.idleIn(state)
	for _, ln := range s.resource.lines {
		if ln.item != "" || ln.state == state {
			continue
		}
		for w := range ln.ranks.from(firstTurn) {
			if want >= room {
				break
			}
			want += int(w.need)
		}
	}
	return max(0, min(room, want))
}
