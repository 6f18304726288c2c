package ledger

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

func (n *node) usage() quota.NodeUsage {
	u := quota.NodeUsage{
		Path: n.path, Policy: n.policy.Name, Resources: make([]quota.ResourceUsage, len(n.tree.resources)),
		Applications: n.applications, MaxApplications: n.spec.Applications,
		Hold: n.holdAbove(), Children: len(n.children),
	}
	for i, r := range n.tree.resources {
		headroom, bounded := n.headroom(i)
		u.Resources[i] = quota.ResourceUsage{
			Resource: r.Resource, Set: n.limits[i], Effective: n.effective(i), ChangesAt: n.limitChangesAt(i),
			Own: n.own[i], Subtree: n.subtree[i],
			Headroom: headroom, Bounded: bounded, Over: n.exceededBy(i),
		}
		if n.pooled() {
			u.Resources[i].Borrowed, u.Resources[i].Lends = n.pools[i].owes(), max(0, n.pools[i].lends())
		}
	}
	return u
}

// headroom is the smallest remainder from the node up to the root, and whether any limit applies. In a cohort, a level
// sees only the part of the remainder below it that may be lent.
func (n *node) headroom(r int) (quota.Amount, bool) {
	least, bounded := quota.MaxAmount, false
	unlent := quota.Amount(0)
	for at := n; at != nil; at = at.parent {
		least = min(least, at.ceilings[r]-at.subtree[r])
		if at.pools == nil {
			unlent = 0
		} else {
			// What is not lent further up does not lower the room there, so it is free even where the cohort owes too much.
			room := max(0, at.pools[r].room()+at.mayOwe(r))
			least = min(least, room.Plus(unlent))
			unlent = unlent.Plus(at.pools[r].unlent())
		}
		bounded = bounded || at.effective(r).Kind == quota.Limited
	}
	return max(0, least), bounded
}

// over lists the exceeded limits: nodes, parents before children, at each its own limits, then those of users and of
// groups by name, then that of applications.
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
				Tree: n.treeName, Node: n.path, Kind: quota.OfApplications, Limit: most,
				Used: quota.Amount(n.applications),
			})
		}
		return len(list) < room
	})
	return list[:min(len(list), room)]
}

// over lists the limits that the usage of the node's subtree exceeds.
func (n *node) over() []quota.Overuse {
	var list []quota.Overuse
	for i, r := range n.tree.resources {
		used := n.subtree[i]
		if over := n.exceededBy(i); over > 0 {
			list = append(list, quota.Overuse{
				Tree: n.treeName, Node: n.path, Resource: r.Name, Limit: used - over, Used: used,
				IsAdvisory: n.effective(i).Kind == quota.Advisory,
			})
		}
	}
	return list
}

// exceededBy is the usage of the subtree beyond its limit for reports. Unlike overBy, which decides, it knows advisory
// limits.
func (n *node) exceededBy(r int) quota.Amount {
	if limit := n.effective(r); limit.Kind == quota.Advisory {
		return max(0, n.subtree[r]-limit.Amount)
	}
	return n.overBy(r, n.subtree[r])
}

// limited maps each node that limits users or groups to their holdings: users before groups, by name.
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

// over lists the limits of its rule that the holding exceeds.
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
				Tree: n.treeName, Node: n.path, Resource: r.Name, Holder: h.of.Holder, Limit: rule.most[i],
				Used: h.used[i],
			})
		}
	}
	if most := rule.Applications; most > 0 && h.running() > most {
		list = append(list, quota.Overuse{
			Tree: n.treeName, Node: n.path, Kind: quota.OfApplications, Holder: h.of.Holder, Limit: most,
			Used: h.running(),
		})
	}
	return list
}
