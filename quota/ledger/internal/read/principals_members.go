package read

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// memberUse is what one user holds at a node for a group.
type memberUse struct {
	used         []quota.Amount // by resource index
	applications map[string]bool
}

func addMembers(t *state.Tree, group *quota.PrincipalUsage) {
	at := membersOf(t, group.Name)
	for i := range group.Nodes {
		n := &group.Nodes[i]
		members := at[n.Path]
		names := slices.Sorted(maps.Keys(members))
		n.MoreMembers = max(0, len(names)-quota.MaxGroupMembers)
		for _, user := range names[:len(names)-n.MoreMembers] {
			n.Members = append(n.Members, memberOf(t, user, members[user]))
		}
	}
}

// membersOf sums up tracks by path and user. A sum does not depend on the order.
func membersOf(t *state.Tree, group string) map[string]map[string]*memberUse {
	at := map[string]map[string]*memberUse{}
	for key, track := range t.Accounts.Tracks {
		if key.Group != group {
			continue
		}
		for n := key.Home; n != nil; n = n.Parent {
			if at[n.Path] == nil {
				at[n.Path] = map[string]*memberUse{}
			}
			m := at[n.Path][key.User]
			if m == nil {
				m = &memberUse{used: make([]quota.Amount, len(t.Resources)), applications: map[string]bool{}}
				at[n.Path][key.User] = m
			}
			m.add(track)
		}
	}
	return at
}

func (m *memberUse) add(t *state.Track) {
	for _, p := range t.Held {
		m.used[p.Resource.Index] += p.Amount
	}
	if t.Application != "" {
		m.applications[t.Application] = true
	}
}

func memberOf(t *state.Tree, user string, m *memberUse) quota.GroupMember {
	shown := quota.GroupMember{User: user, Applications: slices.Sorted(maps.Keys(m.applications))}
	for i, r := range t.Resources {
		if m.used[i] != 0 {
			shown.Used = append(shown.Used, quota.Component{Resource: r.Name, Amount: m.used[i]})
		}
	}
	return shown
}
