// Package report turns the measurements of tools/bench/compare into ratios, targets, tables and JSON.
//
// A Run has rounds, and a round one Sample for each case of each system. Ratios are formed within a round, because the
// machine drifts between rounds; their medians and their spread are what counts. targets.go has the targets, noise.go
// tells which rounds do not count.
package report

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"time"
)

// CPU is the CPU time of one operation in microseconds.
type CPU struct {
	// Client is the load generator, Leader the node that leads, Followers all others together.
	Client, Leader, Followers float64
}

// Total is the CPU time of all together.
func (c CPU) Total() float64 { return c.Client + c.Leader + c.Followers }

// Sample is one measurement.
type Sample struct {
	System, Case string
	Operations   int64
	Seconds      float64
	PerSecond    float64
	// P50Ms and P99Ms are of one call; 0 if single calls were not measured.
	P50Ms, P99Ms float64
	// CPUMicros is the CPU time of one operation.
	CPUMicros CPU
	// IdleCPU is the share of all CPUs that the systems used which were not measured, OtherCPU that of all other processes
	// and of the kernel, and Stolen, which is a part of OtherCPU, that which the host gave to other machines; from 0 to 1.
	IdleCPU, OtherCPU, Stolen float64
	// Attempts is how often it was measured; only the last attempt counts.
	Attempts int
	// Failure is why there is no measurement; empty if there is one.
	Failure string `json:",omitempty"`
}

// Round is one measurement of everything.
type Round struct {
	Number  int
	Samples []Sample
	// Noise says why the round is noisy, one sentence each.
	Noise []string
	// Discarded is true if a repetition takes its place.
	Discarded bool
}

// Skipped is a system that is not installed.
type Skipped struct{ System, Reason string }

// Run is everything that was measured.
type Run struct {
	Started time.Time
	// Version is that of the measured server.
	Version string
	CPUs    int
	// Seconds is the duration of one measurement.
	Seconds float64
	Rounds  []*Round
	Skipped []Skipped
	// Targets are filled in by Finish.
	Targets []Outcome
}

func (r *Round) sample(system, caseName string) (Sample, bool) {
	i := slices.IndexFunc(r.Samples, func(s Sample) bool {
		return s.System == system && s.Case == caseName && s.Failure == ""
	})
	if i < 0 {
		return Sample{}, false
	}
	return r.Samples[i], true
}

func (r *Run) counted() []*Round {
	return slices.DeleteFunc(slices.Clone(r.Rounds), func(round *Round) bool { return round.Discarded })
}

// Failures are the measurements that failed, one sentence each.
func (r *Run) Failures() []string {
	var failures []string
	for _, round := range r.Rounds {
		for _, s := range round.Samples {
			if s.Failure != "" {
				failures = append(failures,
					fmt.Sprintf("round %d: %s of %s: %s", round.Number, s.Case, s.System, s.Failure))
			}
		}
	}
	return failures
}

// Finish computes the outcome of each target whose systems were measured.
func (r *Run) Finish() {
	r.Targets = nil
	for _, t := range targets() {
		if o, measured := r.evaluate(t); measured {
			r.Targets = append(r.Targets, o)
		}
	}
}

// WriteJSON writes the run into a file.
func (r *Run) WriteJSON(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}

// Spread is the median of some values, with the smallest and the largest.
type Spread struct{ Median, Low, High float64 }

func spreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{math.NaN(), math.NaN(), math.NaN()}
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	median := sorted[middle]
	if len(sorted)%2 == 0 {
		median = (sorted[middle-1] + sorted[middle]) / 2
	}
	return Spread{median, sorted[0], sorted[len(sorted)-1]}
}
