package ledger

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/quorate/quorate/quota"
)

// calendarActor is the actor of changes that are made because their time has come.
const calendarActor = "calendar"

// holdViolations are the holds at the homes of the claims and above them, each once.
func (f *forest) holdViolations(claims []placedClaim) []quota.Violation {
	var list []quota.Violation
	for i := range claims {
		for n := claims[i].home(); n != nil; n = n.parent {
			if hold := n.currentHold(); hold != nil && !slices.ContainsFunc(list, n.isHeldIn) {
				list = append(list, n.holdViolation(hold))
			}
		}
	}
	return list
}

// currentHold is the hold of the node; nil if there is none. A node of a draft has that of its predecessor.
func (n *node) currentHold() *HoldImage {
	if n.from != nil {
		return n.from.hold
	}
	return n.hold
}

func (n *node) holdViolation(hold *HoldImage) quota.Violation {
	return quota.Violation{Kind: quota.OfHold, Tree: n.treeName, Node: n.path, Reason: hold.Reason}
}

func (n *node) isHeldIn(v quota.Violation) bool { return v.Tree == n.treeName && v.Node == n.path }

// deniesWaiting is true if one of the holds in the way of a request denies requests that would wait for its end.
func (f *forest) deniesWaiting(violations []quota.Violation) bool {
	return slices.ContainsFunc(violations, func(v quota.Violation) bool {
		return v.Kind == quota.OfHold && f.trees[v.Tree].byPath[v.Node].hold.Deny
	})
}

// holdViolations are the holds at levels whose use a change of a holding would raise, wherever the claims are counted.
// It must be asked before anything is charged.
func (h *holdingChange) holdViolations() []quota.Violation {
	if len(h.ledger.forest.onHold) == 0 {
		return nil
	}
	var claims []placedClaim
	for _, a := range h.records() {
		claims = append(claims, a.claims...)
	}
	before := demandsOf(h.was.claims, (*placedClaim).home)
	var list []quota.Violation
	for _, d := range demandsOf(claims, (*placedClaim).home) {
		if d.node.hold != nil && d.risesFrom(before) {
			list = append(list, d.node.holdViolation(d.node.hold))
		}
	}
	return list
}

// risesFrom is true if the demand asks for more of its node than one of the former demands did, or if none was of it.
func (d *demand) risesFrom(before []demand) bool {
	i := slices.IndexFunc(before, func(b demand) bool { return b.node == d.node })
	return i < 0 || slices.ContainsFunc(d.amounts, func(p placedAmount) bool {
		return p.amount > amountOf(before[i].amounts, p.resource.index)
	})
}

// planHold checks a hold of a node.
func (pl planner) planHold(c quota.HoldNode) plan {
	n, err := pl.forest.configuredNode(c.Tree, c.Node)
	if err == nil {
		err = pl.checkHold(c, n)
	}
	if err != nil {
		return refusedPlan(err)
	}
	hold := &HoldImage{NodeHold: quota.NodeHold{
		Deny: c.Deny, Drain: c.Drain, Grace: c.Grace, Since: pl.now, Actor: c.Meta.Actor, Reason: c.Meta.Reason,
	}}
	if c.For > 0 {
		hold.Until = pl.now.At + quota.Instant(c.For)
	}
	if was := n.hold; was != nil {
		hold.Since = was.Since
		if was.Reason == hold.Reason && was.describe() == hold.describe() {
			return pl.holdPlan(n, was)
		}
	}
	return pl.holdPlan(n, hold)
}

// checkHold refuses a hold that cannot be.
func (pl planner) checkHold(c quota.HoldNode, n *node) *quota.Error {
	switch {
	case c.For < 0 || c.For > quota.MaxHold:
		return quota.Errorf(quota.Invalid, "for_ms",
			"a hold stands for 1 to %d ms, or until the node is resumed if that is left out, not for %d", quota.MaxHold,
			c.For)
	case c.Grace != 0 && !c.Drain:
		return quota.Errorf(quota.Invalid, "grace_ms", "only a drain revokes leases; leave the grace out, or drain")
	case c.Grace < 0 || c.Grace > quota.MaxGrace:
		return quota.Errorf(quota.Invalid, "grace_ms", "leases get 0 to %d ms of grace, not %d", quota.MaxGrace, c.Grace)
	case n.hold == nil && len(pl.forest.onHold) >= quota.MaxHolds:
		return quota.Errorf(quota.Full, "node", "%d nodes are on hold, as many as may be; resume some, or hold a node above",
			quota.MaxHolds)
	}
	return nil
}

// planResume checks the end of a hold.
func (pl planner) planResume(c quota.ResumeNode) plan {
	n, err := pl.forest.configuredNode(c.Tree, c.Node)
	if err != nil {
		return refusedPlan(err)
	}
	return pl.holdPlan(n, nil)
}

