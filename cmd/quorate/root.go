package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/access"
	"github.com/quorate/quorate/cmd/quorate/internal/audit"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/cmd/quorate/internal/config"
	"github.com/quorate/quorate/cmd/quorate/internal/contexts"
	"github.com/quorate/quorate/cmd/quorate/internal/lease"
	"github.com/quorate/quorate/cmd/quorate/internal/operate"
	"github.com/quorate/quorate/cmd/quorate/internal/reference"
	"github.com/quorate/quorate/cmd/quorate/internal/request"
	"github.com/quorate/quorate/cmd/quorate/internal/top"
	"github.com/quorate/quorate/cmd/quorate/internal/usage"
)

const (
	defaultServer  = "http://127.0.0.1:7101"
	defaultTimeout = 15 * time.Second
)

// execute returns the exit code. SIGINT and SIGTERM end the context of the command; a second signal ends the process.
func execute(args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	c := &cli.Env{In: in, Out: out, ErrOut: errOut, Build: buildOf(), Args: args}
	root := newRootCmd(c)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	return c.ReportError(root.ExecuteContextC(ctx))
}

func newRootCmd(c *cli.Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "quorate NOUN VERB",
		Short: "Quota and leases for many schedulers at once: exact, durable, explained",
		Long: `Quorate decides, atomically and durably, whether a request of one of many schedulers may take part of
a quota. It keeps trees of limits, grants allocations that count against every limit on their path, and never admits
more than a limit allows, even when servers crash.

A command is a noun and a verb, such as "quorate lease list"; those of every day have a short form.
Data goes to standard output, everything else to standard error; see "quorate help exit-codes".`,
		Version:       c.Build.String(),
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.CheckOutput(); err != nil {
				return err
			}
			if cmd.Name() != cobra.ShellCompRequestCmd && cmd.Name() != cobra.ShellCompNoDescRequestCmd {
				c.WarnUnknownVariables(os.Environ(), serverVariables())
			}
			c.UseContext(cmd.Flags())
			c.Started = true
			return nil
		},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	flags := root.PersistentFlags()
	flags.StringSliceVar(&c.Servers, "server", serversFromEnvironment(),
		"addresses of the servers; calls go to the first one that answers (`URL[,URL...]`; environment: "+cli.ServerVariable+")")
	flags.Lookup("server").DefValue = "[" + defaultServer + "]" // help is the same in every shell
	flags.StringVar(&c.Context, "context", os.Getenv(cli.ContextVariable),
		"use the servers and the credential of the context with this `NAME` (environment: "+cli.ContextVariable+")")
	flags.Lookup("context").DefValue = ""
	flags.StringVar(&c.Namespace, "namespace", os.Getenv(cli.NamespaceVariable),
		"the namespace of ids, and of what lists "+
			"show; ids are in your own without it, and lists show all (`NAME`; environment: "+cli.NamespaceVariable+")")
	flags.Lookup("namespace").DefValue = ""
	cli.SpanVar(flags, &c.Timeout, "timeout", defaultTimeout, "give up after this time")
	flags.StringVarP(&c.Output, "output", "o", cli.OutputTable, "output format: "+
		strings.Join(cli.OutputFormats, ", ")+"; table=COLUMN,... shows these columns")
	flags.StringVar(&c.JQ, "jq", "", "print what this jq `EXPRESSION` selects from the answer as JSON")
	flags.BoolVar(&c.Stale, "stale", false, "accept the answer of any node at once, even if it is slightly out of date")
	c.TLS.AddFlags(flags)
	c.Token.AddFlags(flags)
	flags.Uint64Var(&c.MinIndex, "min-index", 0,
		"accept the answer of any node that has applied this log index, such as the index of your own write")
	cli.CompleteFlag(root, "output", cli.OutputFormats...)

	for _, group := range groups {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
	}
	nouns := cli.NewNouns(c, declaredNouns)
	config.AddCommands(nouns)
	request.AddCommands(nouns)
	lease.AddCommands(nouns)
	usage.AddCommands(nouns)
	access.AddCommands(nouns)
	audit.AddCommands(nouns)
	operate.AddCommands(nouns)
	addServerCommands(nouns)
	nouns.Add("cluster", top.NewTopCmd)
	contexts.AddCommands(nouns)
	nouns.AddTo(root, dailyGroup, shortForms)
	root.AddCommand(cli.NewVersionCmd(c), reference.NewDocsCmd(c), cli.NewExitCodesTopic())
	cli.SetRoot(root)
	cli.SetHelp(root)
	c.AddCompletions(root)
	return root
}

func serversFromEnvironment() []string {
	if listed := os.Getenv(cli.ServerVariable); listed != "" {
		return strings.Split(listed, ",")
	}
	return []string{defaultServer}
}
