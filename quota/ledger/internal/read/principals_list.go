package read

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// allPrincipals returns up to max users or groups of a tree that hold something or are named in a limit, after a name
// and in the order of names. The group [quota.Wildcard] stands for the shared limit. The error is NotFound if the tree
// does not exist.
//
// If name is not empty, only that user or group is returned, and a user with all nodes where a limit for
// [quota.Wildcard] applies to it, whether or not it holds something there. In a list of all, such nodes are left out
// unless the user holds something there or is named there or below. A group then has its members at each node.
func (r Reader) allPrincipals(treeName string, kind quota.HolderKind, name, after string,
	max int,
) (list []quota.PrincipalUsage, more bool, err *quota.Error) {
	t := r.state.Forest.Trees[treeName]
	switch {
	case t == nil:
		return nil, false, quota.Errorf(quota.NotFound, "tree", "there is no tree %q", quota.Clip(treeName))
	case kind != quota.AUser && kind != quota.AGroup:
		return nil, false, quota.Errorf(quota.Invalid, "kind", "ask for users or for groups")
	}
	wanted := func(n string) bool { return n > after && (name == "" || n == name) }
	nodes := whereLimited(t, kind, wanted)
	if kind == quota.AUser && name != "" && name != quota.Wildcard && wanted(name) {
		addWildcards(t, nodes, name)
	}
	addAccounts(&t.Accounts, nodes, kind, wanted)
	names := slices.Sorted(maps.Keys(nodes))
	more = len(names) > max
	for _, n := range names[:min(len(names), max)] {
		list = append(list, principalOfTree(t, quota.Holder{Kind: kind, Name: n}, nodes[n]))
	}
	if kind == quota.AGroup {
		addUsers(&t.Accounts, list)
	}
	if kind == quota.AGroup && name != "" && len(list) > 0 {
		addMembers(t, &list[0])
	}
	return list, more, nil
}

// whereLimited maps every wanted user or group that is named in a limit to the nodes with such a limit, and a user to
// the nodes above them with a limit for [quota.Wildcard], which is not a user itself.
func whereLimited(t *state.Tree, kind quota.HolderKind, wanted func(string) bool) map[string]map[*state.Node]bool {
	nodes := map[string]map[*state.Node]bool{}
	t.Root.Walk(func(n *state.Node) bool {
		if n.Rules == nil {
			return true
		}
		named := n.Rules.Users
		if kind == quota.AGroup {
			named = n.Rules.Groups
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

func addWildcardsAbove(nodes map[string]map[*state.Node]bool, kind quota.HolderKind, name string, n *state.Node) {
	if kind != quota.AUser {
		return
	}
	for n = n.Parent; n != nil; n = n.Parent {
		if limitsAnyUser(n) {
			putNode(nodes, name, n)
		}
	}
}

func addWildcards(t *state.Tree, nodes map[string]map[*state.Node]bool, name string) {
	t.Root.Walk(func(n *state.Node) bool {
		if limitsAnyUser(n) {
			putNode(nodes, name, n)
		}
		return true
	})
}

func limitsAnyUser(n *state.Node) bool { return n.Rules != nil && n.Rules.AnyUser != nil }

func addAccounts(
	acc *state.Accounts, nodes map[string]map[*state.Node]bool, kind quota.HolderKind, wanted func(string) bool,
) {
	holders := acc.Users
	if kind == quota.AGroup {
		holders = acc.Groups
	}
	for name, h := range holders { // a set does not depend on the order
		if !wanted(name) {
			continue
		}
		for n := range h.At {
			putNode(nodes, name, n)
		}
	}
}

func putNode(nodes map[string]map[*state.Node]bool, name string, n *state.Node) {
	if nodes[name] == nil {
		nodes[name] = map[*state.Node]bool{}
	}
	nodes[name][n] = true
}

func principalOfTree(t *state.Tree, holder quota.Holder, nodes map[*state.Node]bool) quota.PrincipalUsage {
	h := t.Accounts.Find(holder)
	u := quota.PrincipalUsage{Name: holder.Name}
	if holder.Kind == quota.AUser && h != nil {
		u.Groups = groupsOf(&t.Accounts, holder.Name, h.At[t.Root])
	}
	sorted := slices.SortedFunc(maps.Keys(nodes), func(a, b *state.Node) int { return state.ComparePaths(a.Path, b.Path) })
	for _, n := range sorted {
		u.Nodes = append(u.Nodes, principalAtNode(n, holder, h))
	}
	return u
}

// addUsers adds to each group the users who hold something that is counted for it.
func addUsers(acc *state.Accounts, list []quota.PrincipalUsage) {
	users := map[string]map[string]bool{}
	for _, group := range list {
		users[group.Name] = map[string]bool{}
	}
	for key := range acc.Tracks { // a set does not depend on the order
		if members := users[key.Group]; members != nil {
			members[key.User] = true
		}
	}
	for i := range list {
		list[i].Users = slices.Sorted(maps.Keys(users[list[i].Name]))
	}
}

// groupsOf are the groups of a user's running applications; applications without a group are left out.
func groupsOf(acc *state.Accounts, user string, all *state.Holding) []quota.Label {
	var list []quota.Label
	for _, application := range all.Names() {
		if group, _ := acc.Member(quota.Principal{User: user, Application: application}); group != "" {
			list = append(list, quota.Label{Key: application, Value: group})
		}
	}
	return list
}

func principalAtNode(n *state.Node, holder quota.Holder, h *state.Holder) quota.PrincipalNode {
	p := quota.PrincipalNode{Path: n.Path}
	if h != nil && h.At[n] != nil {
		at := h.At[n]
		p.Applications = at.Names()
		for i, r := range n.Tree.Resources {
			if at.Used[i] != 0 {
				p.Used = append(p.Used, quota.Component{Resource: r.Name, Amount: at.Used[i]})
			}
		}
	}
	if rule := n.Rules.Of(holder); rule != nil {
		p.Limits, p.MaxApplications = rule.Limits, rule.Applications
		p.Wildcard = holder.Kind == quota.AUser && n.Rules.Users[holder.Name] == nil
	}
	return p
}
