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

	"github.com/quorate/quorate/cmd/quorate/internal/bench"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/cmd/quorate/internal/config"
	"github.com/quorate/quorate/cmd/quorate/internal/lease"
	"github.com/quorate/quorate/cmd/quorate/internal/node"
	"github.com/quorate/quorate/cmd/quorate/internal/operate"
	"github.com/quorate/quorate/cmd/quorate/internal/request"
	"github.com/quorate/quorate/cmd/quorate/internal/usage"
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

	c := &cli.Env{In: in, Out: out, ErrOut: talk, Version: version}
	root := newRootCmd(c)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(talk)
	return c.ReportError(root.ExecuteContextC(ctx))
}

func newRootCmd(c *cli.Env) *cobra.Command {
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
			if !slices.Contains(cli.OutputFormats, c.Output) {
				return fmt.Errorf("unknown output %q: write -o %s", c.Output, strings.Join(cli.OutputFormats, ", -o "))
			}
			c.Started = true
			return nil
		},
	}
	flags := root.PersistentFlags()
	flags.StringSliceVar(&c.Servers, "server", serversFromEnvironment(),
		"addresses of the servers to ask, the first that answers (`URL[,URL...]`; environment: "+serverVariable+")")
	flags.DurationVar(&c.Timeout, "timeout", defaultTimeout, "give up after this time")
	flags.StringVarP(&c.Output, "output", "o", cli.OutputTable, "what to print: "+strings.Join(cli.OutputFormats, ", "))
	flags.BoolVar(&c.Stale, "stale", false, "take the answer of any node at once, even if it is a little old")
	c.TLS.AddFlags(flags)
	flags.Uint64Var(&c.MinIndex, "min-index", 0,
		"take the answer of any node as soon as it has applied this log index, such as that of an own write")
	cli.CompleteFlag(root, "output", cli.OutputFormats...)

	cli.AddGroup(root, "configuration", "Configuration:", config.Commands(c)...)
	cli.AddGroup(root, "requests", "Requests:", request.Commands(c)...)
	cli.AddGroup(root, "leases", "Leases, items and waiting:", lease.Commands(c)...)
	cli.AddGroup(root, "usage", "Limits and use:", usage.Commands(c)...)
	cli.AddGroup(root, "cluster", "Servers:", append(append(node.Commands(c), operate.Commands(c)...), bench.NewBenchCmd(c))...)
	root.AddCommand(node.NewVersionCmd(c), cli.NewExitCodesTopic())
	return root
}

func serversFromEnvironment() []string {
	if listed := os.Getenv(serverVariable); listed != "" {
		return strings.Split(listed, ",")
	}
	return []string{defaultServer}
}
