//go:build unix

// Package bench measures a cluster by loading it.
//
// A workload makes a tree of its own, repeats one iteration through package load, and leaves nothing behind: at the end
// the usage of its tree must be zero, and the tree is deleted. Start reading at [NewBenchCmd] and runSession.
package bench

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// NewBenchCmd is "quorate cluster bench".
func NewBenchCmd(c *cli.Env) *cobra.Command {
	o := options{}
	cmd := &cobra.Command{
		Use:     "bench",
		Short:   "Measure the throughput and latency of a cluster",
		Long:    benchHelp(),
		Example: benchExamples,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(cmd.Flags().Changed); err != nil {
				return err
			}
			if o.boskos != "" {
				return benchBoskos(cmd.Context(), c, o)
			}
			return benchCluster(cmd.Context(), c, o)
		},
	}
	addFlags(cmd, &o)
	return cmd
}

const benchExamples = `  quorate cluster bench --callers 1,16,64 --duration 10s --warmup 2s
  quorate cluster bench --cluster 3 --workload spread --picture latency.svg
  quorate cluster bench --workload contended --rate 500 --duration 30s
  quorate cluster bench --workload batch --batch 512 --callers 4
  quorate cluster bench --workload reads --reads linearizable,stale --callers 64 -o json
  quorate cluster bench --workload watch --watchers 100 --callers 4
  quorate cluster bench --boskos http://127.0.0.1:8080 --boskos-type aws-quota-slice --queue`

func benchHelp() string {
	var workloads strings.Builder
	for _, w := range allWorkloads {
		fmt.Fprintf(&workloads, "  %-11s %s\n", w.name, w.summary)
	}
	return fmt.Sprintf(`Measure a cluster with a workload. Each has a tree with a name of its own (bench-…), which is deleted at the end,
also after an interruption; the usage of the tree must then be zero. No other tree is read or changed.

%s
In a closed loop (the default) each caller begins when its last call has ended: this measures throughput. With --rate
iterations begin at fixed times and latencies count from them, so that calls that have to wait because the servers
stall are measured as their callers would see it: this measures latency. What could not begin in time is reported.

Calls are sent one by one. With --join the Go client joins concurrent calls into batches, as it does by default in
programs. With --cluster the command starts its own servers on this machine and removes them at the end.

Results of different runs do not compare well: measure what you want to compare in turns, and take medians. With -o json
the output has all measurements and histograms; docs/performance.md describes it. The exit code is 1 if an operation
failed, if the usage is not zero at the end, or after an interruption.`, workloads.String())
}

func addFlags(cmd *cobra.Command, o *options) {
	flags := cmd.Flags()
	flags.StringVar(&o.workloadName, "workload", "contended", "what to do: "+strings.Join(workloadNames(), ", "))
	flags.IntSliceVar(&o.callers, "callers", []int{1, 16, 64},
		"numbers of concurrent callers, one measurement for each; with --rate, the most iterations under way (default 256)")
	flags.Float64Var(&o.rate, "rate", 0, "open loop: begin this many iterations per second (default: closed loop)")
	cli.SpanVar(flags, &o.warmup, "warmup", 0, "run this long before each measurement")
	cli.SpanVar(flags, &o.duration, "duration", 3*time.Second, "how long each measurement takes")
	flags.Int64Var(&o.count, "iterations", 0,
		"end each measurement after this many iterations, or after --duration if given")
	flags.IntVar(&o.batch, "batch", 1, "allocations in one call, 1 to 1000; workload batch has 64 by default")
	flags.IntVar(&o.leaves, "leaves", 1,
		"leaves to spread over, 1 to 1000; with one, all callers contend. Workloads spread and levels have 1000 by default")
	flags.IntVar(&o.renewals, "renewals", 3, "with workload leases: renewals of each lease, 1 to 1000")
	flags.IntVar(&o.watchers, "watchers", 10, "with workload watch: the number of watchers, 1 to 1000")
	flags.StringSliceVar(&o.reads, "reads", nil,
		"with workload reads, which it implies: kinds of read: "+strings.Join(readKinds, ", "))
	flags.BoolVar(&o.afterWrite, "after-write", false, "with workload reads: write before each read")
	flags.BoolVar(&o.join, "join-calls", false, "join concurrent calls into batches")
	flags.IntVar(&o.cluster, "cluster", 0, "start `N` servers of its own: 1, 3 or 5")
	flags.StringVar(&o.picture, "picture", "", "draw latency and throughput into this `FILE`, .svg or .html")
	flags.Int64Var(&o.maxErrors, "max-errors", 100, "end a measurement after this many failed operations; 0 for never")
	flags.StringVar(&o.boskos, "boskos", "", "measure a server for Boskos clients at this `URL`: acquire and release")
	flags.StringVar(&o.boskosType, "boskos-type", "", "with --boskos: the type of resources to acquire")
	flags.BoolVar(&o.boskosQueue, "queue", false, "with --boskos: wait in the queue, by a request id")
	cli.CompleteFlag(cmd, "workload", workloadNames()...)
}
