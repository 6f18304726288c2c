package runner

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/chaos/faults"
)

// Command is what plays the run again. Faults are the same, from the same seed; how calls and messages interleave is not.
func (c Config) Command() string {
	var b strings.Builder
	b.WriteString("make chaos")
	if len(c.Scenario) > 0 {
		fmt.Fprintf(&b, " SCENARIO=%s", strings.Join(c.Scenario, ","))
	}
	if len(c.Workloads) > 0 {
		fmt.Fprintf(&b, " WORKLOADS=%s", strings.Join(c.Workloads, ","))
	}
	fmt.Fprintf(&b, " SEED=%d NODES=%d LENGTH=%v", c.Seed, c.Size, c.Length)
	if c.OldGiven != "" {
		fmt.Fprintf(&b, " OLD=%s", c.OldGiven)
	}
	if c.Planted != "" {
		fmt.Fprintf(&b, " PLANTED=%s", c.Planted)
	}
	return b.String()
}

// Passed tells whether every promise was kept for certain.
func (r *Result) Passed() bool { return len(r.Failures) == 0 && len(r.Undecided) == 0 }

// String is the result for people.
func (r *Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d operations, %d faults, %d nodes, seed %d\n", len(r.History.Ops), r.Faults.All(), r.Config.Size, r.Config.Seed)
	fmt.Fprintf(&b, "faults: %s\n", r.Faults)
	for _, w := range r.Without {
		fmt.Fprintf(&b, "left out: %s\n", w)
	}
	if r.Verdicts != nil {
		fmt.Fprintln(&b, r.Verdicts)
	}
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "BROKEN %s\n", f)
	}
	for _, u := range r.Undecided {
		fmt.Fprintf(&b, "UNDECIDED %s\n", u)
	}
	if !r.Passed() {
		fmt.Fprintf(&b, "kept in %s; play it again with: %s\n", r.Config.Dir, r.Config.Command())
	}
	return b.String()
}

// Timeline is what happened when, a line each.
func (r *Result) Timeline() string {
	var b strings.Builder
	for _, e := range r.Events {
		fmt.Fprintln(&b, r.eventLine(e))
	}
	return b.String()
}

func (r *Result) eventLine(e faults.Event) string {
	return fmt.Sprintf("%8.3f %-3s %s", e.At.Sub(r.Began).Seconds(), e.Node, e.What)
}

// Elapsed rounds a time for people.
func Elapsed(since time.Time) time.Duration { return time.Since(since).Round(time.Second) }
