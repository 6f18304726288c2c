package lease

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/cmd/quorate/internal/request"
)

const (
	// runTTL is how long a lease lasts whose command says nothing.
	runTTL = time.Minute
	// shortestRunTTL leaves time to renew, and to end the command.
	shortestRunTTL = time.Second
	// defaultKillAfter is how long a command has to end by itself when its lease is lost.
	defaultKillAfter = 10 * time.Second
	// killPart is the part of the TTL that it may take at most, so that there is time left to renew.
	killPart = 3
	// What shells answer for commands that cannot be started.
	exitNotExecutable, exitNotFound = 126, 127
	// mostCodesFrom keeps our exit codes below those of commands that cannot be started.
	mostCodesFrom = 100
	// exitSignal is added to the number of the signal that ended a command.
	exitSignal = 128
)

// forwarded are the signals that are meant for the command. A closed pipe is ours: it must not end us before the release.
var forwarded = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
}

type leaseRunOptions struct {
	*cli.Env
	request.Options
	request.LeaseOptions
	resources runResources
	killAfter time.Duration
	codesFrom int
}

func newLeaseRunCmd(c *cli.Env) *cobra.Command {
	o := &leaseRunOptions{Env: c, resources: runResources{variables: map[string]string{}}}
	o.resources.claims = &o.Claims
	cmd := &cobra.Command{
		Use:   "run {--resource RESOURCE | --at TREE:node/path --item RESOURCE}... -- COMMAND [ARG...]",
		Short: "Run a command for as long as it holds a lease",
		Long: `Run a command for as long as it holds a lease: wait for the lease, start the command, renew the lease while it runs,
and release it at the end, whatever happened.

--resource asks for --count items of a resource, at the --at before it, or else at the root of the only tree that has
such items. --at, --amount and --item work as in "quorate allocate".

The command finds the names of its items in LEASED_RESOURCE, with blanks between them, and those of one resource also in
the variable that --resource RESOURCE=VARIABLE or --env RESOURCE=VARIABLE names; the fence of the grant in QUORATE_FENCE,
for whatever the lease guards; and the id in QUORATE_LEASE.

Signals are passed on to the command and everything that it has started. If the lease is lost, all of that gets SIGTERM,
and after --kill-after SIGKILL (after a third of the TTL if that is shorter): early enough for all of it to have ended
before anybody else can hold what it held; without a span of grace in the tree, whoever is more important does so at once.

The exit code is that of the command, or 7 if the lease was lost; see "quorate help exit-codes". A command may end with 7
itself: --codes-from 100 makes it 107, and so with all codes that are not the command's.`,
		Example: `  quorate lease run --resource aws-quota-slice --count 1 --ttl 60s --wait 2h -- ./job.sh
  quorate lease run --at ci:tenants/web --resource aws-account=ACCOUNT --amount cores=4 --wait 1h -- make test`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.shiftExitCode(o.runJob(cmd.Context(), args)) },
	}
	o.Options.AddFlags(cmd)
	o.LeaseOptions.AddFlags(cmd, runTTL)
	flags := cmd.Flags()
	flags.SetInterspersed(false) // what follows the command belongs to it
	flags.Var(resourceFlag{&o.resources}, "resource", "items to hold; their names are in the variable too, if one is named")
	flags.Var(countFlag{&o.resources}, "count", "how many of the --resource before it (default 1)")
	flags.Var(envFlag{&o.resources}, "env", "also put the names of the items of this resource into this variable")
	flags.DurationVar(&o.killAfter, "kill-after", defaultKillAfter, "how long the command has to end by itself when the lease is lost")
	flags.IntVar(&o.codesFrom, "codes-from", 0, "add `N`, at most 100, to the exit codes of quorate itself, to tell them from those of the command")
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
	pipes := make(chan os.Signal, 1) // taken, and never looked at
	signal.Notify(pipes, syscall.SIGPIPE)
	defer signal.Stop(pipes)

	lease, err := o.acquireLease(context.WithoutCancel(ctx), signals)
	if err != nil {
		return err
	}
	defer o.releaseLease(lease)
	o.Messagef("leased %s under fence %d", o.Units.ClaimsText(lease.Allocation()), lease.Fence())
	guard := &jobGuard{Env: o.Env, lease: lease, signals: signals, killAfter: min(o.killAfter, o.TTL/killPart)}
	return guard.runJob(job, o.jobEnvironment(lease))
}

// shiftExitCode tells our exit codes from those of the command, if that is wanted.
func (o *leaseRunOptions) shiftExitCode(err error) error {
	if status := (*cli.ExitError)(nil); err == nil || errors.As(err, &status) && !status.Ours {
		return err
	}
	return &cli.ShiftedError{Err: err, By: min(max(o.codesFrom, 0), mostCodesFrom)}
}

