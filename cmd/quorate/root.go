package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

const (
	defaultServer  = "http://127.0.0.1:7101"
	defaultTimeout = 15 * time.Second
	serverVariable = "QUORATE_SERVER"
)

// execute runs one command line and answers its exit code. SIGINT and SIGTERM end the command's context; a second one
// ends the process.
func execute(args []string, in io.Reader, out, talk io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	c := &cli{in: in, out: out, talk: talk, version: version}
	root := newRootCmd(c)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(talk)
	return c.report(root.ExecuteContextC(ctx))
}

func newRootCmd(c *cli) *cobra.Command {
	root := &cobra.Command{
		Use:   "quorate",
		Short: "Quota and leases for many schedulers at once: exact, durable, explained",
		Long: `Quorate answers one question for many schedulers at once: may these amounts be held here, from now on?
It keeps trees of limits, grants allocations that count against every limit on their path, and never admits
more than a limit allows, whatever crashes.

Data goes to standard output, everything else to standard error; see "quorate help exit-codes".`,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if !slices.Contains(outputFormats, c.output) {
				return fmt.Errorf("unknown output %q: write -o %s", c.output, strings.Join(outputFormats, ", -o "))
			}
			c.started = true
			return nil
		},
	}
	flags := root.PersistentFlags()
	flags.StringSliceVar(&c.servers, "server", serversFromEnvironment(),
		"addresses of the servers to ask, the first that answers (`URL[,URL...]`; environment: "+serverVariable+")")
	flags.DurationVar(&c.timeout, "timeout", defaultTimeout, "give up after this time")
	flags.StringVarP(&c.output, "output", "o", outputTable, "what to print: "+strings.Join(outputFormats, ", "))
	flags.BoolVar(&c.stale, "stale", false, "take the answer of any node at once, even if it is a little old")
	c.tls.addFlags(flags)
	flags.Uint64Var(&c.minIndex, "min-index", 0,
		"take the answer of any node as soon as it has applied this log index, such as that of an own write")
	complete(root, "output", outputFormats...)

	addGroup(root, "configuration", "Configuration:",
		newPlanCmd(c), newApplyCmd(c), newExportCmd(c), newConvertCmd(c), newHistoryCmd(c), newRollbackCmd(c),
		newLimitsCmd(c), newMoveCmd(c), newMaintenanceCmd(c), newTreeCmd(c),
	)
	addGroup(root, "requests", "Requests:",
		newAllocateCmd(c), newReleaseCmd(c), newConfirmCmd(c), newCancelCmd(c), newExplainCmd(c), newEventsCmd(c),
		newAllocationCmd(c), newAllocationsCmd(c),
	)
	addGroup(root, "leases", "Leases, items and waiting:",
		newLeaseCmd(c), newRenewCmd(c), newLeasesCmd(c), newItemsCmd(c), newQueueCmd(c), newWatchCmd(c),
	)
	addGroup(root, "usage", "Limits and use:", newTreesCmd(c), newUsageCmd(c), newPrincipalsCmd(c), newActivityCmd(c))
	addGroup(root, "cluster", "Servers:", newServerCmd(c), newDevCmd(c), newDemoCmd(c), newStatusCmd(c), newClusterCmd(c), newDebugCmd(c),
		newSnapshotCmd(c), newRecoverCmd(c), newBenchCmd(c), newTLSCmd(c))
	root.AddCommand(newVersionCmd(c), newExitCodesTopic())
	return root
}

func serversFromEnvironment() []string {
	if listed := os.Getenv(serverVariable); listed != "" {
		return strings.Split(listed, ",")
	}
	return []string{defaultServer}
}
