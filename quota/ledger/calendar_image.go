package ledger

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/quota"
)

// ScheduledImage is one scheduled limit in a snapshot.
type ScheduledImage struct {
	quota.ScheduledLimit
	// Number is its place in the order of all, NodeID the identity of its node.
	Number, NodeID uint64
	// Warned is true after the warning about the end of the first window.
	Warned bool
}

func (c *calendar) snapshot() []ScheduledImage {
	list := make([]ScheduledImage, len(c.all))
	for i, s := range c.all {
		list[i] = ScheduledImage{s.info(), s.number, s.node.id, s.warned}
	}
	return list
}

// AddScheduled adds one scheduled limit, in the order of their numbers, after the trees.
func (ld *Restorer) AddScheduled(image ScheduledImage) error {
	c, n := &ld.ledger.calendar, ld.nodes[image.NodeID]
	if n == nil || n.treeName != image.Tree || n.path != image.Node {
		return fmt.Errorf("scheduled limit %q is at a node that does not exist in tree %s", image.ID, image.Tree)
	}
	if k := len(c.all); image.Number == 0 || image.Number > c.last || k > 0 && c.all[k-1].number >= image.Number ||
		c.find(image.ID) != nil {
		return fmt.Errorf("scheduled limit %q is not in order, or there twice", image.ID)
	}
	s := &scheduledLimit{ScheduledLimit: image.ScheduledLimit, number: image.Number, node: n, warned: image.Warned}
	if err := c.checkShape(&s.ScheduledLimit); err != nil {
		return err
	}
	if err := checkSkipped(&s.ScheduledLimit); err != nil {
		return err
	}
	c.all = append(c.all, s)
	s.attach()
	c.setDue(s)
	if s.InForce {
		s.eachResource(func(r int) { n.swapLimit(r, n.limits[r]) })
	}
	return nil
}

// checkCalendar verifies that each scheduled limit is complete, one of its node, and in force or due as it must be.
func (v verifier) checkCalendar() error {
	c, attached := &v.ledger.calendar, 0
	for _, t := range v.ledger.forest.trees {
		t.root.walk(func(n *node) bool {
			attached += len(n.scheduled)
			return true
		})
	}
	if len(c.all) > c.bounds.Scheduled || attached != len(c.all) || c.due.order.Len() > len(c.all) {
		return fmt.Errorf("%d limits are scheduled, %d at nodes, %d are due; at most %d are allowed", len(c.all), attached,
			c.due.order.Len(), c.bounds.Scheduled)
	}
	for i, s := range c.all {
		n := s.node
		switch due := c.due.byKey[dueKey{dueSchedule, s.number}]; {
		case i > 0 && c.all[i-1].number >= s.number || s.number > c.last:
			return fmt.Errorf("scheduled limit %q is not in its place", s.ID)
		case !slices.Contains(n.scheduled, s) || v.ledger.forest.trees[n.treeName].byPath[n.path] != n || n.dynamic:
			return fmt.Errorf("scheduled limit %q is not one of %s", s.ID, n.place())
		case (due == nil) != (len(s.Windows) == 0 && s.RuleEnds == 0) ||
			due != nil && quota.CivilTime(due.at) != max(1, s.nextDue()):
			return fmt.Errorf("scheduled limit %q has another deadline than %d", s.ID, s.nextDue())
		case s.InForce && (len(s.Windows) == 0 || s.Windows[0].From > v.ledger.civil.now) || s.warned && !s.InForce:
			return fmt.Errorf("scheduled limit %q is in force outside of its windows", s.ID)
		}
		if err := c.checkShape(&s.ScheduledLimit); err != nil {
			return err
		}
		if err := checkSkipped(&s.ScheduledLimit); err != nil {
			return err
		}
		for _, a := range s.Adjustments {
			if n.tree.resource(a.Resource) == nil {
				return fmt.Errorf("scheduled limit %q is of a resource that tree %s does not have", s.ID, n.treeName)
			}
		}
	}
	return nil
}
