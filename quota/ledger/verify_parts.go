package ledger

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/ordmap"
	"github.com/quorate/quorate/quota/policy"
)

// checkStocks verifies that every item is indexed where it belongs (I5).
func (v verifier) checkStocks() error {
	owned, err := v.checkOwners()
	if err != nil {
		return err
	}
	items, held := 0, 0
	for _, t := range v.ledger.forest.trees {
		for _, r := range t.resources {
			if (r.stock != nil) != (r.Unit == quota.Items) || r.stock != nil && r.stock.resource != r {
				return fmt.Errorf("resource %s of tree %s has items that it should not have, or none", r.Name, t.name)
			}
			if r.stock == nil {
				continue
			}
			n, err := v.checkStockOf(r.stock)
			if err != nil {
				return err
			}
			items, held = items+len(r.stock.byName), held+n
		}
	}
	if items != v.ledger.inventory.items.Len() || held != owned || items > v.ledger.bounds.Items {
		return fmt.Errorf("I5: resources have %d items of which %d are held, but %d are known, and allocations list %d",
			items, held, v.ledger.inventory.items.Len(), owned)
	}
	return nil
}

// checkOwners verifies that allocations own the items that they list, and as many as they count.
func (v verifier) checkOwners() (owned int, err error) {
	for fence, a := range v.ledger.allocations.held.All() {
		for i := range a.claims {
			c := &a.claims[i]
			for _, h := range c.heldItems() {
				it := h.is.stock.byName[h.name]
				if it == nil || it.owner != fence || it.stock.tree != c.at.treeName ||
					it.stock.resource.Name != h.resource {
					return 0, fmt.Errorf("I5: allocation %q lists item %s, but does not own it", a.id, h.name)
				}
				owned++
			}
			for _, p := range c.amounts {
				if p.resource.Unit == quota.Items && p.amount != c.countOf(p.resource.Name) {
					return 0, fmt.Errorf("I5: allocation %q counts %d %s, but holds %d", a.id, p.amount,
						p.resource.Name, c.countOf(p.resource.Name))
				}
			}
		}
	}
	return owned, nil
}

// checkStockOf verifies one resource, and returns the number of its held items.
func (v verifier) checkStockOf(s *stock) (held int, err error) {
	if len(s.names) != len(s.byName) {
		return 0, fmt.Errorf("resource %s of tree %s has %d items and %d names", s.resource.Name, s.tree,
			len(s.byName), len(s.names))
	}
	idle, leaving, spec := 0, 0, s.resource.Items
	for i, name := range s.names {
		it := s.byName[name]
		known, _ := v.ledger.inventory.items.Get(it.stateSeq)
		switch {
		case it.name != name || it.stock != s || known != it || i > 0 && s.names[i-1] >= name ||
			it.stateSeq > v.ledger.inventory.lastStateSeq:
			return 0, fmt.Errorf("item %s of resource %s of tree %s is not in its place", name, s.resource.Name, s.tree)
		case it.leaving && it.owner == 0 || !it.leaving && !spec.OnDemand() && !specNamesItem(spec, name):
			return 0, fmt.Errorf("item %s of resource %s of tree %s is not configured, and stays", name,
				s.resource.Name, s.tree)
		}
		if it.leaving {
			leaving++
		}
		if it.owner != 0 {
			held++
			continue
		}
		idle++
		if s.removesIn(it.state) || it.isRetired() && it.expires != (quota.Stamp{}) {
			return 0, fmt.Errorf("item %s of resource %s of tree %s is in state %s, and its lifespan goes on", name,
				s.resource.Name, s.tree, it.state)
		}
		if !s.containsItem(it) {
			return 0, fmt.Errorf("item %s of resource %s of tree %s is not available, although it is not held", name,
				s.resource.Name, s.tree)
		}
	}
	for state, m := range s.idle {
		if idle -= m.Len(); m.Len() == 0 {
			return 0, fmt.Errorf("resource %s of tree %s keeps an empty list for state %s",
				s.resource.Name, s.tree, state)
		}
	}
	if leaving != s.leaving {
		return 0, fmt.Errorf("resource %s of tree %s has %d items that leave, but %d are counted", s.resource.Name, s.tree,
			leaving, s.leaving)
	}
	if idle != 0 || len(s.byName) < spec.Min || spec.OnDemand() && leaving != max(0, s.surplus()) {
		return 0, fmt.Errorf("resource %s of tree %s has %d items of which %d are held, which cannot be",
			s.resource.Name, s.tree, len(s.byName), held)
	}
	return held, nil
}

