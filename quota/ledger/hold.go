package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// calendarActor is the actor of changes that are made because their time has come.
const calendarActor = "calendar"

// planHold checks a hold of a node.
func (p planner) planHold(c quota.HoldNode) plan {
	n, err := p.ledger.forest.configuredNode(c.Tree, c.Node)
	if err == nil {
		err = p.checkHold(c, n)
	}
	if err != nil {
		return refusedPlan(err)
	}
	hold := &HoldImage{NodeHold: quota.NodeHold{
		Deny: c.Deny, Drain: c.Drain, Grace: c.Grace, Since: p.ledger.now, Actor: c.Meta.Actor, Reason: c.Meta.Reason,
	}}
	if c.For > 0 {
		hold.Until = p.ledger.now.At + quota.Instant(c.For)
	}
	if was := n.hold; was != nil {
		hold.Since = was.Since
		if was.Reason == hold.Reason && was.describe() == hold.describe() {
			return p.holdPlan(n, was)
		}
	}
	return p.holdPlan(n, hold)
}

// checkHold refuses a hold that cannot be.
func (p planner) checkHold(c quota.HoldNode, n *node) *quota.Error {
	switch {
	case c.For < 0 || c.For > quota.MaxHold:
		return quota.Errorf(quota.Invalid, "for_ms",
			"a hold stands for 1 to %d ms, or until the node is resumed if that is left out, not for %d", quota.MaxHold,
			c.For)
	case c.Grace != 0 && !c.Drain:
		return quota.Errorf(quota.Invalid, "grace_ms", "only a drain revokes leases; leave the grace out, or drain")
	case c.Grace < 0 || c.Grace > quota.MaxGrace:
		return quota.Errorf(quota.Invalid, "grace_ms", "leases get 0 to %d ms of grace, not %d", quota.MaxGrace, c.Grace)
	case n.hold == nil && len(p.ledger.forest.onHold) >= quota.MaxHolds:
		return quota.Errorf(quota.Full, "node", "%d nodes are on hold, as many as may be; resume some, or hold a node above",
			quota.MaxHolds)
	}
	return nil
}

// planResume checks the end of a hold.
func (p planner) planResume(c quota.ResumeNode) plan {
	n, err := p.ledger.forest.configuredNode(c.Tree, c.Node)
	if err != nil {
		return refusedPlan(err)
	}
	return p.holdPlan(n, nil)
}

// holdPlan gives a node a hold, or with nil takes it away. A hold is not part of the configuration: nothing undoes it
// in a rollback.
func (p planner) holdPlan(n *node, hold *HoldImage) plan {
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
			p.ledger.setHold(n, hold)
			if hold != nil && hold.Drain {
				p.ledger.drainFrom(n, 0)
			}
			p.requeueWaiters(map[string]bool{n.treeName: true})
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
