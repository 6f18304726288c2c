package ledger

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/quota"
)

// allPrincipals returns up to max users or groups of a tree that hold something or are named in a limit, after a name
// and in the order of names. The group [Wildcard] stands for the shared limit. The error is NotFound if the tree does
// not exist.
//
// If name is not empty, only that user or group is returned, and a user with all nodes where a limit for [Wildcard]
// applies to it, whether or not it holds something there. In a list of all, such nodes are left out unless the user
// holds something there or is named there or below. A group then has its members at each node.
func (r Reader) allPrincipals(treeName string, kind quota.HolderKind, name, after string,
	max int,
) (list []quota.PrincipalUsage, more bool, err *quota.Error) {
	t := r.ledger.forest.trees[treeName]
	switch {
	case t == nil:
		return nil, false, quota.Errorf(quota.NotFound, "tree", "there is no tree %q", quota.Clip(treeName))
	case kind != quota.AUser && kind != quota.AGroup:
		return nil, false, quota.Errorf(quota.Invalid, "kind", "ask for users or for groups")
	}
	wanted := func(n string) bool { return n > after && (name == "" || n == name) }
	nodes := t.whereLimited(kind, wanted)
	if kind == quota.AUser && name != "" && name != quota.Wildcard && wanted(name) {
		t.addWildcards(nodes, name)
	}
	t.accounts.addTo(nodes, kind, wanted)
	names := slices.Sorted(maps.Keys(nodes))
	more = len(names) > max
	for _, n := range names[:min(len(names), max)] {
		list = append(list, t.principal(quota.Holder{Kind: kind, Name: n}, nodes[n]))
	}
	if kind == quota.AGroup {
		t.accounts.addUsers(list)
	}
	if kind == quota.AGroup && name != "" && len(list) > 0 {
		t.addMembers(&list[0])
	}
	return list, more, nil
}

// whereLimited maps every wanted user or group that is named in a limit to the nodes with such a limit, and a user to
// the nodes above them with a limit for [Wildcard], which is not a user itself.
func (t *tree) whereLimited(kind quota.HolderKind, wanted func(string) bool) map[string]map[*node]bool {
	nodes := map[string]map[*node]bool{}
	t.root.walk(func(n *node) bool {
		if n.rules == nil {
			return true
		}
		named := n.rules.users
		if kind == quota.AGroup {
			named = n.rules.groups
		}
		for name := range named { // a set does not depend on the order
			if wanted(name) && (kind == quota.AGroup || name != quota.Wildcard) {
				putNode(nodes, name, n)
				addWildcardsAbove(nodes, kind, name, n)
			}
		}
		return true
	})
	return nodes
}

func addWildcardsAbove(nodes map[string]map[*node]bool, kind quota.HolderKind, name string, n *node) {
	if kind != quota.AUser {
		return
	}
	for n = n.parent; n != nil; n = n.parent {
		if n.limitsAnyUser() {
			putNode(nodes, name, n)
		}
	}
}

// addWildcards adds all nodes with a limit for any user.
func (t *tree) addWildcards(nodes map[string]map[*node]bool, name string) {
	t.root.walk(func(n *node) bool {
		if n.limitsAnyUser() {
			putNode(nodes, name, n)
		}
		return true
	})
}

func (n *node) limitsAnyUser() bool { return n.rules != nil && n.rules.anyUser != nil }

// addTo adds the nodes where principals hold something.
func (acc *accounts) addTo(nodes map[string]map[*node]bool, kind quota.HolderKind, wanted func(string) bool) {
	holders := acc.users
	if kind == quota.AGroup {
		holders = acc.groups
	}
	for name, h := range holders { // a set does not depend on the order
		if !wanted(name) {
			continue
		}
		for n := range h.at {
			putNode(nodes, name, n)
		}
	}
}

func putNode(nodes map[string]map[*node]bool, name string, n *node) {
	if nodes[name] == nil {
		nodes[name] = map[*node]bool{}
	}
	nodes[name][n] = true
}

func (t *tree) principal(who quota.Holder, nodes map[*node]bool) quota.PrincipalUsage {
	h := t.accounts.find(who)
	u := quota.PrincipalUsage{Name: who.Name}
	if who.Kind == quota.AUser && h != nil {
		u.Groups = t.accounts.groupsOf(who.Name, h.at[t.root])
	}
	sorted := slices.SortedFunc(maps.Keys(nodes), func(a, b *node) int { return comparePaths(a.path, b.path) })
	for _, n := range sorted {
		u.Nodes = append(u.Nodes, n.principal(who, h))
	}
	return u
}

// addUsers adds to each group of a list the users who hold something that is counted for it.
func (acc *accounts) addUsers(list []quota.PrincipalUsage) {
	users := map[string]map[string]bool{}
	for _, group := range list {
		users[group.Name] = map[string]bool{}
	}
	for key := range acc.tracks { // a set does not depend on the order
		if of := users[key.group]; of != nil {
			of[key.user] = true
		}
	}
	for i := range list {
		list[i].Users = slices.Sorted(maps.Keys(users[list[i].Name]))
	}
}

// groupsOf are the groups of a user's running applications; applications without a group are left out.
func (acc *accounts) groupsOf(user string, all *holding) []quota.Label {
	var list []quota.Label
	for _, application := range all.names() {
		if group, _ := acc.member(quota.Principal{User: user, Application: application}); group != "" {
			list = append(list, quota.Label{Key: application, Value: group})
		}
	}
	return list
}

// names are the names of the running applications, sorted.
func (h *holding) names() []string {
	names := slices.Sorted(maps.Keys(h.runs))
	if len(names) > 0 && names[0] == "" {
		return names[1:]
	}
	return names
}

func (n *node) principal(who quota.Holder, h *holder) quota.PrincipalNode {
	p := quota.PrincipalNode{Path: n.path}
	if h != nil && h.at[n] != nil {
		at := h.at[n]
		p.Applications = at.names()
		for i, r := range n.tree.resources {
			if at.used[i] != 0 {
				p.Used = append(p.Used, quota.Component{Resource: r.Name, Amount: at.used[i]})
			}
		}
	}
	if rule := n.rules.of(who); rule != nil {
		p.Limits, p.MaxApplications = rule.Limits, rule.Applications
		p.Wildcard = who.Kind == quota.AUser && n.rules.users[who.Name] == nil
	}
	return p
}
