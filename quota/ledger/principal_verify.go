package ledger

import (
	"fmt"

	"github.com/quorate/quorate/quota"
)

// checkAccounts verifies I3: what users and groups hold, and which applications run, is what the held claims add up to.
func (v verifier) checkAccounts() error {
	want := map[*tree]*accounts{}
	for _, t := range v.forest.trees {
		want[t] = &accounts{users: map[string]*holder{}, groups: map[string]*holder{}}
	}
	applications := map[*node]map[memberKey]bool{}
	for _, a := range v.allocations.held.All() {
		p := a.principal()
		for i := range a.claims {
			c := &a.claims[i]
			if p.User == "" {
				continue
			}
			if c.more == nil || c.more.track == nil || c.home().tree.accounts.tracks[c.more.track.trackKey] != c.more.track {
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
				return fmt.Errorf("I3: %s says that %d applications run, but there are %d", n.place(), n.applications, len(applications[n]))
			}
		}
	}
	return nil
}

// tally counts a claim the slow way.
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

// is compares with what was counted the slow way.
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
			return fmt.Errorf("its account says %d of resource %d, but its claims add up to %d", h.used[r], r, want.used[r])
		}
	}
	for name, w := range want.runs {
		if r := h.runs[name]; r == nil || r.claims != w.claims {
			return fmt.Errorf("application %q does not have the claims that are held", name)
		}
	}
	return nil
}
