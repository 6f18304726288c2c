package state

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// Calendar are the limits that are scheduled by civil time. There are few, so lists are searched.
type Calendar struct {
	*Environment
	Journal *Journal
	forest  *Forest
	queue   *WaitQueue
	// Due has the next instant of each scheduled limit, by civil time.
	Due deadlines
	// All are in the order in which they were made; Last is the number of the newest that ever was.
	All  []*ScheduledLimit
	Last uint64
}

// ScheduledLimit is one of them. Its place is that of its node, and not the one in the embedded fields.
type ScheduledLimit struct {
	quota.ScheduledLimit
	Number uint64
	Node   *Node
	// Warned is true after the warning about the end of the first window.
	Warned bool
}

// Find is the scheduled limit of an id; nil if there is none.
func (c *Calendar) Find(id string) *ScheduledLimit {
	i := slices.IndexFunc(c.All, func(s *ScheduledLimit) bool { return s.ID == id })
	if i < 0 {
		return nil
	}
	return c.All[i]
}

// Adjustment is what the limit does to one resource; false if that is nothing.
func (s *ScheduledLimit) Adjustment(resource string) (quota.LimitAdjustment, bool) {
	i, found := slices.BinarySearchFunc(s.Adjustments, resource,
		func(a quota.LimitAdjustment, name string) int { return strings.Compare(a.Resource, name) })
	if !found {
		return quota.LimitAdjustment{}, false
	}
	return s.Adjustments[i], true
}

// Info is a copy with the present place.
func (s *ScheduledLimit) Info() quota.ScheduledLimit {
	limit := s.ScheduledLimit
	limit.Tree, limit.Node = s.Node.TreeName, s.Node.Path
	return limit
}

// IsInForce is true in the first window, as far as the log knows.
func (s *ScheduledLimit) IsInForce() bool { return s.InForce }

// IsInForceAt returns whether a scheduled limit will be in force at an instant of the future.
func IsInForceAt(at quota.CivilTime) func(*ScheduledLimit) bool {
	return func(s *ScheduledLimit) bool {
		return slices.ContainsFunc(s.Windows, func(w quota.CivilWindow) bool { return w.From <= at && at < w.Until })
	}
}

