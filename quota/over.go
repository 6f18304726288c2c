package quota

import (
	"cmp"
	"slices"
	"strings"
)

// over lists what a draft holds beyond its limits, at most room of it.
func (s *succession) over(room int) []Overuse {
	switch {
	case s.draft == nil || s.old == nil:
		return nil
	case !s.draft.limitsPrincipals():
		return s.draft.over(room, nil)
	case slices.ContainsFunc(s.changes, Change.restructures):
		s.carryAccounts()
		return s.draft.over(room, s.draft.accounts.over(nil))
	}
	for was, is := range s.next { // each for itself
		is.applications = was.applications
	}
	return s.draft.over(room, s.old.accounts.over(s.next))
}

// over lists what the tree holds beyond its limits, node by node: of resources, of applications, then what holders do.
func (t *tree) over(room int, holders map[*node][]Overuse) []Overuse {
	var list []Overuse
	t.root.walk(func(n *node) bool {
		list = append(list, n.over()...)
		if most, running := n.spec.Applications, Amount(n.applications); most > 0 && running > most {
			list = append(list, Overuse{Tree: n.treeName, Node: n.path, Kind: OfApplications, Limit: most, Used: running})
		}
		list = append(list, holders[n]...)
		return len(list) < room
	})
	return list[:min(len(list), room)]
}

// over lists for every node which users, then groups, by name, hold more there than they may. If next is not nil, the rules
// are those of the nodes that come next, with the same resources. It costs the accounts, not the claims.
func (acc *accounts) over(next map[*node]*node) map[*node][]Overuse {
	lists := map[*node][]Overuse{}
	for _, holders := range []map[string]*holder{acc.users, acc.groups} {
		for _, h := range holders { // sorted below
			for n, at := range h.at {
				if next != nil {
					n = next[n]
				}
				if rule := n.rules.of(h.Holder); rule != nil {
					lists[n] = append(lists[n], at.over(n, rule)...)
				}
			}
		}
	}
	for _, list := range lists {
		slices.SortStableFunc(list, func(a, b Overuse) int {
			return cmp.Or(cmp.Compare(a.Holder.Kind, b.Holder.Kind), strings.Compare(a.Holder.Name, b.Holder.Name))
		})
	}
	return lists
}

// over lists the limits of a rule that a holding is above: by resource, then of applications.
func (h *holding) over(n *node, rule *rule) []Overuse {
	at := Overuse{Tree: n.treeName, Node: n.path, Holder: h.of.Holder}
	var list []Overuse
	for i, r := range n.tree.resources {
		if h.used[i] > rule.most[i] {
			of := at
			of.Resource, of.Limit, of.Used = r.Name, rule.most[i], h.used[i]
			list = append(list, of)
		}
	}
	if rule.Applications > 0 && h.running() > rule.Applications {
		at.Kind, at.Limit, at.Used = OfApplications, rule.Applications, h.running()
		list = append(list, at)
	}
	return list
}

// over lists the limits that the node's usage is above.
func (n *node) over() []Overuse {
	var list []Overuse
	for i, r := range n.tree.resources {
		used := n.subtree[i]
		if over := n.overBy(i, used); over > 0 {
			list = append(list, Overuse{Tree: n.treeName, Node: n.path, Resource: r.Name, Limit: used - over, Used: used})
		}
	}
	return list
}