// containsItem reports whether an item is indexed as idle.
func (s *stock) containsItem(it *item) bool {
	m := s.idle[it.state]
	if m == nil {
		return false
	}
	shelved, _ := m.Get(it.stateSeq)
	return shelved == it
}

// checkAccounts verifies I3: the usage of users and groups, and the running applications, follow from the held claims.
func (v verifier) checkAccounts() error {
	want := map[*tree]*accounts{}
	for _, t := range v.ledger.forest.trees {
		want[t] = &accounts{users: map[string]*holder{}, groups: map[string]*holder{}}
	}
	applications := map[*node]map[memberKey]bool{}
	for _, a := range v.ledger.allocations.held.All() {
		p := a.principal()
		for i := range a.claims {
			c := &a.claims[i]
			if p.User == "" {
				continue
			}
			if c.more == nil || c.more.track == nil ||
				c.home().tree.accounts.tracks[c.more.track.trackKey] != c.more.track {
				return fmt.Errorf("I3: allocation %q of user %s is not on any track", a.id, p.User)
			}
			want[c.home().tree].tally(c, p, applications)
		}
	}
	for t, acc := range want {
		if err := t.accounts.is(acc); err != nil {
			return fmt.Errorf("I3: in tree %s, %w", t.name, err)
		}
		for _, n := range t.byPath {
			if n.applications != len(applications[n]) {
				return fmt.Errorf("I3: %s says that %d applications run, but there are %d", n.place(), n.applications,
					len(applications[n]))
			}
		}
	}
	return nil
}

// tally counts a claim without the incremental indexes.
func (acc *accounts) tally(c *placedClaim, p quota.Principal, applications map[*node]map[memberKey]bool) {
	acc.tallyFor(acc.users, quota.Holder{Kind: quota.AUser, Name: p.User}, c, p.Application)
	if group := c.group(); group != "" {
		acc.tallyFor(acc.groups, quota.Holder{Kind: quota.AGroup, Name: group}, c, p.Application)
	}
	for n := c.home(); n != nil && p.Application != ""; n = n.parent {
		if applications[n] == nil {
			applications[n] = map[memberKey]bool{}
		}
		applications[n][memberKey{p.User, p.Application}] = true
	}
}

func (acc *accounts) tallyFor(list map[string]*holder, who quota.Holder, c *placedClaim, application string) {
	if list[who.Name] == nil {
		list[who.Name] = &holder{Holder: who, at: map[*node]*holding{}}
	}
	h := list[who.Name]
	for n := c.home(); n != nil; n = n.parent {
		if h.at[n] == nil {
			h.at[n] = &holding{used: make([]quota.Amount, len(n.tree.resources)), runs: map[string]*run{}}
		}
		at := h.at[n]
		if at.runs[application] == nil {
			at.runs[application] = &run{}
			if application != "" {
				at.applications++
			}
		}
		at.claims++
		at.runs[application].claims++
		for _, p := range c.amounts {
			at.used[p.resource.index] += p.amount
		}
	}
}

// is compares accounts with those that tally has counted.
func (acc *accounts) is(want *accounts) error {
	if err := sameHolders(acc.users, want.users); err != nil {
		return err
	}
	return sameHolders(acc.groups, want.groups)
}

func sameHolders(have, want map[string]*holder) error {
	if len(have) != len(want) {
		return fmt.Errorf("%d users or groups hold something, but there are accounts of %d", len(want), len(have))
	}
	for name, w := range want {
		h := have[name]
		if h == nil || len(h.at) != len(w.at) {
			return fmt.Errorf("%s has no account, or at other nodes than it holds something", name)
		}
		for n, at := range w.at {
			if err := h.at[n].is(at); err != nil {
				return fmt.Errorf("%s at %s: %w", name, n.place(), err)
			}
		}
	}
	return nil
}

