package image

import (
	"fmt"
	"maps"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/ordmap"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/configure"
	"github.com/quorate/quorate/quota/ledger/internal/state"
	"github.com/quorate/quorate/quota/policy"
)

// checkStocks verifies that every item is indexed where it belongs (I5).
func (v verifier) checkStocks() error {
	owned, err := v.checkOwners()
	if err != nil {
		return err
	}
	items, held := 0, 0
	for _, t := range v.state.Forest.Trees {
		for _, r := range t.Resources {
			if (r.Stock != nil) != (r.Unit == quota.Items) || r.Stock != nil && r.Stock.Resource != r {
				return fmt.Errorf("resource %s of tree %s has items that it should not have, or none", r.Name, t.Name)
			}
			if r.Stock == nil {
				continue
			}
			n, err := v.checkStockOf(r.Stock)
			if err != nil {
				return err
			}
			items, held = items+len(r.Stock.ByName), held+n
		}
	}
	if items != v.state.Inventory.Items.Len() || held != owned || items > v.state.Bounds.Items {
		return fmt.Errorf("I5: resources have %d items of which %d are held, but %d are known, and allocations list %d",
			items, held, v.state.Inventory.Items.Len(), owned)
	}
	return nil
}

func (v verifier) checkOwners() (owned int, err error) {
	for fence, a := range v.state.Allocations.Held.All() {
		for i := range a.Claims {
			c := &a.Claims[i]
			for _, h := range c.HeldItems() {
				it := h.Is.Stock.ByName[h.Name]
				if it == nil || it.Owner != fence || it.Stock.Tree != c.At.TreeName ||
					it.Stock.Resource.Name != h.Resource {
					return 0, fmt.Errorf("I5: allocation %q lists item %s, but does not own it", a.ID(), h.Name)
				}
				owned++
			}
			for _, p := range c.Amounts {
				if p.Resource.Unit == quota.Items && p.Amount != c.CountOf(p.Resource.Name) {
					return 0, fmt.Errorf("I5: allocation %q counts %d %s, but holds %d", a.ID(), p.Amount,
						p.Resource.Name, c.CountOf(p.Resource.Name))
				}
			}
		}
	}
	return owned, nil
}

// checkStockOf returns the number of held items.
func (v verifier) checkStockOf(s *state.Stock) (held int, err error) {
	if len(s.Names) != len(s.ByName) {
		return 0, fmt.Errorf("resource %s of tree %s has %d items and %d names", s.Resource.Name, s.Tree,
			len(s.ByName), len(s.Names))
	}
	idle, leaving, spec := 0, 0, s.Resource.Items
	for i, name := range s.Names {
		it := s.ByName[name]
		known, _ := v.state.Inventory.Items.Get(it.StateSeq)
		switch {
		case it.Name != name || it.Stock != s || known != it || i > 0 && s.Names[i-1] >= name ||
			it.StateSeq > v.state.Inventory.LastStateSeq:
			return 0, fmt.Errorf("item %s of resource %s of tree %s is not in its place", name, s.Resource.Name, s.Tree)
		case it.Leaving && it.Owner == 0 || !it.Leaving && !spec.OnDemand() && !configure.SpecNamesItem(spec, name):
			return 0, fmt.Errorf("item %s of resource %s of tree %s is not configured, and stays", name,
				s.Resource.Name, s.Tree)
		}
		if it.Leaving {
			leaving++
		}
		if it.Owner != 0 {
			held++
			continue
		}
		idle++
		if admit.RemovesIn(s, it.State) || it.IsRetired() && it.Expires != (quota.Stamp{}) {
			return 0, fmt.Errorf("item %s of resource %s of tree %s is in state %s, and its lifespan goes on", name,
				s.Resource.Name, s.Tree, it.State)
		}
		if !containsItem(s, it) {
			return 0, fmt.Errorf("item %s of resource %s of tree %s is not available, although it is not held", name,
				s.Resource.Name, s.Tree)
		}
	}
	for stateName, m := range s.Idle {
		if idle -= m.Len(); m.Len() == 0 {
			return 0, fmt.Errorf("resource %s of tree %s keeps an empty list for state %s",
				s.Resource.Name, s.Tree, stateName)
		}
	}
	if leaving != s.Leaving {
		return 0, fmt.Errorf("resource %s of tree %s has %d items that leave, but %d are counted", s.Resource.Name, s.Tree,
			leaving, s.Leaving)
	}
	if idle != 0 || len(s.ByName) < spec.Min || spec.OnDemand() && leaving != max(0, admit.SurplusOf(s)) {
		return 0, fmt.Errorf("resource %s of tree %s has %d items of which %d are held, which cannot be",
			s.Resource.Name, s.Tree, len(s.ByName), held)
	}
	return held, nil
}

