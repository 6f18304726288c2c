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
}

// counts are the numbers of a step. They are small because there are many steps.
type counts struct {
	held, waiting, granted, released, lost uint32
	// longest is in milliseconds, like all spans; no request waits for 49 days.
	longest uint32
}

func (c counts) carryOver() counts { return counts{held: c.held, waiting: c.waiting} }

// addChange adds the counts of an event.
func (c *counts) addChange(change counts) {
	c.granted += change.granted
	c.released += change.released
	c.lost += change.lost
	c.longest = max(c.longest, change.longest)
}

// states count items by state. A slice is replaced, never changed.
type states []quota.NamedCount

func (s states) carryOver() states { return s }

// series are the steps of a node or a resource.
type series struct {
	key    Key
	begun  stepNumber
	counts changeLog[counts]
	states changeLog[states]
	// sample is the number of the last sample that had counts for the series, which are held and waiting.
	sample        uint64
	held, waiting uint32
}

// stepCounts returns the counts of step n for the caller to change.
func (s *series) stepCounts(n stepNumber) *counts {
	s.begun = min(s.begun, n) // the clock may have been set back
	return s.counts.entryAt(n)
}

// setLevels sets how many claims are held and wait. It adds an entry only if these change.
func (s *series) setLevels(n stepNumber, held, waiting uint32) {
	if last := s.counts.lastValue(); last.held != held || last.waiting != waiting {
		now := s.stepCounts(n)
		now.held, now.waiting = held, waiting
	}
}

// setStates does the same for the states of items.
func (s *series) setStates(n stepNumber, now states) {
	if !slices.Equal(s.states.lastValue(), now) {
		*s.states.entryAt(n) = now
	}
}

// listSteps returns the steps up to step to, the oldest first.
func (s *series) listSteps(to stepNumber) []Step {
	from := min(to, max(s.begun, to.firstShown()))
	list, states := make([]Step, 0, to-from+1), s.states.valuesBetween(from, to)
	for i, c := range s.counts.valuesBetween(from, to) {
		list = append(list, Step{
			From:    (from + stepNumber(i)).startTime(),
			Held:    int(c.held),
			Waiting: int(c.waiting),
			Granted: int(
				c.granted,
			),
			Released:    int(c.released),
			Lost:        int(c.lost),
			LongestWait: quota.Span(c.longest),
			States:      states[i],
		})
	}
	return list
}