func (h *holding) is(want *holding) error {
	if h == nil || h.claims != want.claims || h.applications != want.applications || len(h.runs) != len(want.runs) {
		return fmt.Errorf("its claims and applications are not those that are held")
	}
	for r := range want.used {
		if h.used[r] != want.used[r] || h.used[r] < 0 {
			return fmt.Errorf("its account says %d of resource %d, but its claims add up to %d", h.used[r],
				r, want.used[r])
		}
	}
	for name, w := range want.runs {
		if r := h.runs[name]; r == nil || r.claims != w.claims {
			return fmt.Errorf("application %q does not have the claims that are held", name)
		}
	}
	return nil
}

// checkBorrowIndexes verifies that exactly the claims of borrowing nodes are indexed, each under its own arrival number
// and in the right bucket.
func (v verifier) checkBorrowIndexes() error {
	benches, homes := map[*node]*borrowIndex{}, map[*node]int{}
	taken := map[uint64]bool{}
	for fence, a := range v.ledger.allocations.held.All() {
		for i := range a.claims {
			c := &a.claims[i]
			if c.home() != c.at {
				homes[c.home()]++
			}
			if c.at.borrows != policy.BorrowSoft {
				if c.arrivalSeq() != 0 || c.home() != c.at {
					return fmt.Errorf(
						"claim %d of %q has a seat or is away from its node at %s, which does not borrow softly", i,
						a.id, c.at.place())
				}
				continue
			}
			if seat := c.arrivalSeq(); seat == 0 || seat > v.ledger.allocations.lastArrivalSeq || taken[seat] {
				return fmt.Errorf("claim %d of %q has seat %d of %d at %s, which is none or another's", i, a.id, seat,
					v.ledger.allocations.lastArrivalSeq, c.at.place())
			}
			taken[c.arrivalSeq()] = true
			if !c.home().borrowsFrom(c.at) {
				return fmt.Errorf("claim %d of %q is counted at %s but cannot borrow there from %s", i, a.id,
					c.at.place(), c.home().place())
			}
			if benches[c.at] == nil {
				benches[c.at] = newBorrowIndex()
			}
			benches[c.at].addClaim(c, claimRef{fence, i})
		}
	}
	var err error
	for _, t := range v.ledger.forest.trees {
		t.root.walk(func(n *node) bool {
			if !n.borrowers.sameAs(benches[n]) || n.homes != homes[n] {
				err = fmt.Errorf(
					"%s says who sits there, or how many of its claims are counted further up, and it is not so",
					n.place())
			}
			return err == nil
		})
	}
	return err
}

// sameAs reports whether two indexes have the same claims in the same groups and buckets. An empty index equals none.
func (b *borrowIndex) sameAs(other *borrowIndex) bool {
	if b == nil || other == nil {
		return b.isEmpty() && other.isEmpty()
	}
	return maps.EqualFunc(b.groups, other.groups, (*priorityGroup).sameAs) &&
		maps.EqualFunc(b.reclaims, other.reclaims, (*reclaimIndex).sameAs)
}

func (b *borrowIndex) isEmpty() bool { return b == nil || len(b.groups)+len(b.reclaims) == 0 }

func (d *priorityGroup) sameAs(other *priorityGroup) bool {
	return slices.Equal(d.holds, other.holds) && haveSameClaims(&d.claims, &other.claims)
}

func (d *reclaimIndex) sameAs(other *reclaimIndex) bool {
	placed := 0
	sound := d.byArrival.IsSound(func(seq uint64, r *bucket) bool {
		placed++
		first, _, found := r.claims.Min()
		return found && first == seq
	})
	return sound && placed == len(d.byAmounts) && maps.EqualFunc(d.byAmounts, other.byAmounts, (*bucket).sameAs)
}

func (r *bucket) sameAs(other *bucket) bool { return haveSameClaims(&r.claims, &other.claims) }

func haveSameClaims(claims, others *ordmap.Small[claimRef]) bool {
	for seq, who := range claims.All() {
		if found, taken := others.Get(seq); !taken || found != who {
			return false
		}
	}
	return claims.Len() == others.Len()
}
