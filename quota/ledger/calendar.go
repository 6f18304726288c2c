package ledger

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// calendar are the limits that are scheduled by civil time. There are few, so lists are searched.
type calendar struct {
	*environment
	journal *journal
	forest  *forest
	queue   *waitQueue
	// due has the next instant of each scheduled limit, by civil time.
	due deadlines
	// all are in the order in which they were made; last is the number of the newest that ever was.
	all  []*scheduledLimit
	last uint64
}

// scheduledLimit is one of them. Its place is that of its node, and not the one in the embedded fields.
type scheduledLimit struct {
	quota.ScheduledLimit
	number uint64
	node   *node
	// warned is true after the warning about the end of the first window.
	warned bool
}

// find is the scheduled limit of an id; nil if there is none.
func (c *calendar) find(id string) *scheduledLimit {
	i := slices.IndexFunc(c.all, func(s *scheduledLimit) bool { return s.ID == id })
	if i < 0 {
		return nil
	}
	return c.all[i]
}

// adjustment is what the limit does to one resource; false if that is nothing.
func (s *scheduledLimit) adjustment(resource string) (quota.LimitAdjustment, bool) {
	i, found := slices.BinarySearchFunc(s.Adjustments, resource,
		func(a quota.LimitAdjustment, name string) int { return strings.Compare(a.Resource, name) })
	if !found {
		return quota.LimitAdjustment{}, false
	}
	return s.Adjustments[i], true
}

// info is a copy with the present place.
func (s *scheduledLimit) info() quota.ScheduledLimit {
	is := s.ScheduledLimit
	is.Tree, is.Node = s.node.treeName, s.node.path
	return is
}

// isInForce is true in the first window, as far as the log knows.
func (s *scheduledLimit) isInForce() bool { return s.InForce }

// isInForceAt returns whether a scheduled limit will be in force at an instant of the future.
func isInForceAt(at quota.CivilTime) func(*scheduledLimit) bool {
	return func(s *scheduledLimit) bool {
		return slices.ContainsFunc(s.Windows, func(w quota.CivilWindow) bool { return w.From <= at && at < w.Until })
	}
}

// adjusted is a limit under those scheduled limits of the node that count.
func (n *node) adjusted(r int, limit quota.Limit, counts func(*scheduledLimit) bool) quota.Limit {
	resource := n.tree.resources[r].Name
	var more, less quota.Amount
	most := quota.NoLimit()
	for _, s := range n.scheduled {
		a, is := s.adjustment(resource)
		if !is || !counts(s) {
			continue
		}
		switch a.Kind {
		case quota.SetLimit:
			limit = quota.AtMost(a.Amount)
		case quota.AddToLimit:
			more, less = more.Plus(max(0, a.Amount)), less.Plus(max(0, -a.Amount))
		case quota.CapLimit:
			most = quota.AtMost(min(most.Ceiling(), a.Amount))
		}
	}
	if limit.HasAmount() {
		limit.Amount = max(0, min(quota.MaxAmount, limit.Amount+min(quota.MaxAmount, more)-min(quota.MaxAmount, less)))
	}
	if most.Kind == quota.Limited && limit.Ceiling() > most.Amount {
		return most
	}
	return limit
}

// setsLimit is true if a scheduled limit that counts gives the node a limit of its own.
func (n *node) setsLimit(r int, counts func(*scheduledLimit) bool) bool {
	resource := n.tree.resources[r].Name
	return slices.ContainsFunc(n.scheduled, func(s *scheduledLimit) bool {
		a, is := s.adjustment(resource)
		return is && a.Kind != quota.CapLimit && counts(s)
	})
}

// isAdjusted is true if a scheduled limit of the resource is in force at the node.
func (n *node) isAdjusted(r int) bool {
	if len(n.scheduled) == 0 {
		return false
	}
	resource := n.tree.resources[r].Name
	return slices.ContainsFunc(n.scheduled, func(s *scheduledLimit) bool {
		_, is := s.adjustment(resource)
		return is && s.InForce
	})
}

// limitChangesAt is when a scheduled limit of the resource next begins or ends at the node; 0 if none does.
func (n *node) limitChangesAt(r int) quota.CivilTime {
	var next quota.CivilTime
	for _, s := range n.scheduled {
		if _, is := s.adjustment(n.tree.resources[r].Name); !is || len(s.Windows) == 0 {
			continue
		}
		at := s.Windows[0].From
		if s.InForce {
			at = s.Windows[0].Until
		}
		if next == 0 || at < next {
			next = at
		}
	}
	return next
}

// attach makes a scheduled limit one of its node, without putting it in force.
func (s *scheduledLimit) attach() { s.node.scheduled = append(slices.Clip(s.node.scheduled), s) }

func (s *scheduledLimit) detach() {
	s.node.scheduled = slices.DeleteFunc(slices.Clone(s.node.scheduled),
		func(other *scheduledLimit) bool { return other == s })
}

// add stores a new scheduled limit.
func (c *calendar) add(s *scheduledLimit) {
	c.last++
	s.number = c.last
	s.attach()
	c.all = append(c.all, s)
	c.setDue(s)
}

// remove ends a scheduled limit with all its windows. by is the actor of the event.
func (c *calendar) remove(s *scheduledLimit, by string) {
	c.all = slices.DeleteFunc(slices.Clone(c.all), func(other *scheduledLimit) bool { return other == s })
	c.due.drop(dueKey{dueSchedule, s.number})
	c.forest.markNode(s.node)
	s.detach()
	if s.InForce {
		s.InForce = false
		c.refreshLimits(s)
	}
	c.note(quota.EventLimitEnded, s, by, nil)
}

