// Package load runs an operation repeatedly, in a closed loop or at a fixed rate, and measures its latency and
// throughput.
//
//	generator, err := load.New(load.Config{Callers: 64, Warmup: time.Second, Duration: 10 * time.Second})
//	result := generator.Run(ctx, func(ctx context.Context, it *load.Iteration) error {
//		return it.Measure("allocate", 1, func() error { return allocate(ctx, it.Number) })
//	})
//
// In a closed loop each caller begins an iteration when its last one ends, so a stalled system is asked less often and
// the stall is seen by one iteration of each caller. In an open loop iterations have an intended start, and latencies
// are measured from it: an iteration that had to wait because all callers were busy has waited for the system, so
// there is no coordinated omission. Iterations that could not begin before the end are counted as missed.
package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// The bounds of a Config.
const (
	MaxCallers  = 10_000
	MaxRate     = 1e6
	MaxDuration = 24 * time.Hour
)

// DefaultDrain is how long the last iterations may take after the end of the run unless a Config says otherwise.
const DefaultDrain = 30 * time.Second

// Config describes a run.
type Config struct {
	// Callers is the number of concurrent callers of a closed loop, and the most iterations at a time of an open loop:
	// 1 to MaxCallers.
	Callers int
	// Rate is how many iterations an open loop intends to start each second, at equal distances: at most MaxRate. With
	// 0 the loop is closed.
	Rate float64
	// Warmup is how long iterations run before they are measured.
	Warmup time.Duration
	// Duration ends the run this long after the warm-up. Iterations that have begun are finished and counted.
	Duration time.Duration
	// Count ends the run when as many measured iterations have begun. At least one of Duration and Count must be more
	// than 0.
	Count int64
	// Drain is how long iterations may take after the last one has begun; then their contexts end and their operations
	// are errors with code CodeUnfinished. 0 stands for DefaultDrain.
	Drain time.Duration
	// IterationKind is the kind under which whole iterations are measured. If it is empty, only what Measure is given
	// is measured.
	IterationKind string
	// IterationUnits is how many units a whole iteration carries; 0 stands for 1.
	IterationUnits int64
	// ErrorCode returns the code under which an error is counted. Without it all errors are counted under CodeError.
	ErrorCode func(error) string
	// ErrorLimit ends the run after as many failed operations, those of the warm-up included; those that are under
	// way then are finished and counted. With 0 there is no limit.
	ErrorLimit int64
	// OnMeasureStart is called when the warm-up is over, and OnMeasureEnd when the last iteration has ended, so that a
	// caller can read counters of its own at both. OnMeasureEnd is called only after OnMeasureStart.
	OnMeasureStart, OnMeasureEnd func()
}

// Work carries out one iteration. It measures its operations with it.Measure and returns the first error, after which
// the iteration counts as failed. Work is called concurrently, but never twice at a time with the same it.Caller. It
// must return soon after its context has ended.
type Work func(ctx context.Context, it *Iteration) error

func (c Config) check() error {
	switch {
	case c.Callers < 1 || c.Callers > MaxCallers:
		return fmt.Errorf("callers must be between 1 and %d, not %d", MaxCallers, c.Callers)
	case c.Rate < 0 || c.Rate > MaxRate || math.IsNaN(c.Rate):
		return fmt.Errorf("rate must be between 0 and %.0f per second, not %g", MaxRate, c.Rate)
	case c.Warmup < 0 || c.Warmup > MaxDuration:
		return fmt.Errorf("warm-up must be between 0 and %v, not %v", MaxDuration, c.Warmup)
	case c.Duration < 0 || c.Duration > MaxDuration:
		return fmt.Errorf("duration must be between 0 and %v, not %v", MaxDuration, c.Duration)
	case c.Count < 0:
		return fmt.Errorf("count must not be negative: %d", c.Count)
	case c.Duration == 0 && c.Count == 0:
		return errors.New("a run needs a duration or a count")
	case c.Drain < 0 || c.ErrorLimit < 0:
		return errors.New("drain and error limit must not be negative")
	}
	return nil
}
