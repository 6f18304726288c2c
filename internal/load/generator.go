package load

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Generator runs one load and collects its measurements. It is used for one call of Run.
type Generator struct {
	config    Config
	schedule  *schedule
	recorders []*recorder

	// interrupted is closed when operations are no longer allowed to go on.
	interrupted <-chan struct{}
	// stopStarting ends the start of iterations, not those that run.
	stopStarting context.CancelCauseFunc
	drainExpired atomic.Bool

	failures     atomic.Int64
	firstFailure atomic.Pointer[string]
	counts       iterationCounts
}

type iterationCounts struct {
	completed, failed, interrupted, late, warmup, warmupFailures atomic.Int64
}

// maxRecorders bounds the memory of histograms, which have about 270 kB each. Callers share a recorder in turn.
const maxRecorders = 16

// errErrorLimit is the cause of a run that ended because too many operations failed.
var errErrorLimit = errors.New("too many operations failed")

// New returns a generator, or an error if the configuration is out of bounds.
func New(config Config) (*Generator, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	if config.Drain == 0 {
		config.Drain = DefaultDrain
	}
	config.IterationUnits = max(config.IterationUnits, 1)
	if config.ErrorCode == nil {
		config.ErrorCode = func(error) string { return CodeError }
	}
	g := &Generator{config: config, schedule: newSchedule(config)}
	for range min(config.Callers, maxRecorders) {
		g.recorders = append(g.recorders, newRecorder())
	}
	return g, nil
}

// Run carries out the load until it is over or ctx ends, and returns what was measured until then.
func (g *Generator) Run(ctx context.Context, work Work) *Result {
	running, interrupt := context.WithCancel(ctx)
	defer interrupt()
	starting, stop := context.WithCancelCause(running)
	defer stop(nil)
	g.interrupted, g.stopStarting = running.Done(), stop

	g.schedule.begin(time.Now())
	usage := g.watchMeasurement(starting)
	var callers sync.WaitGroup
	for caller := range g.config.Callers {
		callers.Go(func() { g.runCaller(running, starting, caller, work) })
	}
	g.awaitEnd(starting)
	deadline := time.AfterFunc(g.config.Drain, func() {
		g.drainExpired.Store(true)
		interrupt()
	})
	callers.Wait()
	deadline.Stop()
	cause := context.Cause(starting)
	stop(nil) // ends the wait for the end of the warm-up
	return g.buildResult(usage(), cause)
}

// awaitEnd waits until no further iteration begins, also if no caller is there to notice it.
func (g *Generator) awaitEnd(starting context.Context) {
	var end <-chan time.Time
	if g.config.Duration > 0 {
		end = time.After(time.Until(g.schedule.end))
	}
	select {
	case <-g.schedule.ended:
	case <-starting.Done():
	case <-end:
	}
}

// watchMeasurement returns a function that ends the measurement; call it when no iteration runs any more.
func (g *Generator) watchMeasurement(ctx context.Context) (end func() time.Duration) {
	var before time.Duration
	begun := false
	start := func() {
		begun, before = true, processCPU()
		if g.config.OnMeasureStart != nil {
			g.config.OnMeasureStart()
		}
	}
	watched := make(chan struct{})
	if g.config.Warmup == 0 {
		start()
		close(watched)
	} else {
		go func() {
			defer close(watched)
			if sleepUntil(ctx, g.schedule.measureFrom) {
				start()
			}
		}()
	}
	return func() time.Duration {
		if <-watched; !begun {
			return 0
		}
		if g.config.OnMeasureEnd != nil {
			g.config.OnMeasureEnd()
		}
		return processCPU() - before
	}
}

func (g *Generator) runCaller(running, starting context.Context, caller int, work Work) {
	recorder := g.recorders[caller%len(g.recorders)]
	for {
		start, more := g.schedule.awaitStart(starting)
		if !more {
			return
		}
		it := &Iteration{Caller: caller, Number: start.number, generator: g, recorder: recorder, start: start}
		err := work(running, it)
		it.finish(err)
	}
}

// isInterrupted is true when the contexts of operations have ended.
func (g *Generator) isInterrupted() bool {
	select {
	case <-g.interrupted:
		return true
	default:
		return false
	}
}

// Record adds an operation that was measured outside of an iteration, such as the delay of an event at a watcher. It
// counts if it ends while the run is measured, and is safe for concurrent use from before Run until its end.
func (g *Generator) Record(kind string, units int64, took time.Duration, err error) {
	since := g.schedule.sinceMeasured(time.Now())
	if since < 0 {
		return
	}
	if err != nil {
		g.recordFailure(g.recorders[0], kind, took, err, true)
		return
	}
	g.recorders[0].recordSuccess(kind, units, took, since)
}

// recordFailure ends the run at the limit.
func (g *Generator) recordFailure(r *recorder, kind string, took time.Duration, err error, measured bool) {
	code := CodeUnfinished
	if !g.drainExpired.Load() {
		code = g.config.ErrorCode(err)
	}
	text := kind + ": " + err.Error()
	g.firstFailure.CompareAndSwap(nil, &text)
	if measured {
		r.recordFailure(kind, code, took, err)
	} else {
		g.counts.warmupFailures.Add(1)
	}
	if n := g.failures.Add(1); n == g.config.ErrorLimit {
		g.stopStarting(errErrorLimit)
	}
}
