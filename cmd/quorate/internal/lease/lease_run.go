//go:build unix

package lease

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

const (
	// runTTL is the default TTL.
	runTTL = time.Minute
	// shortestRunTTL leaves time to renew the lease and to end the command.
	shortestRunTTL = time.Second
	// defaultKillAfter is the default time between SIGTERM and SIGKILL after a lost lease.
	defaultKillAfter = 10 * time.Second
	// killPart bounds that time to a part of the TTL, because the rest is needed to renew.
	killPart = 3
	// Exit codes of shells for commands that cannot be started.
	exitNotExecutable, exitNotFound = 126, 127
	// mostCodesFrom keeps shifted exit codes below exitNotExecutable.
	mostCodesFrom = 100
	// exitSignal is added to the number of the signal that ended a command.
	exitSignal = 128
)

// forwarded are the signals that are passed on to the command. SIGPIPE is not: it concerns the output of quorate
// itself, and must not end it before the release.
var forwarded = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
}

type leaseRunOptions struct {
	jobLeaseOptions
	codesFrom int
}

func newLeaseRunCmd(c *cli.Env) *cobra.Command {
	o := &leaseRunOptions{jobLeaseOptions: jobLeaseOptions{Env: c}}
	cmd := &cobra.Command{
		Use:   "run {--resource RESOURCE | --at TREE[:node/path] --item RESOURCE}... -- COMMAND [ARG...]",
		Short: "Run a command while holding a lease",
		Long: `Run a command while holding a lease: wait for the lease, start the command, renew the lease while it
runs, and release it at the end, however the command ends.

--resource asks for --count items of a resource, at the --at before it, or else at the root of the only tree with such
items. --at, --amount and --item work as in "quorate allocate".

The environment of the command has the names of its items in LEASED_RESOURCE, separated by blanks, and those of one
resource also in the variable that --resource RESOURCE=VARIABLE or --env RESOURCE=VARIABLE names; the fence of the grant
in QUORATE_FENCE, for resources that check fences; and the id in QUORATE_LEASE.

Signals are passed on to the command and its process group. If the lease is lost, everything that the command has
started, on Linux also in other sessions, gets SIGTERM, and SIGKILL after --kill-after (after a third of the TTL if that
is shorter): early enough that all of it has ended before another holder can be granted the same items. In a tree
without a grace period, a request that preempts the lease is granted at once. What the command leaves behind when it
ends is ended in the same way.

In a job of a CI system (GitHub Actions, Gitea Actions, GitLab, Buildkite, Jenkins) the lease has the labels ci-job,
ci-url and ci-user, which "quorate queue list" and "quorate lease list" show.

The exit code is that of the command, or 7 if the lease was lost; see "quorate help exit-codes". If the command may end
with 7 itself, --codes-from 100 turns that code into 107, and so with all codes of quorate itself.`,
		Example: `  quorate lease run --resource aws-quota-slice --count 1 --ttl 60s --wait 2h -- ./job.sh
  quorate lease run --at ci:tenants/web --resource aws-account=ACCOUNT --amount cores=4 --wait 1h -- make test`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.shiftExitCode(o.runJob(cmd.Context(), args)) },
	}
	o.addFlags(cmd)
	flags := cmd.Flags()
	flags.SetInterspersed(false) // flags after the command belong to it
	flags.IntVar(&o.codesFrom, "codes-from", 0,
		"add `N`, at most 100, to the exit codes of quorate, to distinguish them from those of the command")
	return cmd
}

func (o *leaseRunOptions) runJob(ctx context.Context, args []string) error {
	if err := o.checkFlags(); err != nil {
		return err
	}
	job, err := lookUpJob(o.Env, args)
	if err != nil {
		return err
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded...)
	defer signal.Stop(signals)
	pipes := make(chan os.Signal, 1) // caught and ignored
	signal.Notify(pipes, syscall.SIGPIPE)
	defer signal.Stop(pipes)

	lease, err := o.acquireLease(context.WithoutCancel(ctx), signals)
	if err != nil {
		return err
	}
	defer o.releaseLease(lease)
	o.Messagef("leased %s under fence %d", o.Units.ClaimsText(lease.Allocation()), lease.Fence())
	guard := &jobGuard{Env: o.Env, lease: lease, signals: signals, killAfter: o.stopTime()}
	return guard.runJob(job, o.jobEnvironment(lease))
}

// shiftExitCode adds --codes-from to exit codes of quorate itself, and leaves those of the command unchanged.
func (o *leaseRunOptions) shiftExitCode(err error) error {
	if status := (*cli.ExitError)(nil); err == nil || errors.As(err, &status) && !status.Ours {
		return err
	}
	return &cli.ShiftedError{Err: err, By: min(max(o.codesFrom, 0), mostCodesFrom)}
}

func (o *leaseRunOptions) checkFlags() error {
	if o.codesFrom < 0 || o.codesFrom > mostCodesFrom {
		err := cli.Usagef("--codes-from must be between 0 and %d, not %d", mostCodesFrom, o.codesFrom)
		o.codesFrom = 0
		return err
	}
	return o.jobLeaseOptions.checkFlags()
}

func signalNumber(s os.Signal) int {
	if number, ok := s.(syscall.Signal); ok {
		return int(number)
	}
	return 0
}

func lostText(cause error, grace time.Duration) string {
	return fmt.Sprintf("%v; the command has %s to end", cause, cli.RoundSpan(grace.Milliseconds()))
}