// holdPlan gives a node a hold, or with nil takes it away. A hold is not part of the configuration: nothing undoes it
// in a rollback.
func (pl planner) holdPlan(n *node, hold *HoldImage) plan {
	d := differ{tree: n.treeName}
	if n.hold != hold {
		d.add(n.path, "hold", n.hold.describe(), hold.describe())
	}
	if n.hold != nil && hold != nil && n.hold != hold && len(d.changes) == 0 { // another reason
		d.changes = append(d.changes, quota.Change{
			Kind: quota.Changed, Tree: n.treeName, Node: n.path, Field: "hold", Before: n.hold.describe(),
			After: hold.describe(),
		})
	}
	return plan{
		changes: d.changes,
		locate: func(quota.Change) changedNode {
			return changedNode{was: n, above: n.parent, isRoot: n.parent == nil}
		},
		commit: func() {
			pl.setHold(n, hold)
			if hold != nil && hold.Drain {
				pl.drainFrom(n, 0)
			}
			pl.requeueWaiters(map[string]bool{n.treeName: true})
		},
		effects: func() *quota.Effects { return &quota.Effects{} },
	}
}

// describe is the hold in records of changes; empty for none.
func (h *HoldImage) describe() string {
	if h == nil {
		return ""
	}
	text := "queue"
	if h.Deny {
		text = "deny"
	}
	if h.Drain {
		text += ", drain"
		if h.Grace > 0 {
			text += " with a grace of " + spanText(h.Grace)
		}
	}
	if h.Until != 0 {
		text += ", for " + spanText(quota.Span(h.Until-h.Since.At))
	}
	return text
}

// setHold gives a node another hold, or none. Records of holds are never changed in place: snapshots share them.
func (l *Ledger) setHold(n *node, hold *HoldImage) {
	n.hold = hold
	l.forest.markNode(n)
	if hold == nil {
		l.forgetHold(n.id)
		return
	}
	l.forest.onHold[n.id] = n
	l.deadlines.set(dueKey{dueHold, n.id}, hold.Until)
	l.deadlines.set(dueKey{dueDrain, n.id}, hold.DrainAt)
}

func (l *Ledger) forgetHold(node uint64) {
	delete(l.forest.onHold, node)
	l.deadlines.drop(dueKey{dueHold, node})
	l.deadlines.drop(dueKey{dueDrain, node})
}

// updateHolds drops the holds of nodes that a change of the configuration has removed. The change may also have moved
// away what is held at a node that is being drained.
func (l *Ledger) updateHolds() {
	for id, n := range l.forest.onHold {
		if t := l.forest.trees[n.treeName]; t == nil || t.byPath[n.path] != n {
			l.forgetHold(id)
		} else {
			l.forest.drained = append(l.forest.drained, n)
		}
	}
}

// endHold ends a hold whose time is over, as a change of the configuration.
func (l *Ledger) endHold(n *node) {
	pl, changes := planner{l}, l.journal.changes
	pl.install(quota.ChangeMeta{Actor: calendarActor, Reason: n.hold.Reason}, pl.holdPlan(n, nil))
	l.journal.changes = slices.Concat(changes, l.journal.changes)
}

// nodeHold is the hold of the node for readers.
func (n *node) nodeHold() quota.NodeHoldInfo {
	return quota.NodeHoldInfo{Tree: n.treeName, Node: n.path, NodeHold: n.hold.NodeHold}
}

// holdAbove is the nearest hold of the node or of one above it, for readers; nil if there is none.
func (n *node) holdAbove() *quota.NodeHoldInfo {
	for ; n != nil; n = n.parent {
		if n.hold != nil {
			hold := n.nodeHold()
			return &hold
		}
	}
	return nil
}

// Holds are the nodes on hold at a node and below it, or with an empty tree all of them, with what is left there: by
// tree, parents before children, siblings by name. There are at most MaxHolds.
func (v View) Holds(tree, node string) []quota.NodeHoldInfo {
	var list []quota.NodeHoldInfo
	for _, n := range v.ledger.forest.onHold {
		if tree != "" && (n.treeName != tree || !quota.IsWithin(n.path, node)) {
			continue
		}
		hold := n.nodeHold()
		hold.IsUsed, hold.Revoking = n.isUsed(), n.hold.DrainAt != 0
		for i, used := range n.subtree {
			if used > 0 {
				hold.Used = append(hold.Used, quota.Component{Resource: n.tree.resources[i].Name, Amount: used})
			}
		}
		list = append(list, hold)
	}
	slices.SortFunc(list, func(a, b quota.NodeHoldInfo) int {
		return cmp.Or(cmp.Compare(a.Tree, b.Tree), comparePaths(a.Node, b.Node))
	})
	return list
}

// HoldImage is a hold in a snapshot.
type HoldImage struct {
	quota.NodeHold
	// DrainAt is when the next step of the drain is due, 0 if all leases have been revoked. It goes on after the fence
	// DrainAfter.
	DrainAt    quota.Instant
	DrainAfter uint64
}

// addHold restores the hold of a node.
func (ld *Restorer) addHold(n *node, hold *HoldImage) error {
	if hold == nil {
		return nil
	}
	l := ld.ledger
	switch {
	case n.dynamic || len(l.forest.onHold) >= quota.MaxHolds:
		return fmt.Errorf("%s is on hold, but was made on demand, or too many nodes are on hold", n.place())
	case hold.Since.At > l.now.At || hold.DrainAt != 0 && !hold.Drain || hold.DrainAfter > l.allocations.fence:
		return fmt.Errorf("%s is on hold since a future time, or drained in a way that never was", n.place())
	}
	l.setHold(n, hold)
	return nil
}
