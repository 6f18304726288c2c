package admit

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
	"github.com/quorate/quorate/quota/policy"
)

// levelsBefore is the use of the levels that a change of a holding may raise, before the change.
type levelsBefore struct {
	principal quota.Principal
	// list is in the order of the claims, from the claimed node up to the root, each node once.
	list   []level
	byNode map[*state.Node]int
}

type level struct {
	node *state.Node
	// used is the use of the node by resource, owed what it has borrowed in its cohort; nil without one.
	used, owed []quota.Amount
	// applications is the number of running applications.
	applications int
	// holders are the user and its group; none without a user.
	holders []holderLevel
}

type holderLevel struct {
	quota.Holder
	used []quota.Amount // nil if it holds nothing
	runs bool           // the application of the principal
}

func measureLevels(records []*state.Allocation) *levelsBefore {
	b := &levelsBefore{principal: records[0].Principal(), byNode: map[*state.Node]int{}}
	for _, a := range records {
		for i := range a.Claims {
			c := &a.Claims[i]
			for n := c.Home(); n != nil; n = n.Parent {
				if _, known := b.byNode[n]; known {
					break // and so is everything above it
				}
				b.byNode[n] = len(b.list)
				b.list = append(b.list, b.measure(n, c.Group()))
			}
		}
	}
	return b
}

func (b *levelsBefore) measure(n *state.Node, group string) level {
	v := level{node: n, used: slices.Clone(n.Subtree), applications: n.Applications}
	if n.Pools != nil {
		v.owed = make([]quota.Amount, len(n.Subtree))
		for r := range v.owed {
			v.owed[r] = n.Pools[r].Owes()
		}
	}
	if b.principal.User == "" {
		return v
	}
	holders := []quota.Holder{{Kind: quota.AUser, Name: b.principal.User}}
	if group != "" {
		holders = append(holders, quota.Holder{Kind: quota.AGroup, Name: group})
	}
	for _, holder := range holders {
		holding := holdingOf(n, holder)
		h := holderLevel{Holder: holder, runs: holding.Has(b.principal.Application)}
		if holding != nil {
			h.used = slices.Clone(holding.Used)
		}
		v.holders = append(v.holders, h)
	}
	return v
}

// holdingOf is nil if nothing is held.
func holdingOf(n *state.Node, holder quota.Holder) *state.Holding {
	s := Standing{Holder: holder, holder: n.Tree.Accounts.Find(holder)}
	return s.At(n)
}

// isOver is true if a node or one above it has risen beyond its limit.
func (b *levelsBefore) isOver(n *state.Node) bool {
	for ; n != nil; n = n.Parent {
		v := &b.list[b.byNode[n]]
		for r, after := range n.Subtree {
			if after > v.used[r] && after > n.Ceilings[r] {
				return true
			}
		}
	}
	return false
}

// violations are the exceeded limits at levels whose use has risen, and the requests that must not be overtaken there.
func (b *levelsBefore) violations(asker state.Asker) []quota.Violation {
	var list []quota.Violation
	for i := range b.list {
		v := &b.list[i]
		for _, r := range v.node.Tree.Resources {
			list = v.ofNode(list, asker, r)
		}
		for j := range v.holders {
			list = v.ofHolder(list, asker, &v.holders[j], b.principal.Application)
		}
		most := v.node.Spec.Applications
		if v.node.Applications > v.applications && !most.Allows(quota.Amount(v.node.Applications)) {
			list = append(list, quota.Violation{
				Tree: v.node.TreeName, Node: v.node.Path, Kind: quota.OfApplications, Limit: most.Amount,
				Used: quota.Amount(v.applications), Requested: 1,
			})
		}
	}
	return list
}

func (v *level) ofNode(list []quota.Violation, asker state.Asker, r *state.Resource) []quota.Violation {
	n := v.node
	used, after := v.used[r.Index], n.Subtree[r.Index]
	if v.owed != nil {
		// A node may owe more although its use is the same, if a child that lends less than it may has come to use less.
		missing := n.OverBy(r.Index, 0)
		if missing > max(0, v.owed[r.Index]-n.MayOwe(r.Index)) {
			list = append(list, shortageAt(n, r, missing, v.owed[r.Index], used, after-used))
		}
	}
	if after <= used {
		return list
	}
	if after > n.Ceilings[r.Index] {
		list = append(list, quota.Violation{
			Tree: n.TreeName, Node: n.Path, Resource: r.Name, Limit: n.Ceilings[r.Index], Used: used, Requested: after - used,
		})
	}
	if n.Borrows == policy.BorrowSoft {
		return list // its queues were asked before
	}
	return asker.AppendOvertaking(list, n, r)
}

func (v *level) ofHolder(list []quota.Violation, asker state.Asker, h *holderLevel, application string,
) []quota.Violation {
	n, holding := v.node, holdingOf(v.node, h.Holder)
	rule := holding.RuleAt(n, h.Holder)
	for _, r := range n.Tree.Resources {
		used := quota.Amount(0)
		if h.used != nil {
			used = h.used[r.Index]
		}
		after := holding.Uses(r.Index)
		if after <= used {
			continue
		}
		if rule != nil && after > rule.Most[r.Index] {
			list = append(list, quota.Violation{
				Tree: n.TreeName, Node: n.Path, Resource: r.Name, Limit: rule.Most[r.Index], Used: used,
				Requested: after - used, Holder: h.Holder,
			})
		}
		list = asker.OvertakeViolations(list, n.Queues, state.Blocker{Tree: n.Tree, Node: n, Resource: r, Holder: h.Holder})
	}
	if h.runs || !holding.Has(application) || application == "" {
		return list
	}
	if rule != nil && !rule.Applications.Allows(holding.Running()) {
		list = append(list, quota.Violation{
			Tree: n.TreeName, Node: n.Path, Kind: quota.OfApplications, Holder: h.Holder, Limit: rule.Applications.Amount,
			Used: holding.Running() - 1, Requested: 1,
		})
	}
	return asker.OvertakeViolations(list, n.Queues, state.Blocker{Tree: n.Tree, Node: n, Holder: h.Holder})
}
