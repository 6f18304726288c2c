package configure

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// calendarActor is the actor of changes that are made because their time has come.
const calendarActor = "calendar"

// PlanHold checks a hold of a node.
func (p Planner) PlanHold(c quota.CordonNode) Plan {
	n, err := nodeOfPlace(&p.State.Forest, c.Tree, c.Node)
	if err == nil {
		err = p.checkHold(c, n)
	}
	if err != nil {
		return RefusedPlan(err)
	}
	hold := &state.HoldImage{NodeCordon: quota.NodeCordon{
		Deny: c.Deny, Drain: c.Drain, Grace: c.Grace, Since: p.State.Now, Actor: c.Meta.Actor, Reason: c.Meta.Reason,
	}}
	if c.For > 0 {
		hold.Until = p.State.Now.At + quota.Instant(c.For)
	}
	if previous := n.Hold; previous != nil {
		hold.Since = previous.Since
		if previous.Reason == hold.Reason && describeHold(previous) == describeHold(hold) {
			return p.holdPlan(n, previous)
		}
	}
	return p.holdPlan(n, hold)
}

func (p Planner) checkHold(c quota.CordonNode, n *state.Node) *quota.Error {
	switch {
	case c.For < 0 || c.For > quota.MaxHold:
		return quota.Errorf(quota.Invalid, "for_ms",
			"a hold stands for 1 to %d ms, or until the node is resumed if that is left out, not for %d", quota.MaxHold,
			c.For)
	case c.Grace != 0 && !c.Drain:
		return quota.Errorf(quota.Invalid, "grace_ms", "only a drain revokes leases; leave the grace out, or drain")
	case c.Grace < 0 || c.Grace > quota.MaxGrace:
		return quota.Errorf(quota.Invalid, "grace_ms", "leases get 0 to %d ms of grace, not %d", quota.MaxGrace, c.Grace)
	case n.Hold == nil && len(p.State.Forest.OnHold) >= quota.MaxHolds:
		return quota.Errorf(quota.Full, "node", "%d nodes are on hold, as many as may be; resume some, or hold a node above",
			quota.MaxHolds)
	}
	return nil
}

// PlanResume checks the end of a hold.
func (p Planner) PlanResume(c quota.UncordonNode) Plan {
	n, err := nodeOfPlace(&p.State.Forest, c.Tree, c.Node)
	if err != nil {
		return RefusedPlan(err)
	}
	return p.holdPlan(n, nil)
}

// holdPlan gives a node a hold, or with nil takes it away. A hold is not part of the configuration: nothing undoes it
// in a rollback.
func (p Planner) holdPlan(n *state.Node, hold *state.HoldImage) Plan {
	d := Differ{Tree: n.TreeName}
	if n.Hold != hold {
		d.add(n.Path, "hold", describeHold(n.Hold), describeHold(hold))
	}
	if n.Hold != nil && hold != nil && n.Hold != hold && len(d.Changes) == 0 { // another reason
		d.Changes = append(d.Changes, quota.Change{
			Kind: quota.Changed, Tree: n.TreeName, Node: n.Path, Field: "hold", Before: describeHold(n.Hold),
			After: describeHold(hold),
		})
	}
	return Plan{
		Changes: d.Changes,
		Locate: func(quota.Change) ChangedNode {
			return ChangedNode{Was: n, Above: n.Parent, IsRoot: n.Parent == nil}
		},
		commit: func() {
			admit.SetHold(p.State, n, hold)
			if hold != nil && hold.Drain {
				admit.DrainFrom(p.State, n, 0)
			}
			p.requeueWaiters(map[string]bool{n.TreeName: true})
		},
		Effects: func() *quota.Effects { return &quota.Effects{} },
	}
}

func describeHold(h *state.HoldImage) string {
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
func updateHolds(s *state.State) {
	for id, n := range s.Forest.OnHold {
		if t := s.Forest.Trees[n.TreeName]; t == nil || t.ByPath[n.Path] != n {
			admit.ForgetHold(s, id)
		} else {
			s.Forest.Drained = append(s.Forest.Drained, n)
		}
	}
}

// EndHold ends a hold whose time is over, as a change of the configuration.
func EndHold(s *state.State, n *state.Node) {
	pl, changes := Planner{s}, s.Journal.Changes
	pl.Install(quota.ChangeMeta{Actor: calendarActor, Reason: n.Hold.Reason}, pl.holdPlan(n, nil))
	s.Journal.Changes = slices.Concat(changes, s.Journal.Changes)
}
