package activity

import "time"

// The series of one node or resource.
const (
	// StepLength is how long a step lasts. Steps begin at multiples of it on the wall clock.
	StepLength = 5 * time.Minute
	// Steps is how many there are at most: 24 hours.
	Steps = 288
)

// Bounds are the most that a Recorder remembers.
type Bounds struct {
	// Nodes and Resources are how many series there are of each; beyond that the one in which nothing has happened for the
	// longest time is dropped.
	Nodes, Resources int
	// States is how many states of the items of one resource are told apart; the rarest count together as [OtherStates].
	States int
}

// OtherStates is what states are called that are too many to be told apart.
const OtherStates = "(others)"

// DefaultBounds take 101 MiB at the very most, measured with 5,500 series in which something changes in every single
// step.
func DefaultBounds() Bounds { return Bounds{Nodes: 5_000, Resources: 500, States: 16} }

const (
	// sampleEvery is the time between samples, and how old what a metrics page shows may be.
	sampleEvery = 10 * time.Second
	// freshFor is how long a sample is good enough for a caller of Series.
	freshFor = time.Second
	// batchPause is the pause before news are read again, so that a busy ledger wakes the recorder ten times a second and
	// not for every entry.
	batchPause = 100 * time.Millisecond
	// retryAfter is the pause after the node could not be asked.
	retryAfter = 100 * time.Millisecond
	// eventsAtOnce is how many facts are read in one go.
	eventsAtOnce = 1024
)
