package state

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

func (n *Node) Usage() quota.NodeUsage {
	u := quota.NodeUsage{
		Path: n.Path, Policy: n.Policy.Name, Resources: make([]quota.ResourceUsage, len(n.Tree.Resources)),
		Applications: n.Applications, MaxApplications: n.Spec.Applications,
		Hold: n.holdAbove(), Children: len(n.Children),
	}
	for i, r := range n.Tree.Resources {
		headroom, bounded := n.Headroom(i)
		u.Resources[i] = quota.ResourceUsage{
			Resource: r.Resource, Set: n.Limits[i], Effective: n.Effective(i), ChangesAt: n.limitChangesAt(i),
			Own: n.Own[i], Subtree: n.Subtree[i],
			Headroom: headroom, Bounded: bounded, Over: n.exceededBy(i),
		}
		if n.Limits[i].Kind == quota.Unset {
			u.Resources[i].HasDefault, u.Resources[i].DefaultAt = n.defaultAbove(r.Name)
		}
		if n.Pooled() {
			u.Resources[i].Borrowed, u.Resources[i].Lends = n.Pools[i].Owes(), max(0, n.Pools[i].Lends())
		}
	}
	return u
}

// defaultAbove is the path of the nearest node above with a default for a resource.
func (n *Node) defaultAbove(resource string) (found bool, path string) {
	for p := n.Parent; p != nil; p = p.Parent {
		if slices.ContainsFunc(p.Spec.Defaults, func(l quota.ResourceLimit) bool { return l.Resource == resource }) {
			return true, p.Path
		}
	}
	return false, ""
}

// Headroom is the smallest remainder from the node up to the root, and whether any limit applies. In a cohort, a level
// sees only the part of the remainder below it that may be lent.
func (n *Node) Headroom(r int) (quota.Amount, bool) {
	least, bounded := quota.MaxAmount, false
	unlent := quota.Amount(0)
	for at := n; at != nil; at = at.Parent {
		least = min(least, at.Ceilings[r]-at.Subtree[r])
		if at.Pools == nil {
			unlent = 0
		} else {
			// What is not lent further up does not lower the room there, so it is free even where the cohort owes too much.
			room := max(0, at.Pools[r].Room()+at.MayOwe(r))
			least = min(least, room.Plus(unlent))
			unlent = unlent.Plus(at.Pools[r].unlent())
		}
		bounded = bounded || at.Effective(r).Kind == quota.Limited
	}
	return max(0, least), bounded
}

// Over lists the exceeded limits: nodes, parents before children, at each its own limits, then those of users and of
// groups by name, then that of applications.
func (t *Tree) Over(room int) []quota.Overuse {
	var list []quota.Overuse
	holdings := t.Accounts.limited()
	t.Root.Walk(func(n *Node) bool {
		list = append(list, n.over()...)
		for _, h := range holdings[n] {
			list = append(list, h.over()...)
		}
		if most := n.Spec.Applications; !most.Allows(quota.Amount(n.Applications)) {
			list = append(list, quota.Overuse{
				Tree: n.TreeName, Node: n.Path, Kind: quota.OfApplications, Limit: most.Amount,
				Used: quota.Amount(n.Applications),
			})
		}
		return len(list) < room
	})
	return list[:min(len(list), room)]
}

func (n *Node) over() []quota.Overuse {
	var list []quota.Overuse
	for i, r := range n.Tree.Resources {
		used := n.Subtree[i]
		if over := n.exceededBy(i); over > 0 {
			list = append(list, quota.Overuse{
				Tree: n.TreeName, Node: n.Path, Resource: r.Name, Limit: used - over, Used: used,
				IsAdvisory: n.Effective(i).Kind == quota.Advisory,
			})
		}
	}
	return list
}

// exceededBy is the usage of the subtree beyond its limit for reports. Unlike OverBy, which decides, it knows advisory
// limits.
func (n *Node) exceededBy(r int) quota.Amount {
	if limit := n.Effective(r); limit.Kind == quota.Advisory {
		return max(0, n.Subtree[r]-limit.Amount)
	}
	return n.OverBy(r, n.Subtree[r])
}

// limited maps each node that limits users or groups to their holdings: users before groups, by name.
func (acc *Accounts) limited() map[*Node][]*Holding {
	at := map[*Node][]*Holding{}
	for _, holders := range []map[string]*Holder{acc.Users, acc.Groups} {
		for _, holder := range holders { // sorted below
			for n, h := range holder.At {
				if n.Rules != nil {
					at[n] = append(at[n], h)
				}
			}
		}
	}
	for _, list := range at {
		slices.SortFunc(list, func(a, b *Holding) int {
			if a.holder.Kind != b.holder.Kind {
				return int(a.holder.Kind) - int(b.holder.Kind)
			}
			return strings.Compare(a.holder.Name, b.holder.Name)
		})
	}
	return at
}

// over lists the limits of the holding's rule that it exceeds.
func (h *Holding) over() []quota.Overuse {
	rule := h.RuleAt(h.Node, h.holder.Holder)
	if rule == nil {
		return nil
	}
	var list []quota.Overuse
	n := h.Node
	for i, r := range n.Tree.Resources {
		if h.Used[i] > rule.Most[i] {
			list = append(list, quota.Overuse{
				Tree: n.TreeName, Node: n.Path, Resource: r.Name, Holder: h.holder.Holder, Limit: rule.Most[i],
				Used: h.Used[i],
			})
		}
	}
	if most := rule.Applications; !most.Allows(h.Running()) {
		list = append(list, quota.Overuse{
			Tree: n.TreeName, Node: n.Path, Kind: quota.OfApplications, Holder: h.holder.Holder, Limit: most.Amount,
			Used: h.Running(),
		})
	}
	return list
}
