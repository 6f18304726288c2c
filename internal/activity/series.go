package activity

import (
	"slices"
	"time"

	"github.com/quorate/quorate/quota"
)

// Key names a series: a node of a tree, or one of its itemized resources; then Node is empty.
type Key struct{ Tree, Node, Resource string }

// Step is five minutes of a series. It counts claims: an allocation with several claims in the subtree of a node counts
// several times.
type Step struct {
	From time.Time
	// Held and Waiting are the counts of the last sample in the step.
	Held, Waiting int
	// Granted, Released and Lost count events in the step; claims are lost if they expired or were preempted.
	Granted, Released, Lost int
	// LongestWait is the longest wait of the claims that were granted from the queue in the step.
	LongestWait quota.Span
	// States count items, as of the last sample in the step, by name.
	States []quota.NamedCount
	// Amounts are those of a node, as of the last sample in the step, by resource: of the first Bounds.Amounts resources
	// of the tree. There are none of a time at which the node did not exist.
	Amounts []Amount
}

// counts are the numbers of a step. They are small because there are many steps.
type counts struct {
	held, waiting, granted, released, lost uint32
	// longest is in milliseconds, like all spans; no request waits for 49 days.
	longest uint32
}

func (c counts) carryOver() counts { return counts{held: c.held, waiting: c.waiting} }

func (c *counts) addChange(change counts) {
	c.granted += change.granted
	c.released += change.released
	c.lost += change.lost
	c.longest = max(c.longest, change.longest)
}

// states count items by state. A slice is replaced, never changed.
type states []quota.NamedCount

func (s states) carryOver() states { return s }

type series struct {
	key    Key
	begun  stepNumber
	counts changeLog[counts]
	states changeLog[states]
	// amounts has a log for each resource of which something is recorded, by name.
	amounts []*amountLog
	// sample is the number of the last sample that had levels for the series.
	sample uint64
	levels levels
}

type levels struct {
	held, waiting uint32
	// asked is what waiting requests ask for.
	asked quota.Vector
}

// add expects a resource at most once in asked.
func (l *levels) add(part levels) {
	l.held += part.held
	l.waiting += part.waiting
	for _, c := range part.asked {
		i := slices.IndexFunc(l.asked, func(a quota.Component) bool { return a.Resource == c.Resource })
		if i < 0 {
			l.asked = append(l.asked, c)
			continue
		}
		l.asked[i].Amount = l.asked[i].Amount.Plus(c.Amount)
	}
}

func (l *levels) askedOf(resource string) quota.Amount {
	for _, c := range l.asked {
		if c.Resource == resource {
			return c.Amount
		}
	}
	return 0
}

// stepCounts may be changed by the caller.
func (s *series) stepCounts(n stepNumber) *counts {
	s.begun = min(s.begun, n) // the clock may have been set back
	return s.counts.entryAt(n)
}

// setLevels adds an entry only if something changes.
func (s *series) setLevels(n stepNumber) {
	if last := s.counts.lastValue(); last.held != s.levels.held || last.waiting != s.levels.waiting {
		now := s.stepCounts(n)
		now.held, now.waiting = s.levels.held, s.levels.waiting
	}
}

// setStates adds an entry only if something changes.
func (s *series) setStates(n stepNumber, now states) {
	if !slices.Equal(s.states.lastValue(), now) {
		*s.states.entryAt(n) = now
	}
}

// listSteps lists the oldest first.
func (s *series) listSteps(to stepNumber, most int) []Step {
	from := min(to, max(s.begun, to-min(to, stepNumber(most)-1)))
	list, states := make([]Step, 0, to-from+1), s.states.valuesBetween(from, to)
	for i, c := range s.counts.valuesBetween(from, to) {
		list = append(list, Step{
			From: (from + stepNumber(i)).startTime(),
			Held: int(c.held), Waiting: int(c.waiting),
			Granted: int(c.granted), Released: int(c.released), Lost: int(c.lost),
			LongestWait: quota.Span(c.longest),
			States:      states[i],
		})
	}
	for _, log := range s.amounts {
		log.addTo(list, from)
	}
	return list
}
