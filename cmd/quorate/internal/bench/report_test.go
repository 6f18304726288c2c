//go:build unix

package bench

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/load"
)

// measured is a run in which each kind of operation was carried out 50 times.
func measured(t *testing.T, callers, kinds int) Run {
	t.Helper()
	g, err := load.New(load.Config{Callers: callers, Count: 50, IterationKind: "pair"})
	if err != nil {
		t.Fatal(err)
	}
	return Run{CPUs: 4, Result: g.Run(t.Context(), func(_ context.Context, it *load.Iteration) error {
		for i := range kinds {
			if err := it.Measure(fmt.Sprintf("<step & %d>", i), 1, func() error { return nil }); err != nil {
				return err
			}
		}
		return nil
	})}
}

// TestPictures checks that pictures with no, few and too many curves, and texts with markup, are well-formed.
func TestPictures(t *testing.T) {
	for name, test := range map[string]struct {
		runs, kinds, curves int
	}{
		"nothing":  {0, 0, 0},
		"few":      {1, 3, 4},
		"eight":    {2, 3, 8},
		"too many": {3, 3, 3},
		"too much": {12, 1, maxCurves},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Report{Workload: `contended "<&>"`, Version: "v1"}
			for range test.runs {
				r.Runs = append(r.Runs, measured(t, 1, test.kinds))
			}
			for _, file := range []string{"picture.svg", "picture.html"} {
				picture := string(drawPicture(r, file))
				decoder := xml.NewDecoder(strings.NewReader(picture))
				for {
					if _, err := decoder.Token(); errors.Is(err, io.EOF) {
						break
					} else if err != nil {
						t.Fatalf("%s: %v\n%s", file, err, picture)
					}
				}
				if n := strings.Count(picture, "<polyline"); n != 2*test.curves {
					t.Errorf("%s has %d curves in both charts, want %d", file, n, 2*test.curves)
				}
				if strings.Contains(picture, "NaN") || strings.Contains(picture, "Inf") {
					t.Errorf("%s has points that are not numbers:\n%s", file, picture)
				}
			}
		})
	}
}

// TestLimitNotes checks what the notes name as the limit of a measurement.
func TestLimitNotes(t *testing.T) {
	for name, test := range map[string]struct {
		run  Run
		want []string
	}{
		"nothing": {
			Run{CPUs: 4, Result: &load.Result{Callers: 1, GeneratorCPU: 1}},
			[]string{"1 caller: the load generator used 1.00 of 4 cores"},
		},
		"generator": {
			Run{CPUs: 4, Result: &load.Result{Callers: 2, GeneratorCPU: 3}},
			[]string{"2 callers: the load generator used 3.00 of 4 cores; the load generator limits the result: measure " +
				"from another machine"},
		},
		"machine": {
			Run{CPUs: 4, ServersCPU: 2.7, Read: "stale", Result: &load.Result{Callers: 2, GeneratorCPU: 1}},
			[]string{"2 callers, stale: the load generator used 1.00 of 4 cores, the servers 2.70; the processors of this " +
				"machine limit the result"},
		},
		"others": {
			Run{CPUs: 4, ServersCPU: 0.5, OthersCPU: 2, Result: &load.Result{Callers: 2, GeneratorCPU: 0.5}},
			[]string{"2 callers: the load generator used 0.50 of 4 cores, the servers 0.50, other processes 2.00; other " +
				"processes disturb the measurement"},
		},
		"missed": {
			Run{CPUs: 4, Result: &load.Result{Callers: 2, Iterations: load.Iterations{Scheduled: 10, Missed: 3, Late: 7}}},
			[]string{
				"2 callers: the load generator used 0.00 of 4 cores",
				"2 callers: the rate was not reached: 3 of 10 iterations did not begin, because all callers were busy",
			},
		},
		"late": {
			Run{CPUs: 4, Result: &load.Result{Callers: 2, Iterations: load.Iterations{Scheduled: 10, Late: 2}}},
			[]string{
				"2 callers: the load generator used 0.00 of 4 cores",
				"2 callers: 2 of 10 iterations began more than 1 ms late, which is in their latencies",
			},
		},
	} {
		if got := test.run.limitNotes(); strings.Join(got, "\n") != strings.Join(test.want, "\n") {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestReportIsClean checks which measurements end with exit code 0.
func TestReportIsClean(t *testing.T) {
	operation := func(code string) []load.Operation {
		return []load.Operation{{ErrorCount: 2, Errors: []load.ErrorCount{{Code: code, Count: 2}}}}
	}
	for name, test := range map[string]struct {
		result load.Result
		ledger Ledger
		want   bool
	}{
		"good":        {load.Result{}, Ledger{}, true},
		"refused":     {load.Result{Operations: operation(codeRefused)}, Ledger{}, true},
		"failed":      {load.Result{Operations: operation("unavailable")}, Ledger{}, false},
		"warm-up":     {load.Result{Iterations: load.Iterations{WarmupErrors: 1}}, Ledger{}, false},
		"interrupted": {load.Result{Stopped: load.StoppedByCancel}, Ledger{}, false},
		"left":        {load.Result{}, Ledger{Problem: "a node holds something"}, false},
	} {
		r := &Report{Runs: []Run{{Result: &test.result}}, Ledger: test.ledger}
		if r.isClean() != test.want {
			t.Errorf("%s: clean is %v", name, !test.want)
		}
	}
	if (&Report{}).isClean() {
		t.Error("a report without measurements is clean")
	}
}

// TestProcessorTime checks that the CPU time of a process is part of that of the machine.
func TestProcessorTime(t *testing.T) {
	if machineCPUTime() == 0 {
		t.Skip("not known on this system")
	}
	usage := cpuUsage{}
	usage.begin()
	for began := time.Now(); time.Since(began) < 100*time.Millisecond; {
		_ = began // the loop uses the processor
	}
	usage.end()
	run := Run{Result: &load.Result{ElapsedSeconds: 0.1}}
	if usage.report(&run); run.OthersCPU <= 0 || run.OthersCPU > 3*float64(run.CPUs) || run.ServersCPU != 0 {
		t.Errorf("%g of %d cores were used", run.OthersCPU, run.CPUs)
	}
}
