//go:build unix

package bench

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/load"
)

// Report is the output of the command. Its JSON form is stable: fields may be added. docs/performance.md describes it.
type Report struct {
	Version  string   `json:"version"`
	Workload string   `json:"workload"`
	Servers  []string `json:"servers"`
	// Cluster is the number of servers that the command started; 0 if they were there.
	Cluster int `json:"cluster"`
	// Joined says whether the client joined concurrent calls into batches.
	Joined bool  `json:"joined"`
	Batch  int   `json:"batch"`
	Leaves int   `json:"leaves"`
	Runs   []Run `json:"runs"`
	// Ledger is what was left in the end; it has no meaning with --boskos.
	Ledger Ledger `json:"ledger"`
}

// Run is one measurement.
type Run struct {
	*load.Result

	// Read is the kind of read of workload reads.
	Read string `json:"read,omitempty"`
	// CPUs is the number of processors of this machine.
	CPUs int `json:"cpus"`
	// ServersCPU is how many cores the servers of --cluster kept busy, and OthersCPU all other processes of this
	// machine; 0 where it is not known.
	ServersCPU float64 `json:"servers_cpu_cores"`
	OthersCPU  float64 `json:"others_cpu_cores"`
}

func newReport(c *cli.Env, o options) *Report {
	return &Report{
		Version: c.Build.Version, Workload: o.workloadName, Servers: c.Servers, Cluster: o.cluster, Joined: o.join,
		Batch: o.batch, Leaves: o.leaves, Runs: []Run{},
	}
}

// publish returns an error if a measurement failed or was interrupted, or if something is left in the tree.
func (r *Report) publish(c *cli.Env, o options) error {
	if err := c.PrintValue(r, func(p *cli.Page) error { return p.Table(r.tableRows()) }); err != nil {
		return err
	}
	for _, note := range r.notes(o) {
		c.Messagef("%s", note)
	}
	if o.picture != "" {
		if err := os.WriteFile(o.picture, drawPicture(r, o.picture), 0o644); err != nil { //nolint:gosec // for others too
			return fmt.Errorf("writing the picture: %w", err)
		}
	}
	if r.isClean() {
		return nil
	}
	return &cli.ExitError{Code: cli.ExitFailure, Ours: true}
}

func (r *Report) isClean() bool {
	for _, run := range r.Runs {
		if run.hasFailures() || run.Stopped == load.StoppedByCancel {
			return false
		}
	}
	return len(r.Runs) > 0 && r.Ledger.Problem == ""
}

// hasFailures does not count refusals by Boskos.
func (run Run) hasFailures() bool {
	var refused int64
	for _, o := range run.Operations {
		for _, e := range o.Errors {
			if e.Code == codeRefused {
				refused += e.Count
			}
		}
	}
	return run.Errors() > refused || run.Iterations.WarmupErrors > 0 && refused == 0
}

var tableHeading = []string{
	"CALLERS", "OPERATION", "COUNT", "PER SECOND", "P50", "P90", "P99", "P99.9", "MAX", "ERRORS",
}

// tableRows has a line for each operation of each measurement. Counts and rates are of allocations, latencies of calls.
func (r *Report) tableRows() [][]string {
	rows := [][]string{tableHeading}
	for _, run := range r.Runs {
		for _, o := range run.Operations {
			l := o.Latency
			rows = append(rows, []string{
				strconv.Itoa(run.Callers), o.Kind, strconv.FormatInt(o.Units, 10), formatRate(o.UnitsPerSecond),
				formatMs(l.P50Ms), formatMs(l.P90Ms), formatMs(l.P99Ms), formatMs(l.P999Ms), formatMs(l.MaxMs),
				strconv.FormatInt(o.ErrorCount, 10),
			})
		}
	}
	return rows
}

func formatRate(perSecond float64) string {
	if perSecond > 0 && perSecond < 10 {
		return strconv.FormatFloat(perSecond, 'f', 2, 64)
	}
	return strconv.FormatFloat(perSecond, 'f', 0, 64)
}

// formatMs has at least three digits.
func formatMs(ms float64) string {
	d := time.Duration(ms * float64(time.Millisecond))
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}
