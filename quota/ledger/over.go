package ledger

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// over lists the limits of a draft that are exceeded, at most room of them.
func (s *succession) over(room int) []quota.Overuse {
	if s.draft == nil || s.old == nil {
		return nil
	}
	return s.draft.over(room)
}

// over lists the limits that are exceeded: nodes parents before children, at each its own, then those of users and of
// groups by name, then how many applications may run there.
func (t *tree) over(room int) []quota.Overuse {
	var list []quota.Overuse
	holdings := t.accounts.limited()
	t.root.walk(func(n *node) bool {
		list = append(list, n.over()...)
		for _, h := range holdings[n] {
			list = append(list, h.over()...)
		}
		if most := n.spec.Applications; most > 0 && quota.Amount(n.applications) > most {
			list = append(list, quota.Overuse{
				Tree: n.treeName, Node: n.path, Kind: quota.OfApplications, Limit: most, Used: quota.Amount(n.applications),
			})
		}
		return len(list) < room
	})
	return list[:min(len(list), room)]
}

// over lists the limits that the usage of the node's subtree is above.
func (n *node) over() []quota.Overuse {
	var list []quota.Overuse
	for i, r := range n.tree.resources {
		used := n.subtree[i]
		if over := n.overBy(i, used); over > 0 {
			list = append(list, quota.Overuse{Tree: n.treeName, Node: n.path, Resource: r.Name, Limit: used - over, Used: used})
		}
	}
	return list
}

// limited gives the holdings of each node that limits users or groups: users before groups, by name.
func (acc *accounts) limited() map[*node][]*holding {
	at := map[*node][]*holding{}
	for _, holders := range []map[string]*holder{acc.users, acc.groups} {
		for _, who := range holders { // sorted below
			for n, h := range who.at {
				if n.rules != nil {
					at[n] = append(at[n], h)
				}
			}
		}
	}
	for _, list := range at {
		slices.SortFunc(list, func(a, b *holding) int {
			if a.of.Kind != b.of.Kind {
				return int(a.of.Kind) - int(b.of.Kind)
			}
			return strings.Compare(a.of.Name, b.of.Name)
		})
	}
	return at
}

// over lists what the holder holds at the node beyond its rule there.
func (h *holding) over() []quota.Overuse {
	rule := h.ruleAt(h.node, h.of.Holder)
	if rule == nil {
		return nil
	}
	var list []quota.Overuse
	n := h.node
	for i, r := range n.tree.resources {
		if h.used[i] > rule.most[i] {
			list = append(list, quota.Overuse{
				Tree: n.treeName, Node: n.path, Resource: r.Name, Holder: h.of.Holder, Limit: rule.most[i], Used: h.used[i],
			})
		}
	}
	if most := rule.Applications; most > 0 && h.running() > most {
		list = append(list, quota.Overuse{
			Tree: n.treeName, Node: n.path, Kind: quota.OfApplications, Holder: h.of.Holder, Limit: most, Used: h.running(),
		})
	}
	return list
}
