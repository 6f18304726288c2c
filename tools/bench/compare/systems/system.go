// Package systems runs the systems that tools/bench/compare measures, as processes on this machine, and calls them.
//
// All of them do the same job: allocate one unit of each of two resources at a leaf, within the limits of three nodes,
// and release it again. System is the interface to them; quorate.go, prototype.go, etcd.go and postgres.go implement
// it.
package systems

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Kind is what callers do.
type Kind int

// The kinds.
const (
	// Pairs allocates and releases. An operation is a pair.
	Pairs Kind = iota
	// Reads reads the usage of a leaf, linearizably.
	Reads
	// Empty calls a handler that does nothing.
	Empty
	// Raft replicates entries that the FSM ignores. Its callers are entries in flight.
	Raft
)

// Case is one measurement.
type Case struct {
	// Name is unique among the cases.
	Name string
	Kind Kind
	// Callers is the number of concurrent callers, Batch the number of allocations in one call.
	Callers, Batch int
	// Spread gives each caller a leaf of its own, or a tree of its own where the system has no better.
	Spread bool
	// Follower calls a node that does not lead.
	Follower bool
	// Watchers is the number of streams that are open meanwhile and see nothing of it.
	Watchers int
	// Client calls through the Go client, not through the lean one that all systems share.
	Client bool
}

// Window is the time of a measurement.
type Window struct {
	Warmup, Duration time.Duration
	// Begin is called at the end of the warm-up, and End when the duration is over. Operations count if they end between
	// the two, in which case they may have begun before.
	Begin, End func()
}

// Work is what was done in a window.
type Work struct {
	// Operations is the number of pairs, reads, calls or entries.
	Operations int64
	// Seconds is how long they took.
	Seconds float64
	// P50Ms and P99Ms are of one call, in milliseconds; 0 where single calls are not measured.
	P50Ms, P99Ms float64
}

// System is one of the systems under comparison. Its methods are not safe for concurrent use.
type System interface {
	// Name is unique among the systems.
	Name() string
	// Start starts the processes in an empty folder and prepares the data. Stop must be called after a failure too.
	Start(ctx context.Context, folder string) error
	// Pause makes the system use no CPU until Resume, which waits until it serves again.
	Pause() error
	Resume(ctx context.Context) error
	// Supports reports whether the system can do what a case asks for.
	Supports(c Case) bool
	// Leader returns the index in Processes of the node that leads now.
	Leader(ctx context.Context) (int, error)
	// Processes are the nodes.
	Processes() []*Process
	// Measure does the work of a case.
	Measure(ctx context.Context, c Case, w Window) (Work, error)
	// CheckEmpty returns an error if anything is still held.
	CheckEmpty(ctx context.Context) error
	// Stop ends all processes. It may be called more than once.
	Stop() error
}

// unaryPairs reports whether a case is one that every system can do.
func unaryPairs(c Case) bool {
	return c.Kind == Pairs && c.Batch == 1 && !c.Follower && !c.Client && c.Watchers == 0
}

// Cases are all cases, in the order in which a round measures them.
func Cases() []Case {
	var cases []Case
	add := func(c Case) { cases = append(cases, c) }
	for _, n := range []int{1, 64, 256} {
		add(Case{Name: fmt.Sprintf("empty-%d", n), Kind: Empty, Callers: n, Batch: 1})
	}
	for _, n := range []int{1, 16, 64, 256, 1024} {
		add(Case{Name: fmt.Sprintf("raft-%d", n), Kind: Raft, Callers: n, Batch: 1})
	}
	for _, n := range unaryCallers {
		add(Case{Name: fmt.Sprintf("unary-%d", n), Callers: n, Batch: 1})
	}
	add(Case{Name: "spread-64", Callers: 64, Batch: 1, Spread: true})
	add(Case{Name: "batch-64x1", Callers: 1, Batch: 64})
	add(Case{Name: "batch-512x4", Callers: 4, Batch: 512})
	for _, n := range []int{1, 64, 256} {
		add(Case{Name: fmt.Sprintf("client-%d", n), Callers: n, Batch: 1, Client: true})
	}
	for _, n := range unaryCallers {
		add(Case{Name: fmt.Sprintf("follower-%d", n), Callers: n, Batch: 1, Follower: true})
	}
	add(Case{Name: "reads-64", Kind: Reads, Callers: 64, Batch: 1})
	add(Case{Name: "follower-reads-64", Kind: Reads, Callers: 64, Batch: 1, Follower: true})
	for _, n := range []int{1_000, 10_000} {
		add(Case{Name: fmt.Sprintf("watched-%d", n), Callers: 64, Batch: 1, Watchers: n})
	}
	return slices.Clip(cases)
}

var unaryCallers = []int{1, 16, 64, 256} //nolint:gochecknoglobals // constant
