package image

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/configure"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// ScheduledImage is one scheduled limit in a snapshot.
type ScheduledImage struct {
	quota.ScheduledLimit
	// Number is its place in the order of all, NodeID the identity of its node.
	Number, NodeID uint64
	// Warned is true after the warning about the end of the first window.
	Warned bool
}

func snapshotOfCalendar(c *state.Calendar) []ScheduledImage {
	list := make([]ScheduledImage, len(c.All))
	for i, s := range c.All {
		list[i] = ScheduledImage{s.Info(), s.Number, s.Node.ID, s.Warned}
	}
	return list
}

// AddScheduled adds one scheduled limit, in the order of their numbers, after the trees.
func (ld *Restorer) AddScheduled(image ScheduledImage) error {
	c, n := &ld.state.Calendar, ld.nodes[image.NodeID]
	if n == nil || n.TreeName != image.Tree || n.Path != image.Node {
		return fmt.Errorf("scheduled limit %q is at a node that does not exist in tree %s", image.ID, image.Tree)
	}
	if k := len(c.All); image.Number == 0 || image.Number > c.Last || k > 0 && c.All[k-1].Number >= image.Number ||
		c.Find(image.ID) != nil {
		return fmt.Errorf("scheduled limit %q is not in order, or there twice", image.ID)
	}
	s := &state.ScheduledLimit{ScheduledLimit: image.ScheduledLimit, Number: image.Number, Node: n, Warned: image.Warned}
	if err := configure.CheckShape(c, &s.ScheduledLimit); err != nil {
		return err
	}
	if err := configure.CheckSkipped(&s.ScheduledLimit); err != nil {
		return err
	}
	c.All = append(c.All, s)
	s.Attach()
	c.SetDue(s)
	if s.InForce {
		s.EachResource(func(r int) { n.SwapLimit(r, n.Limits[r]) })
	}
	return nil
}

// checkCalendar verifies that each scheduled limit is complete, one of its node, and in force or due as it must be.
func (v verifier) checkCalendar() error {
	c, attached := &v.state.Calendar, 0
	for _, t := range v.state.Forest.Trees {
		t.Root.Walk(func(n *state.Node) bool {
			attached += len(n.Scheduled)
			return true
		})
	}
	if len(c.All) > c.Bounds.Scheduled || attached != len(c.All) || c.Due.Order.Len() > len(c.All) {
		return fmt.Errorf("%d limits are scheduled, %d at nodes, %d are due; at most %d are allowed", len(c.All), attached,
			c.Due.Order.Len(), c.Bounds.Scheduled)
	}
	for i, s := range c.All {
		n := s.Node
		switch due := c.Due.ByKey[state.DueKey{Kind: state.DueSchedule, Number: s.Number}]; {
		case i > 0 && c.All[i-1].Number >= s.Number || s.Number > c.Last:
			return fmt.Errorf("scheduled limit %q is not in its place", s.ID)
		case !slices.Contains(n.Scheduled, s) || v.state.Forest.Trees[n.TreeName].ByPath[n.Path] != n || n.Dynamic:
			return fmt.Errorf("scheduled limit %q is not one of %s", s.ID, n.Place())
		case (due == nil) != (len(s.Windows) == 0 && s.RuleEnds == 0) ||
			due != nil && quota.CivilTime(due.At) != max(1, s.NextDue()):
			return fmt.Errorf("scheduled limit %q has another deadline than %d", s.ID, s.NextDue())
		case s.InForce && (len(s.Windows) == 0 || s.Windows[0].From > v.state.Civil.Now) || s.Warned && !s.InForce:
			return fmt.Errorf("scheduled limit %q is in force outside of its windows", s.ID)
		}
		if err := configure.CheckShape(c, &s.ScheduledLimit); err != nil {
			return err
		}
		if err := configure.CheckSkipped(&s.ScheduledLimit); err != nil {
			return err
		}
		for _, a := range s.Adjustments {
			if n.Tree.Resource(a.Resource) == nil {
				return fmt.Errorf("scheduled limit %q is of a resource that tree %s does not have", s.ID, n.TreeName)
			}
		}
	}
	return nil
}
