package main

import (
	"context"
	"errors"
	"time"

	"github.com/quorate/quorate/tools/bench/compare/report"
	"github.com/quorate/quorate/tools/bench/compare/systems"
)

const (
	// measureTries is how often a measurement is tried: a leadership may change in the middle of one.
	measureTries = 3
	// measurePatience is how long a measurement may take in addition to its window.
	measurePatience = time.Minute
	// retryPause lets an election end.
	retryPause = 2 * time.Second
	// windowGrowth is how much longer the window of the next try is, if nothing was completed in one.
	windowGrowth = 8
	micros       = 1e6
)

var (
	errLeaderChanged    = errors.New("the leader changed")
	errNothingCompleted = errors.New("nothing was completed in the window")
)

// measureRepeatedly measures a case until it succeeds, or returns a sample with the last failure.
func (c *comparison) measureRepeatedly(ctx context.Context, s systems.System, one systems.Case) report.Sample {
	window := c.duration
	for try := 1; ; try++ {
		sample, err := c.measureOnce(ctx, s, one, window)
		sample.System, sample.Case, sample.Attempts = s.Name(), one.Name, try
		if err == nil {
			return sample
		}
		if try == measureTries || ctx.Err() != nil {
			sample.Failure = err.Error()
			return sample
		}
		if errors.Is(err, errNothingCompleted) {
			window *= windowGrowth
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryPause):
		}
	}
}

// measureOnce expects that nothing is held afterwards, which shows that each pair was complete.
func (c *comparison) measureOnce(
	ctx context.Context, s systems.System, one systems.Case, window time.Duration,
) (sample report.Sample, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.warmup+window+measurePatience)
	defer cancel()
	leader, err := s.Leader(ctx)
	if err != nil {
		return sample, err
	}
	var before, after clocks
	var failedBefore, failedAfter error
	work, err := s.Measure(ctx, one, systems.Window{
		Warmup: c.warmup, Duration: window,
		Begin: func() { before, failedBefore = readClocks() },
		End:   func() { after, failedAfter = readClocks() },
	})
	if err := errors.Join(err, failedBefore, failedAfter); err != nil {
		return sample, err
	}
	if now, err := s.Leader(ctx); err != nil || now != leader {
		return sample, errors.Join(errLeaderChanged, err)
	}
	if err := s.CheckEmpty(ctx); err != nil {
		return sample, err
	}
	if work.Operations == 0 {
		return sample, errNothingCompleted
	}
	sample = newSample(work)
	c.addCPU(&sample, s, before, after, leader)
	return sample, nil
}

// clocks are the CPU times at one moment.
type clocks struct {
	machine   systems.MachineTime
	processes systems.CPUTimes
}

func readClocks() (c clocks, err error) {
	if c.machine, err = systems.ReadMachineTime(); err != nil {
		return c, err
	}
	c.processes, err = systems.ReadCPUTimes()
	return c, err
}

func newSample(w systems.Work) report.Sample {
	return report.Sample{
		Operations: w.Operations, Seconds: w.Seconds, PerSecond: float64(w.Operations) / w.Seconds,
		P50Ms: w.P50Ms, P99Ms: w.P99Ms,
	}
}

// addCPU adds the CPU time between two moments. That of the systems that are not measured, which should be next to
// nothing, is told apart from that of other processes.
func (c *comparison) addCPU(sample *report.Sample, s systems.System, before, after clocks, leader int) {
	perOperation := micros / float64(sample.Operations)
	client := after.processes.Client() - before.processes.Client()
	known, idle := client, 0.0
	sample.CPUMicros.Client = client * perOperation
	for _, system := range c.systems {
		for i, p := range system.Processes() {
			used := after.processes.Node(p) - before.processes.Node(p)
			known += used
			switch {
			case system != s:
				idle += used
			case i == leader:
				sample.CPUMicros.Leader = used * perOperation
			default:
				sample.CPUMicros.Followers += used * perOperation
			}
		}
	}
	if total := after.machine.Total - before.machine.Total; total > 0 {
		sample.IdleCPU = idle / total
		sample.OtherCPU = max(0, (after.machine.Busy-before.machine.Busy-known)/total)
		sample.Stolen = (after.machine.Stolen - before.machine.Stolen) / total
	}
}
