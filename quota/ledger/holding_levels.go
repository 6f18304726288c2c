package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// levelsBefore is the use of the levels that a change of a holding may raise, before the change.
type levelsBefore struct {
	principal quota.Principal
	// list is in the order of the claims, from the claimed node up to the root, each node once.
	list   []level
	byNode map[*node]int
}

// level is the use at one node.
type level struct {
	node *node
	// used is the use of the node by resource, owed what it has borrowed in its cohort; nil without one.
	used, owed []quota.Amount
	// applications is the number of running applications.
	applications int
	// holders are the user and its group; none without a user.
	holders []holderLevel
}

// holderLevel is the use of a user or group at a node.
type holderLevel struct {
	quota.Holder
	used []quota.Amount // nil if it holds nothing
	runs bool           // the application of the principal
}

// measureLevels notes the use of every level of some records of one principal.
func (l *Ledger) measureLevels(records []*Allocation) *levelsBefore {
	b := &levelsBefore{principal: records[0].principal(), byNode: map[*node]int{}}
	for _, a := range records {
		for i := range a.claims {
			c := &a.claims[i]
			for n := c.home(); n != nil; n = n.parent {
				if _, known := b.byNode[n]; known {
					break // and so is everything above it
				}
				b.byNode[n] = len(b.list)
				b.list = append(b.list, b.measure(n, c.group()))
			}
		}
	}
	return b
}

func (b *levelsBefore) measure(n *node, group string) level {
	v := level{node: n, used: slices.Clone(n.subtree), applications: n.applications}
	if n.pools != nil {
		v.owed = make([]quota.Amount, len(n.subtree))
		for r := range v.owed {
			v.owed[r] = n.pools[r].owes()
		}
	}
	if b.principal.User == "" {
		return v
	}
	holders := []quota.Holder{{Kind: quota.AUser, Name: b.principal.User}}
	if group != "" {
		holders = append(holders, quota.Holder{Kind: quota.AGroup, Name: group})
	}
	for _, who := range holders {
		is := n.holdingOf(who)
		h := holderLevel{Holder: who, runs: is.has(b.principal.Application)}
		if is != nil {
			h.used = slices.Clone(is.used)
		}
		v.holders = append(v.holders, h)
	}
	return v
}

// holdingOf is what a user or group holds in the subtree of a node; nil if it holds nothing.
func (n *node) holdingOf(who quota.Holder) *holding {
	s := standing{Holder: who, of: n.tree.accounts.find(who)}
	return s.at(n)
}

// isOver is true if a node or one above it has risen beyond its limit.
func (b *levelsBefore) isOver(n *node) bool {
	for ; n != nil; n = n.parent {
		v := &b.list[b.byNode[n]]
		for r, after := range n.subtree {
			if after > v.used[r] && after > n.ceilings[r] {
				return true
			}
		}
	}
	return false
}

// violations are the limits that are exceeded at levels whose use has risen, and the requests that must not be
// overtaken there. In a tree under maintenance no limit applies.
func (b *levelsBefore) violations(by asker) []quota.Violation {
	var list []quota.Violation
	for i := range b.list {
		v := &b.list[i]
		if v.node.tree.settings.Maintenance {
			continue
		}
		for _, r := range v.node.tree.resources {
			list = v.ofNode(list, by, r)
		}
		for j := range v.holders {
			list = v.ofHolder(list, by, &v.holders[j], b.principal.Application)
		}
		if most := v.node.spec.Applications; most > 0 && v.node.applications > v.applications &&
			quota.Amount(v.node.applications) > most {
			list = append(list, quota.Violation{
				Tree: v.node.treeName, Node: v.node.path, Kind: quota.OfApplications, Limit: most,
				Used: quota.Amount(v.applications), Requested: 1,
			})
		}
	}
	return list
}

// ofNode appends the violations of one resource of the node itself.
func (v *level) ofNode(list []quota.Violation, by asker, r *resource) []quota.Violation {
	n := v.node
	used, after := v.used[r.index], n.subtree[r.index]
	if v.owed != nil {
		// A node may owe more although its use is the same, if a child that lends less than it may has come to use less.
		missing := n.overBy(r.index, 0)
		if missing > max(0, v.owed[r.index]-n.mayOwe(r.index)) {
			list = append(list, n.shortage(r, missing, v.owed[r.index], used, after-used))
		}
	}
	if after <= used {
		return list
	}
	if after > n.ceilings[r.index] {
		list = append(list, quota.Violation{
			Tree: n.treeName, Node: n.path, Resource: r.Name, Limit: n.ceilings[r.index], Used: used, Requested: after - used,
		})
	}
	if n.borrows == policy.BorrowSoft {
		return list // its queues were asked before
	}
	return by.appendOvertaking(list, n, r)
}

// ofHolder appends the violations of the limits of a user or group.
func (v *level) ofHolder(list []quota.Violation, by asker, h *holderLevel, application string) []quota.Violation {
	n, is := v.node, v.node.holdingOf(h.Holder)
	rule := is.ruleAt(n, h.Holder)
	for _, r := range n.tree.resources {
		used := quota.Amount(0)
		if h.used != nil {
			used = h.used[r.index]
		}
		after := is.uses(r.index)
		if after <= used {
			continue
		}
		if rule != nil && after > rule.most[r.index] {
			list = append(list, quota.Violation{
				Tree: n.treeName, Node: n.path, Resource: r.Name, Limit: rule.most[r.index], Used: used,
				Requested: after - used, Holder: h.Holder,
			})
		}
		list = by.overtakeViolations(list, n.queues, blocker{tree: n.tree, node: n, resource: r, holder: h.Holder})
	}
	if h.runs || !is.has(application) || application == "" {
		return list
	}
	if rule != nil && rule.Applications > 0 && is.running() > rule.Applications {
		list = append(list, quota.Violation{
			Tree: n.treeName, Node: n.path, Kind: quota.OfApplications, Holder: h.Holder, Limit: rule.Applications,
			Used: is.running() - 1, Requested: 1,
		})
	}
	return by.overtakeViolations(list, n.queues, blocker{tree: n.tree, node: n, holder: h.Holder})
}
