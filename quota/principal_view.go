package quota

import (
	"maps"
	"slices"
)

// Principals shows up to max users or groups of a tree after a name: whoever holds something or is named in a limit, in
// the order of their names; of one name only, if that is not empty. The common pot is the group [Wildcard]. NotFound names
// a tree that does not exist.
func (v View) Principals(treeName string, kind HolderKind, name, after string, max int) (list []PrincipalUsage, more bool, err *Error) {
	t := v.ledger.trees[treeName]
	switch {
	case t == nil:
		return nil, false, refuse(NotFound, "tree", "there is no tree %q", clip(treeName))
	case kind != AUser && kind != AGroup:
		return nil, false, refuse(Invalid, "kind", "ask for users or for groups")
	}
	wanted := func(n string) bool { return n > after && (name == "" || n == name) }
	nodes := t.whereLimited(kind, wanted)
	t.accounts.addTo(nodes, kind, wanted)
	names := slices.Sorted(maps.Keys(nodes))
	more = len(names) > max
	for _, n := range names[:min(len(names), max)] {
		list = append(list, t.principal(Holder{kind, n}, nodes[n]))
	}
	return list, more, nil
}

// whereLimited has for every wanted user or group that is named in a limit the nodes where it is. The user [Wildcard] is
// nobody.
func (t *tree) whereLimited(kind HolderKind, wanted func(string) bool) map[string]map[*node]bool {
	nodes := map[string]map[*node]bool{}
	t.root.walk(func(n *node) bool {
		if n.rules == nil {
			return true
		}
		named := n.rules.users
		if kind == AGroup {
			named = n.rules.groups
		}
		for name := range named { // into sets, in whatever order
			if wanted(name) && (kind == AGroup || name != Wildcard) {
				put(nodes, name, n)
			}
		}
		return true
	})
	return nodes
}

// addTo adds the nodes where something is held.
func (acc *accounts) addTo(nodes map[string]map[*node]bool, kind HolderKind, wanted func(string) bool) {
	holders := acc.users
	if kind == AGroup {
		holders = acc.groups
	}
	for name, h := range holders { // into sets, in whatever order
		if !wanted(name) {
			continue
		}
		for n := range h.at {
			put(nodes, name, n)
		}
	}
}

func put(nodes map[string]map[*node]bool, name string, n *node) {
	if nodes[name] == nil {
		nodes[name] = map[*node]bool{}
	}
	nodes[name][n] = true
}

func (t *tree) principal(who Holder, nodes map[*node]bool) PrincipalUsage {
	h := t.accounts.find(who)
	u := PrincipalUsage{Name: who.Name}
	if who.Kind == AUser && h != nil {
		u.Groups = t.accounts.groupsOf(who.Name, h.at[t.root])
	}
	sorted := slices.SortedFunc(maps.Keys(nodes), func(a, b *node) int { return comparePaths(a.path, b.path) })
	for _, n := range sorted {
		u.Nodes = append(u.Nodes, n.principal(who, h))
	}
	return u
}

// groupsOf are the groups of a user's running applications; those without one are left out.
func (acc *accounts) groupsOf(user string, all *holding) []Label {
	var list []Label
	for _, application := range all.names() {
		if group, _ := acc.member(Principal{User: user, Application: application}); group != "" {
			list = append(list, Label{Key: application, Value: group})
		}
	}
	return list
}

// names are those of the running applications, sorted.
func (h *holding) names() []string {
	names := slices.Sorted(maps.Keys(h.runs))
	if len(names) > 0 && names[0] == "" {
		return names[1:]
	}
	return names
}

func (n *node) principal(who Holder, h *holder) PrincipalNode {
	p := PrincipalNode{Path: n.path}
	if h != nil && h.at[n] != nil {
		at := h.at[n]
		p.Applications = at.names()
		for i, r := range n.tree.resources {
			if at.used[i] != 0 {
				p.Used = append(p.Used, Component{Resource: r.Name, Amount: at.used[i]})
			}
		}
	}
	if rule := n.rules.of(who); rule != nil {
		p.Limits, p.MaxApplications = rule.Limits, rule.Applications
		p.Wildcard = who.Kind == AUser && n.rules.users[who.Name] == nil
	}
	return p
}
