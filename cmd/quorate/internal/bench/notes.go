//go:build unix

package bench

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/internal/load"
)

// Shares of the processors of this machine above which they are called the limit.
const (
	busyMachine   = 0.9
	busyGenerator = 0.7
	busyOthers    = 0.25
)

// notes say under the table how it was measured, what limited it, and what was left.
func (r *Report) notes(o options) []string {
	notes := []string{r.methodNote(o)}
	for _, run := range r.Runs {
		notes = append(notes, run.limitNotes()...)
		notes = append(notes, run.errorNotes()...)
	}
	if slices.ContainsFunc(r.Runs, func(run Run) bool { return run.Stopped == load.StoppedByCancel }) || len(r.Runs) == 0 {
		notes = append(notes, "interrupted: these are the measurements until then")
	}
	return append(notes, r.Ledger.notes()...)
}

func (r *Report) methodNote(o options) string {
	loop := "closed loop"
	if o.rate > 0 {
		loop = fmt.Sprintf("open loop, %g iterations per second, latencies from the intended start", o.rate)
	}
	calls := "each call is sent on its own"
	if o.boskos == "" && r.Joined {
		calls = "concurrent calls are joined into batches"
	}
	if r.Batch > 1 {
		calls += fmt.Sprintf(" with %d allocations; count and rate are of allocations, latencies of calls", r.Batch)
	}
	return fmt.Sprintf("workload %s, %s; %s", r.Workload, loop, calls)
}

func (run Run) callersText() string {
	if run.Callers == 1 {
		return "1 caller"
	}
	return fmt.Sprintf("%d callers", run.Callers)
}

// limitNotes say what limited a measurement, as far as it is known here.
func (run Run) limitNotes() []string {
	name := run.callersText()
	if run.Read != "" {
		name += ", " + run.Read
	}
	usage := fmt.Sprintf("%s: the load generator used %.2f of %d cores", name, run.GeneratorCPU, run.CPUs)
	if run.ServersCPU > 0 {
		usage += fmt.Sprintf(", the servers %.2f", run.ServersCPU)
	}
	cores := float64(run.CPUs)
	if run.OthersCPU > 0 {
		usage += fmt.Sprintf(", other processes %.2f", run.OthersCPU)
	}
	switch {
	case run.GeneratorCPU >= busyGenerator*cores:
		usage += "; the load generator limits the result: measure from another machine"
	case run.GeneratorCPU+run.ServersCPU >= busyMachine*cores:
		usage += "; the processors of this machine limit the result"
	}
	if run.ServersCPU > 0 && run.OthersCPU >= busyOthers*cores {
		usage += "; other processes disturb the measurement"
	}
	notes := []string{usage}
	if n := run.Iterations; n.Missed > 0 {
		notes = append(notes, fmt.Sprintf("%s: the rate was not reached: %d of %d iterations did not begin, because all "+
			"callers were busy", name, n.Missed, n.Scheduled))
	} else if n.Late > n.Scheduled/10 {
		notes = append(notes, fmt.Sprintf("%s: %d of %d iterations began more than 1 ms late, which is in their latencies",
			name, n.Late, n.Scheduled))
	}
	return notes
}

func (run Run) errorNotes() []string {
	var notes []string
	for _, o := range run.Operations {
		for _, e := range o.Errors {
			notes = append(notes, fmt.Sprintf("%s: %d × %s failed with %s, for example: %s", run.callersText(),
				e.Count, o.Kind, e.Code, e.Example))
		}
	}
	if len(notes) == 0 && run.FirstError != "" {
		notes = append(notes, fmt.Sprintf("%s: %d operations of the warm-up failed, first %s", run.callersText(),
			run.Iterations.WarmupErrors, run.FirstError))
	}
	if run.Stopped == load.StoppedByErrors {
		notes = append(notes, run.callersText()+": ended early because of too many errors")
	}
	return notes
}

func (l Ledger) notes() []string {
	if l.Tree == "" {
		return nil
	}
	var notes []string
	if l.LeftAllocations > 0 {
		notes = append(notes, fmt.Sprintf("%d allocations were left and are released", l.LeftAllocations))
	}
	if l.Problem != "" {
		return append(notes, fmt.Sprintf("tree %s is not cleaned up: %s", l.Tree, l.Problem))
	}
	return append(notes, fmt.Sprintf("usage of tree %s is zero; the tree is deleted", l.Tree))
}
