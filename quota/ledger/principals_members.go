package ledger

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/quota"
)

// memberUse is what one user holds at a node for a group.
type memberUse struct {
	used         []quota.Amount // by resource index
	applications map[string]bool
}

// addMembers adds to each node of a group the users who hold something there that is counted for it.
func (t *tree) addMembers(group *quota.PrincipalUsage) {
	at := t.membersOf(group.Name)
	for i := range group.Nodes {
		n := &group.Nodes[i]
		members := at[n.Path]
		names := slices.Sorted(maps.Keys(members))
		n.MoreMembers = max(0, len(names)-quota.MaxGroupMembers)
		for _, user := range names[:len(names)-n.MoreMembers] {
			n.Members = append(n.Members, t.member(user, members[user]))
		}
	}
}

// membersOf sums up the tracks of a group by path and user. A sum does not depend on the order.
func (t *tree) membersOf(group string) map[string]map[string]*memberUse {
	at := map[string]map[string]*memberUse{}
	for key, of := range t.accounts.tracks {
		if key.group != group {
			continue
		}
		for n := key.home; n != nil; n = n.parent {
			if at[n.path] == nil {
				at[n.path] = map[string]*memberUse{}
			}
			m := at[n.path][key.user]
			if m == nil {
				m = &memberUse{used: make([]quota.Amount, len(t.resources)), applications: map[string]bool{}}
				at[n.path][key.user] = m
			}
			m.add(of)
		}
	}
	return at
}

func (m *memberUse) add(t *track) {
	for _, p := range t.held {
		m.used[p.resource.index] += p.amount
	}
	if t.application != "" {
		m.applications[t.application] = true
	}
}

func (t *tree) member(user string, m *memberUse) quota.GroupMember {
	shown := quota.GroupMember{User: user, Applications: slices.Sorted(maps.Keys(m.applications))}
	for i, r := range t.resources {
		if m.used[i] != 0 {
			shown.Used = append(shown.Used, quota.Component{Resource: r.Name, Amount: m.used[i]})
		}
	}
	return shown
}
