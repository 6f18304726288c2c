package load

import "time"

// Iteration is one run of a Work.
type Iteration struct {
	// Caller is the number of the caller, 0 to Config.Callers-1.
	Caller int
	// Number is unique in the run and counts from 0, with the warm-up.
	Number int64

	generator *Generator
	recorder  *recorder
	start     start
	measured  bool // Measure was called
}

// Measure carries out one operation of an iteration and records its latency if it succeeds, else its error. Units is
// how many things the operation carries, such as the allocations of a batch. In an open loop the latency of the first
// operation counts from the intended start of the iteration, because that is how long its caller would have waited;
// that of each further one counts from its own start.
func (it *Iteration) Measure(kind string, units int64, operation func() error) error {
	from := time.Now()
	if !it.measured && it.start.isOpen {
		from = it.start.intended
	}
	it.measured = true
	err := operation()
	it.record(kind, units, from, err)
	return err
}

// Measured reports whether the iteration counts: those of the warm-up do not.
func (it *Iteration) Measured() bool { return it.start.counts }

func (it *Iteration) record(kind string, units int64, from time.Time, err error) {
	g, now := it.generator, time.Now()
	took := now.Sub(from)
	switch {
	case err != nil && g.isInterrupted() && !g.drainExpired.Load():
		// The run was cancelled; the iteration counts as interrupted.
	case err != nil:
		g.recordFailure(it.recorder, kind, took, err, it.start.counts)
	case it.start.counts:
		it.recorder.recordSuccess(kind, units, took, g.schedule.sinceMeasured(now))
	}
}

func (it *Iteration) finish(err error) {
	g := it.generator
	counts := &g.counts
	if !it.start.counts {
		counts.warmup.Add(1)
		return
	}
	if kind := g.config.IterationKind; kind != "" && err == nil {
		it.record(kind, g.config.IterationUnits, it.start.intended, nil)
	}
	if it.start.isOpen {
		it.recorder.recordStartDelay(it.start.delay)
		if it.start.delay > lateAfter {
			counts.late.Add(1)
		}
	}
	g.schedule.noteEnd(time.Now())
	switch {
	case err == nil:
		counts.completed.Add(1)
	case g.isInterrupted() && !g.drainExpired.Load():
		counts.interrupted.Add(1)
	default:
		counts.failed.Add(1)
	}
}