func (o *leaseRunOptions) checkFlags() error {
	switch {
	case o.codesFrom < 0 || o.codesFrom > mostCodesFrom:
		err := cli.Usagef("--codes-from is a number from 0 to %d, not %d", mostCodesFrom, o.codesFrom)
		o.codesFrom = 0
		return err
	case o.TTL == 0:
		return cli.Usagef("--ttl must be more than 0: without it a job that dies would hold for ever")
	case o.killAfter <= 0 || o.TTL > 0 && o.TTL < shortestRunTTL:
		return cli.Usagef("--kill-after must be more than 0, and --ttl %v or more", shortestRunTTL)
	case len(o.Claims.List)+len(o.resources.unplaced) == 0:
		return cli.Usagef("say what the command needs: --resource RESOURCE, or --at TREE:node/path --item RESOURCE")
	case o.Force && o.Wait > 0:
		return cli.Usagef("--wait is for what is to be held within the limits: leave --force out")
	}
	if err := o.resources.checkVariables(); err != nil {
		return err
	}
	if err := o.LeaseOptions.CheckSpans(); err != nil {
		return err
	}
	if len(o.Claims.List) == 0 {
		return nil // the places are found later
	}
	return o.Options.CheckClaims()
}

// acquireLease waits for the lease. A signal breaks the wait off.
func (o *leaseRunOptions) acquireLease(ctx context.Context, signals <-chan os.Signal) (*client.Lease, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	granted := make(chan struct{})
	caught := make(chan struct{})
	go func() {
		defer close(caught)
		select {
		case s := <-signals:
			cancel(&cli.ExitError{Code: exitSignal + signalNumber(s)})
		case <-granted:
		}
	}()
	lease, err := o.waitForLease(ctx)
	close(granted)
	<-caught
	interrupted := (*cli.ExitError)(nil)
	if !errors.As(context.Cause(ctx), &interrupted) {
		return lease, request.PrintDenial(o.Env, err)
	}
	if lease != nil {
		o.releaseLease(lease)
	}
	o.Messagef("interrupted; the request is taken back")
	return nil, interrupted
}

// waitForLease makes the request, whose places and units come from the server.
func (o *leaseRunOptions) waitForLease(ctx context.Context) (*client.Lease, error) {
	o.Patient = true
	quorate, limited, cancel, err := o.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer cancel()
	if err := o.LearnUnits(limited, quorate); err != nil {
		return nil, err
	}
	if err := o.resources.placeResources(o.Units); err != nil {
		return nil, err
	}
	message, err := o.BuildMessage(limited, o.Env, quorate)
	if err != nil {
		return nil, err
	}
	if err := o.ApplyTo(message); err != nil {
		return nil, err
	}
	waiting, cancelWait := context.WithTimeout(ctx, o.Wait+o.Timeout)
	defer cancelWait()
	line := request.NewWaitingLine(o.Env)
	defer line.Close()
	return quorate.Acquire(waiting, message,
		client.WithProgress(line.ReportProgress), client.WithMargin(min(o.killAfter, o.TTL/killPart)))
}

// releaseLease gives back what is held, whatever happened.
func (o *leaseRunOptions) releaseLease(lease *client.Lease) {
	ctx, cancel := context.WithTimeout(context.Background(), o.Timeout)
	defer cancel()
	if err := lease.Release(ctx); err != nil {
		o.Messagef("quorate: %s could not be released, and ends by itself within %v: %s", cli.ShellWord(lease.ID()), cli.FormatSpan(o.TTL), cli.ErrorText(err))
	}
}

// jobEnvironment is what the command finds in its environment beside ours.
func (o *leaseRunOptions) jobEnvironment(lease *client.Lease) []string {
	return append(o.resources.itemVariables(lease.Allocation()),
		"LEASED_RESOURCE="+strings.Join(lease.Items(), " "),
		"QUORATE_FENCE="+strconv.FormatUint(lease.Fence(), 10),
		"QUORATE_LEASE="+lease.ID())
}

// signalNumber is that of a signal of the system.
func signalNumber(s os.Signal) int {
	if number, is := s.(syscall.Signal); is {
		return int(number)
	}
	return 0
}

// lostText says why a command is ended.
func lostText(cause error, grace time.Duration) string {
	return fmt.Sprintf("%v; the command has %s to end", cause, cli.RoundSpan(grace.Milliseconds()))
}

func newLeaseCmd(c *cli.Env) *cobra.Command {
	return cli.NewGroup("lease", "Run a command for as long as it holds a lease", newLeaseRunCmd(c))
}