func containsItem(s *state.Stock, it *state.Item) bool {
	m := s.Idle[it.State]
	if m == nil {
		return false
	}
	shelved, _ := m.Get(it.StateSeq)
	return shelved == it
}

// checkAccounts verifies I3: usage of users and groups, and running applications, follow from the held claims.
func (v verifier) checkAccounts() error {
	want := map[*state.Tree]*state.Accounts{}
	for _, t := range v.state.Forest.Trees {
		want[t] = &state.Accounts{Users: map[string]*state.Holder{}, Groups: map[string]*state.Holder{}}
	}
	applications := map[*state.Node]map[state.MemberKey]bool{}
	for _, a := range v.state.Allocations.Held.All() {
		p := a.Principal()
		for i := range a.Claims {
			c := &a.Claims[i]
			if p.User == "" {
				continue
			}
			if c.More == nil || c.More.Track == nil ||
				c.Home().Tree.Accounts.Tracks[c.More.Track.TrackKey] != c.More.Track {
				return fmt.Errorf("I3: allocation %q of user %s is not on any track", a.ID(), p.User)
			}
			tallyClaim(want[c.Home().Tree], c, p, applications)
		}
	}
	for t, acc := range want {
		if err := compareAccounts(&t.Accounts, acc); err != nil {
			return fmt.Errorf("I3: in tree %s, %w", t.Name, err)
		}
		for _, n := range t.ByPath {
			if n.Applications != len(applications[n]) {
				return fmt.Errorf("I3: %s says that %d applications run, but there are %d", n.Place(), n.Applications,
					len(applications[n]))
			}
		}
	}
	return nil
}

func tallyClaim(
	acc *state.Accounts, c *state.PlacedClaim, p quota.Principal, applications map[*state.Node]map[state.MemberKey]bool,
) {
	tallyFor(acc.Users, quota.Holder{Kind: quota.AUser, Name: p.User}, c, p.Application)
	if group := c.Group(); group != "" {
		tallyFor(acc.Groups, quota.Holder{Kind: quota.AGroup, Name: group}, c, p.Application)
	}
	for n := c.Home(); n != nil && p.Application != ""; n = n.Parent {
		if applications[n] == nil {
			applications[n] = map[state.MemberKey]bool{}
		}
		applications[n][state.MemberKey{User: p.User, Application: p.Application}] = true
	}
}

func tallyFor(list map[string]*state.Holder, holder quota.Holder, c *state.PlacedClaim, application string) {
	if list[holder.Name] == nil {
		list[holder.Name] = &state.Holder{Holder: holder, At: map[*state.Node]*state.Holding{}}
	}
	h := list[holder.Name]
	for n := c.Home(); n != nil; n = n.Parent {
		if h.At[n] == nil {
			h.At[n] = &state.Holding{Used: make([]quota.Amount, len(n.Tree.Resources)), Runs: map[string]*state.Run{}}
		}
		at := h.At[n]
		if at.Runs[application] == nil {
			at.Runs[application] = &state.Run{}
			if application != "" {
				at.Applications++
			}
		}
		at.Claims++
		at.Runs[application].Claims++
		for _, p := range c.Amounts {
			at.Used[p.Resource.Index] += p.Amount
		}
	}
}

func compareAccounts(acc, want *state.Accounts) error {
	if err := sameHolders(acc.Users, want.Users); err != nil {
		return err
	}
	return sameHolders(acc.Groups, want.Groups)
}

func sameHolders(have, want map[string]*state.Holder) error {
	if len(have) != len(want) {
		return fmt.Errorf("%d users or groups hold something, but there are accounts of %d", len(want), len(have))
	}
	for name, w := range want {
		h := have[name]
		if h == nil || len(h.At) != len(w.At) {
			return fmt.Errorf("%s has no account, or at other nodes than it holds something", name)
		}
		for n, at := range w.At {
			if err := compareHolding(h.At[n], at); err != nil {
				return fmt.Errorf("%s at %s: %w", name, n.Place(), err)
			}
		}
	}
	return nil
}

