package runner

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorate/quorate/chaos/faults"
)

// Command returns the command that repeats the run. The seed repeats the faults, but not how calls and messages
// interleave.
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
	if !c.Guarded {
		b.WriteString(" GUARDED=false")
	}
	if c.OldGiven != "" {
		fmt.Fprintf(&b, " OLD=%s", c.OldGiven)
	}
	if c.Planted != "" {
		fmt.Fprintf(&b, " PLANTED=%s", c.Planted)
	}
	return b.String()
}

// Passed reports whether every promise was kept and none is undecided.
func (r *Result) Passed() bool { return len(r.Failures) == 0 && len(r.Undecided) == 0 }

// String returns the result for people.
func (r *Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d operations, %d faults, %d nodes, seed %d\n", len(r.History.Ops), r.Faults.All(), r.Config.Size,
		r.Config.Seed)
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
		fmt.Fprintf(&b, "kept in %s; repeat it with: %s\n", r.Config.Dir, r.Config.Command())
	}
	return b.String()
}

// Timeline returns the events of the run, a line each.
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

// Elapsed returns the time since an instant, rounded for people.
func Elapsed(since time.Time) time.Duration { return time.Since(since).Round(time.Second) }
