package activity

import "time"

// The steps of a series.
const (
	// StepLength is the length of a step. Steps begin at multiples of it on the wall clock.
	StepLength = 5 * time.Minute
	// Steps is the most steps of a series: 24 hours.
	Steps = 288
)

// Bounds limit what a Recorder keeps.
type Bounds struct {
	// Nodes and Resources are how many series there are of each; beyond that the one in which nothing has happened for the
	// longest time is dropped.
	Nodes, Resources int
	// Shown is how many nodes the metrics page shows by themselves, ShownPairs how many resources they have together; each
	// pair of a node and a resource has four series.
	Shown, ShownPairs int
	// States is how many states of the items of one resource are counted separately; the rarest are counted together as
	// [OtherStates].
	States int
	// Amounts is how many resources of a tree have amounts in the series of its nodes, the first by name. AmountBytes is
	// what all amounts of the past may take; beyond that the nodes in which nothing has happened for the longest time lose
	// theirs, and have amounts from then on only.
	Amounts, AmountBytes int
}

// OtherStates is the name under which the rarest states are counted together.
const OtherStates = "(others)"

// DefaultBounds take at most 101 MiB, measured with 5,500 series that change in every step, and AmountBytes.
func DefaultBounds() Bounds {
	return Bounds{
		Nodes: 5_000, Resources: 500, Shown: 1_000, ShownPairs: 2_500, States: 16, Amounts: 8, AmountBytes: 32 << 20,
	}
}

const (
	// sampleEvery is the time between samples, and the greatest age of what a metrics page shows.
	sampleEvery = 10 * time.Second
	// freshFor is how long a sample is good enough for a caller of Series.
	freshFor = time.Second
	// batchPause is the pause before events are read again, so that a busy ledger wakes the recorder ten times a second
	// instead of for every entry.
	batchPause = 100 * time.Millisecond
	// retryAfter is the pause after a failed call of the node.
	retryAfter = 100 * time.Millisecond
	// eventsAtOnce is the most events that are read in one call.
	eventsAtOnce = 1024
	// amountsPerRead is of how many nodes the amounts are read while the ledger is locked.
	amountsPerRead = 500
)