func compareHolding(h, want *state.Holding) error {
	if h == nil || h.Claims != want.Claims || h.Applications != want.Applications || len(h.Runs) != len(want.Runs) {
		return fmt.Errorf("its claims and applications are not those that are held")
	}
	for r := range want.Used {
		if h.Used[r] != want.Used[r] || h.Used[r] < 0 {
			return fmt.Errorf("its account says %d of resource %d, but its claims add up to %d", h.Used[r],
				r, want.Used[r])
		}
	}
	for name, w := range want.Runs {
		if r := h.Runs[name]; r == nil || r.Claims != w.Claims {
			return fmt.Errorf("application %q does not have the claims that are held", name)
		}
	}
	return nil
}

// checkBorrowIndexes verifies that exactly the claims of borrowing nodes are indexed, each under its own arrival number
// and in the right bucket.
func (v verifier) checkBorrowIndexes() error {
	benches, homes := map[*state.Node]*state.BorrowIndex{}, map[*state.Node]int{}
	taken := map[uint64]bool{}
	for fence, a := range v.state.Allocations.Held.All() {
		for i := range a.Claims {
			c := &a.Claims[i]
			if c.Home() != c.At {
				homes[c.Home()]++
			}
			if c.At.Borrows != policy.BorrowSoft {
				if c.ArrivalSeq() != 0 || c.Home() != c.At {
					return fmt.Errorf(
						"claim %d of %q has an arrival number or is away from its node at %s, which does not borrow softly", i,
						a.ID(), c.At.Place())
				}
				continue
			}
			if seq := c.ArrivalSeq(); seq == 0 || seq > v.state.Allocations.LastArrivalSeq || taken[seq] {
				return fmt.Errorf("claim %d of %q has arrival number %d of %d at %s, which is none or another's", i, a.ID(), seq,
					v.state.Allocations.LastArrivalSeq, c.At.Place())
			}
			taken[c.ArrivalSeq()] = true
			if !admit.BorrowsFrom(c.Home(), c.At) {
				return fmt.Errorf("claim %d of %q is counted at %s but cannot borrow there from %s", i, a.ID(),
					c.At.Place(), c.Home().Place())
			}
			if benches[c.At] == nil {
				benches[c.At] = state.NewBorrowIndex()
			}
			benches[c.At].AddClaim(c, state.ClaimRef{Fence: fence, Claim: i})
		}
	}
	var err error
	for _, t := range v.state.Forest.Trees {
		t.Root.Walk(func(n *state.Node) bool {
			if !compareBorrowIndex(n.Borrowers, benches[n]) || n.Homes != homes[n] {
				err = fmt.Errorf(
					"%s says who sits there, or how many of its claims are counted further up, and it is not so",
					n.Place())
			}
			return err == nil
		})
	}
	return err
}

// compareBorrowIndex reports whether two indexes have the same claims in the same groups and buckets. An empty index
// equals none.
func compareBorrowIndex(b, other *state.BorrowIndex) bool {
	if b == nil || other == nil {
		return b.IsEmpty() && other.IsEmpty()
	}
	return maps.EqualFunc(b.Groups, other.Groups, compareGroup) &&
		maps.EqualFunc(b.Reclaims, other.Reclaims, compareReclaimIndex)
}

func compareGroup(d, other *state.PriorityGroup) bool {
	return slices.Equal(d.Holds, other.Holds) && haveSameClaims(&d.Claims, &other.Claims)
}

func compareReclaimIndex(d, other *state.ReclaimIndex) bool {
	placed := 0
	sound := d.ByArrival.IsSound(func(seq uint64, r *state.Bucket) bool {
		placed++
		first, _, found := r.Claims.Min()
		return found && first == seq
	})
	return sound && placed == len(d.ByAmounts) && maps.EqualFunc(d.ByAmounts, other.ByAmounts, compareBucket)
}

func compareBucket(r, other *state.Bucket) bool {
	return haveSameClaims(&r.Claims, &other.Claims)
}

func haveSameClaims(claims, others *ordmap.Small[state.ClaimRef]) bool {
	for seq, ref := range claims.All() {
		if found, taken := others.Get(seq); !taken || found != ref {
			return false
		}
	}
	return claims.Len() == others.Len()
}
