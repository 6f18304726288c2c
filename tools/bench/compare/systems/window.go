package systems

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/quorate/quorate/internal/load"
)

// callKind is the kind of all operations that are given to internal/load.
const callKind = "call"

// callers makes the work of one caller, which may keep state of its own.
type callers func(caller int) callerWork

// callerWork does one iteration. The number of the iteration is unique in a window.
type callerWork func(ctx context.Context, it *iteration) error

type iteration struct {
	*load.Iteration
	counter *counter
}

// counter counts what ends while its window is open. Where callers are slow because they contend, most operations of a
// short window begin before it: to count only those that begin in the window would understate such systems by far. A
// window in which nothing ended stays open until the first operation ends, so that a slow system has a figure too.
type counter struct {
	window Window
	opened time.Time

	mu    sync.Mutex
	ended int64
	// isDue says that the duration of the window is over, isClosed that the window is.
	isDue, isClosed bool
	span            time.Duration
}

// open begins the window, which closes at its end.
func (c *counter) open() {
	c.window.Begin()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opened = time.Now()
	time.AfterFunc(c.window.Duration, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.isDue = true
		if c.ended > 0 {
			c.close()
		}
	})
}

func (c *counter) add(operations int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opened.IsZero() || c.isClosed || operations == 0 {
		return
	}
	c.ended += int64(operations)
	if c.isDue {
		c.close()
	}
}

// finish closes a window that is open although all callers have ended.
func (c *counter) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.opened.IsZero() {
		c.close()
	}
}

func (c *counter) close() {
	if c.isClosed {
		return
	}
	c.isClosed = true
	c.span = time.Since(c.opened)
	c.window.End()
}

// call measures a call after which as many operations are complete, which may be 0.
func (it *iteration) call(operations int, do func() error) error {
	if err := it.Measure(callKind, int64(operations), do); err != nil {
		return err
	}
	it.counter.add(operations)
	return nil
}

// measureCallers runs callers in a closed loop. Any error ends it.
func measureCallers(ctx context.Context, c Case, w Window, newCaller callers) (Work, error) {
	works := make([]callerWork, c.Callers)
	for i := range works {
		works[i] = newCaller(i)
	}
	counted := &counter{window: w}
	generator, err := load.New(load.Config{
		Callers: c.Callers, Warmup: w.Warmup, Duration: w.Duration, ErrorLimit: 1, OnMeasureStart: counted.open,
	})
	if err != nil {
		return Work{}, err
	}
	result := generator.Run(ctx, func(ctx context.Context, it *load.Iteration) error {
		return works[it.Caller](ctx, &iteration{it, counted})
	})
	counted.finish()
	if result.FirstError != "" {
		return Work{}, fmt.Errorf("%s: %s", c.Name, result.FirstError)
	}
	if err := ctx.Err(); err != nil {
		return Work{}, err
	}
	if counted.span == 0 {
		return Work{}, errors.New("the window did not open")
	}
	calls, _ := result.Operation(callKind)
	return Work{
		Operations: counted.ended, Seconds: counted.span.Seconds(),
		P50Ms: calls.Latency.P50Ms, P99Ms: calls.Latency.P99Ms,
	}, nil
}

// callPair does the two calls of a pair. Only the second one completes operations.
func (it *iteration) callPair(operations int, allocate, release func() error) error {
	if err := it.call(0, allocate); err != nil {
		return err
	}
	return it.call(operations, release)
}