// Adjusted is a limit under those scheduled limits of the node that count.
func (n *Node) Adjusted(r int, limit quota.Limit, counts func(*ScheduledLimit) bool) quota.Limit {
	resource := n.Tree.Resources[r].Name
	var more, less quota.Amount
	most := quota.NoLimit()
	for _, s := range n.Scheduled {
		a, found := s.Adjustment(resource)
		if !found || !counts(s) {
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

// SetsLimit is true if a scheduled limit that counts gives the node a limit of its own.
func (n *Node) SetsLimit(r int, counts func(*ScheduledLimit) bool) bool {
	resource := n.Tree.Resources[r].Name
	return slices.ContainsFunc(n.Scheduled, func(s *ScheduledLimit) bool {
		a, found := s.Adjustment(resource)
		return found && a.Kind != quota.CapLimit && counts(s)
	})
}

// IsAdjusted is true if a scheduled limit of the resource is in force at the node.
func (n *Node) IsAdjusted(r int) bool {
	if len(n.Scheduled) == 0 {
		return false
	}
	resource := n.Tree.Resources[r].Name
	return slices.ContainsFunc(n.Scheduled, func(s *ScheduledLimit) bool {
		_, found := s.Adjustment(resource)
		return found && s.InForce
	})
}

// limitChangesAt is when a scheduled limit of the resource next begins or ends at the node; 0 if none does.
func (n *Node) limitChangesAt(r int) quota.CivilTime {
	var next quota.CivilTime
	for _, s := range n.Scheduled {
		if _, found := s.Adjustment(n.Tree.Resources[r].Name); !found || len(s.Windows) == 0 {
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

// Attach makes a scheduled limit one of its node, without putting it in force.
func (s *ScheduledLimit) Attach() { s.Node.Scheduled = append(slices.Clip(s.Node.Scheduled), s) }

func (s *ScheduledLimit) Detach() {
	s.Node.Scheduled = slices.DeleteFunc(slices.Clone(s.Node.Scheduled),
		func(other *ScheduledLimit) bool { return other == s })
}

// Add stores a new scheduled limit.
func (c *Calendar) Add(s *ScheduledLimit) {
	c.Last++
	s.Number = c.Last
	s.Attach()
	c.All = append(c.All, s)
	c.SetDue(s)
}

// Remove ends a scheduled limit with all its windows. actor is the actor of the event.
func (c *Calendar) Remove(s *ScheduledLimit, actor string) {
	c.All = slices.DeleteFunc(slices.Clone(c.All), func(other *ScheduledLimit) bool { return other == s })
	c.Due.Drop(DueKey{DueSchedule, s.Number})
	c.forest.MarkNode(s.Node)
	s.Detach()
	if s.InForce {
		s.InForce = false
		c.refreshLimits(s)
	}
	c.Note(quota.EventLimitEnded, s, actor, nil)
}

// NextDue is when something happens to a scheduled limit by itself; 0 for never.
func (s *ScheduledLimit) NextDue() quota.CivilTime {
	switch {
	case len(s.Windows) == 0:
		return s.RuleEnds
	case !s.InForce:
		return s.Windows[0].From
	case !s.Warned:
		return warningOf(s.Windows[0])
	}
	return s.Windows[0].Until
}

// warningOf is when the warning about the end of a window comes.
func warningOf(w quota.CivilWindow) quota.CivilTime {
	return w.Until - min(quota.MaxWarning, (w.Until-w.From)/2)
}

// SetDue sets the deadline of a scheduled limit. A window that began at the beginning of time is due at 1, because 0
// means none.
func (c *Calendar) SetDue(s *ScheduledLimit) {
	c.forest.MarkNode(s.Node)
	at := s.NextDue()
	if len(s.Windows) > 0 {
		at = max(1, at)
	}
	c.Due.Set(DueKey{DueSchedule, s.Number}, quota.Instant(at))
}

// NextDue is what is due first in civil time; false if nothing is.
func (c *Calendar) NextDue() (Deadline, bool) {
	next, waits := c.Due.Next()
	return next, waits && quota.CivilTime(next.At) <= c.Civil.Now
}

// Fire carries out what is due of the scheduled limit with a number.
func (c *Calendar) Fire(number uint64) {
	i, _ := slices.BinarySearchFunc(c.All, number,
		func(s *ScheduledLimit, number uint64) int { return cmp.Compare(s.Number, number) })
	c.advance(c.All[i])
}

// advance takes a scheduled limit one step further: into its first window, past the warning, or out of the window. A
// window that is over before it was begun is left out. Without windows the rule has ended.
func (c *Calendar) advance(s *ScheduledLimit) {
	if len(s.Windows) == 0 {
		c.Remove(s, quota.Calendar)
		return
	}
	switch w := s.Windows[0]; {
	case s.InForce && !s.Warned:
		s.Warned = true
		c.Note(quota.EventLimitEnding, s, quota.Calendar, c.overAfter(s))
	case s.InForce || w.Until <= c.Civil.Now:
		c.endWindow(s)
		return
	default:
		s.InForce = true
		c.refreshLimits(s)
		c.Note(quota.EventLimitStarted, s, quota.Calendar, nil)
	}
	c.SetDue(s)
}

// BeginIfDue begins the first window without waiting for an Expire, unless that has something earlier to do: limits
// come into force in the order of their instants, because the policies were asked about no other.
func (c *Calendar) BeginIfDue(s *ScheduledLimit) {
	next, _ := c.Due.Next()
	if !s.InForce && next.Number == s.Number && s.NextDue() <= c.Civil.Now {
		c.advance(s)
	}
}

// endWindow ends the first window. A scheduled limit without a rule ends with its last one.
func (c *Calendar) endWindow(s *ScheduledLimit) {
	if len(s.Windows) == 1 && !s.Recurs(c.Civil.Now) {
		c.Remove(s, quota.Calendar)
		return
	}
	c.Note(quota.EventLimitEnded, s, quota.Calendar, nil)
	wasInForce := s.InForce
	s.Windows, s.InForce, s.Warned = s.Windows[1:], false, false
	if wasInForce {
		c.refreshLimits(s)
	}
	c.SetDue(s)
}

// Recurs is true if a rule may have another window after a civil time.
func (s *ScheduledLimit) Recurs(now quota.CivilTime) bool {
	return s.Rule != "" && (s.RuleEnds == 0 || s.RuleEnds > now)
}

// refreshLimits also retries requests that wait there.
func (c *Calendar) refreshLimits(s *ScheduledLimit) {
	s.EachResource(func(r int) { s.Node.SwapLimit(r, s.Node.Limits[r]) })
	c.forest.NoteLimits(s.Node)
	c.forest.MarkChanged(s.Node.Tree)
	c.queue.UnblockTree(s.Node.Tree) // as after a change of limits
}

// EachResource visits the resources of the scheduled limit.
func (s *ScheduledLimit) EachResource(visit func(r int)) {
	for _, a := range s.Adjustments {
		if r, found := s.Node.Tree.findResource(a.Resource); found {
			visit(r)
		}
	}
}

// overAfter lists what would be over its limit at the node, and above it in a cohort, if the window ended now.
func (c *Calendar) overAfter(s *ScheduledLimit) []quota.Overuse {
	s.InForce = false
	s.EachResource(func(r int) { s.Node.SwapLimit(r, s.Node.Limits[r]) })
	var list []quota.Overuse
	for n := s.Node; n != nil && (n == s.Node || n.Pools != nil); n = n.Parent {
		for _, o := range n.over() {
			if _, found := s.Adjustment(o.Resource); found && !o.IsAdvisory {
				list = append(list, o)
			}
		}
	}
	s.InForce = true
	s.EachResource(func(r int) { s.Node.SwapLimit(r, s.Node.Limits[r]) })
	return list[:min(len(list), quota.MaxOver)]
}

// Note records an event about the first window.
func (c *Calendar) Note(kind quota.EventKind, s *ScheduledLimit, actor string, over []quota.Overuse) {
	limit := s.Info()
	limit.Windows, limit.Skipped = limit.Windows[:min(1, len(limit.Windows))], nil
	c.Journal.NoteNodeEvent(quota.Event{
		Kind: kind, ID: s.ID, By: actor, Scheduled: &quota.ScheduledLimitEvent{Limit: limit, Over: over},
	})
}