// nextDue is when something happens to a scheduled limit by itself; 0 for never.
func (s *scheduledLimit) nextDue() quota.CivilTime {
	switch {
	case len(s.Windows) == 0:
		return s.RuleEnds
	case !s.InForce:
		return s.Windows[0].From
	case !s.warned:
		return warningOf(s.Windows[0])
	}
	return s.Windows[0].Until
}

// warningOf is when the warning about the end of a window comes.
func warningOf(w quota.CivilWindow) quota.CivilTime {
	return w.Until - min(quota.MaxWarning, (w.Until-w.From)/2)
}

// setDue sets the deadline of a scheduled limit. A window that began at the beginning of time is due at 1, because 0
// means none.
func (c *calendar) setDue(s *scheduledLimit) {
	c.forest.markNode(s.node)
	at := s.nextDue()
	if len(s.Windows) > 0 {
		at = max(1, at)
	}
	c.due.set(dueKey{dueSchedule, s.number}, quota.Instant(at))
}

// nextDue is what is due first in civil time; false if nothing is.
func (c *calendar) nextDue() (deadline, bool) {
	next, waits := c.due.next()
	return next, waits && quota.CivilTime(next.at) <= c.civil.now
}

// fire carries out what is due of the scheduled limit with a number.
func (c *calendar) fire(number uint64) {
	i, _ := slices.BinarySearchFunc(c.all, number,
		func(s *scheduledLimit, number uint64) int { return cmp.Compare(s.number, number) })
	c.advance(c.all[i])
}

// advance takes a scheduled limit one step further: into its first window, past the warning, or out of the window. A
// window that is over before it was begun is left out. Without windows the rule has ended.
func (c *calendar) advance(s *scheduledLimit) {
	if len(s.Windows) == 0 {
		c.remove(s, quota.Calendar)
		return
	}
	switch w := s.Windows[0]; {
	case s.InForce && !s.warned:
		s.warned = true
		c.note(quota.EventLimitEnding, s, quota.Calendar, c.overAfter(s))
	case s.InForce || w.Until <= c.civil.now:
		c.endWindow(s)
		return
	default:
		s.InForce = true
		c.refreshLimits(s)
		c.note(quota.EventLimitStarted, s, quota.Calendar, nil)
	}
	c.setDue(s)
}

// beginIfDue begins the first window without waiting for an Expire, unless that has something earlier to do: limits
// come into force in the order of their instants, because the policies were asked about no other.
func (c *calendar) beginIfDue(s *scheduledLimit) {
	next, _ := c.due.next()
	if !s.InForce && next.number == s.number && s.nextDue() <= c.civil.now {
		c.advance(s)
	}
}

// endWindow ends the first window. A scheduled limit without a rule ends with its last one.
func (c *calendar) endWindow(s *scheduledLimit) {
	if len(s.Windows) == 1 && !s.recurs(c.civil.now) {
		c.remove(s, quota.Calendar)
		return
	}
	c.note(quota.EventLimitEnded, s, quota.Calendar, nil)
	wasInForce := s.InForce
	s.Windows, s.InForce, s.warned = s.Windows[1:], false, false
	if wasInForce {
		c.refreshLimits(s)
	}
	c.setDue(s)
}

// recurs is true if a rule may have another window after a civil time.
func (s *scheduledLimit) recurs(now quota.CivilTime) bool {
	return s.Rule != "" && (s.RuleEnds == 0 || s.RuleEnds > now)
}

// refreshLimits puts the limits in force that a node has after the begin or the end of a scheduled limit, and retries
// requests that wait there.
func (c *calendar) refreshLimits(s *scheduledLimit) {
	s.eachResource(func(r int) { s.node.swapLimit(r, s.node.limits[r]) })
	c.forest.noteLimits(s.node)
	c.forest.markChanged(s.node.tree)
	c.queue.unblockTree(s.node.tree) // as after a change of limits
}

// eachResource visits the resources of the scheduled limit.
func (s *scheduledLimit) eachResource(visit func(r int)) {
	for _, a := range s.Adjustments {
		if r, found := s.node.tree.findResource(a.Resource); found {
			visit(r)
		}
	}
}

// overAfter lists what would be over its limit at the node, and above it in a cohort, if the window ended now.
func (c *calendar) overAfter(s *scheduledLimit) []quota.Overuse {
	s.InForce = false
	s.eachResource(func(r int) { s.node.swapLimit(r, s.node.limits[r]) })
	var list []quota.Overuse
	for n := s.node; n != nil && (n == s.node || n.pools != nil); n = n.parent {
		for _, o := range n.over() {
			if _, is := s.adjustment(o.Resource); is && !o.IsAdvisory {
				list = append(list, o)
			}
		}
	}
	s.InForce = true
	s.eachResource(func(r int) { s.node.swapLimit(r, s.node.limits[r]) })
	return list[:min(len(list), quota.MaxOver)]
}

// note records an event about the first window.
func (c *calendar) note(kind quota.EventKind, s *scheduledLimit, by string, over []quota.Overuse) {
	is := s.info()
	is.Windows, is.Skipped = is.Windows[:min(1, len(is.Windows))], nil
	c.journal.noteNodeEvent(quota.Event{
		Kind: kind, ID: s.ID, By: by, Scheduled: &quota.ScheduledLimitEvent{Limit: is, Over: over},
	})
}
