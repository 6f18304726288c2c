//go:build unix

package lease

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/cmd/quorate/internal/request"
)

// Variables that tell a job the id and the fence of its lease.
const leaseVariable, fenceVariable = "QUORATE_LEASE", "QUORATE_FENCE"

// mostLabels is how many labels the API takes.
const mostLabels = 32

// jobLeaseOptions are the flags of commands that hold a lease for a job: what it needs, for how long a request waits,
// and how long the processes of the job may take to end if the lease is lost.
type jobLeaseOptions struct {
	*cli.Env
	request.Options
	request.LeaseOptions
	resources runResources
	killAfter time.Duration
}

func (o *jobLeaseOptions) addFlags(cmd *cobra.Command) {
	o.resources = runResources{claims: &o.Claims, variables: map[string]string{}}
	o.Options.AddFlags(cmd)
	o.LeaseOptions.AddFlags(cmd, runTTL)
	flags := cmd.Flags()
	flags.Var(resourceFlag{&o.resources}, "resource",
		"items to allocate; their names are in the variable too, if one is named")
	flags.Var(countFlag{&o.resources}, "count", "how many of the --resource before it (default 1)")
	flags.Var(envFlag{&o.resources}, "env", "also put the names of the items of this resource into this variable")
	cli.SpanVar(flags, &o.killAfter, "kill-after", defaultKillAfter,
		"time between SIGTERM and SIGKILL when the lease is lost")
}

// stopTime is how long the processes of the job may take to end; the rest of the TTL is needed to renew.
func (o *jobLeaseOptions) stopTime() time.Duration { return min(o.killAfter, o.TTL/killPart) }

func (o *jobLeaseOptions) checkFlags() error {
	switch {
	case o.TTL == 0:
		return cli.Usagef("--ttl must be more than 0: without it, a job that dies would hold its resources for ever")
	case o.killAfter <= 0 || o.TTL > 0 && o.TTL < shortestRunTTL:
		return cli.Usagef("--kill-after must be more than 0, and --ttl %v or more", shortestRunTTL)
	case len(o.Claims.List)+len(o.resources.unplaced) == 0:
		return cli.Usagef("name what the command needs: --resource RESOURCE, or --at TREE[:node/path] --item RESOURCE")
	case o.Force && o.Wait > 0:
		return cli.Usagef("--wait cannot be combined with --force")
	}
	if err := o.resources.checkVariables(); err != nil {
		return err
	}
	if err := o.CheckSpans(); err != nil {
		return err
	}
	if len(o.Claims.List) == 0 {
		return nil // the trees are found later
	}
	return o.CheckClaims()
}

func (o *jobLeaseOptions) acquireLease(ctx context.Context, signals <-chan os.Signal) (*client.Lease, error) {
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
	o.Messagef("interrupted; the request was withdrawn")
	return nil, interrupted
}

// waitForLease makes the request. The trees of resources without --at, and the units, come from the server.
func (o *jobLeaseOptions) waitForLease(ctx context.Context) (*client.Lease, error) {
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
	o.labelWithJob(message)
	waiting, cancelWait := context.WithTimeout(ctx, o.Wait+o.Timeout)
	defer cancelWait()
	line := request.NewWaitingLine(o.Env)
	defer line.Close()
	return quorate.Acquire(waiting, message,
		client.WithProgress(line.ReportProgress), client.WithMargin(o.stopTime()))
}

// labelWithJob says which CI job the lease is for. Labels of the caller come first.
func (o *jobLeaseOptions) labelWithJob(message *quoratev1.AllocateRequest) {
	for name, value := range cli.JobLabels(os.Getenv) {
		if _, known := message.GetLabels()[name]; known || len(message.GetLabels()) >= mostLabels {
			continue
		}
		if message.Labels == nil {
			message.Labels = map[string]string{}
		}
		message.Labels[name] = value
	}
}

// releaseLease releases the lease, also after an interrupt or a failure. It does not try for longer than the lease
// lasts.
func (o *jobLeaseOptions) releaseLease(lease *client.Lease) {
	left := o.Timeout
	if ends := lease.Ends(); !ends.IsZero() {
		left = min(left, time.Until(ends))
	}
	if left <= 0 {
		return // it has ended by itself
	}
	ctx, cancel := context.WithTimeout(context.Background(), left)
	defer cancel()
	if err := lease.Release(ctx); err != nil {
		o.Messagef("quorate: %s could not be released and expires within %v: %s", cli.ShellWord(lease.ID()),
			cli.FormatSpan(o.TTL), cli.ErrorText(err))
	}
}

// jobEnvironment are the variables that the command gets in addition to ours.
func (o *jobLeaseOptions) jobEnvironment(lease *client.Lease) []string {
	return append(o.resources.itemVariables(lease.Allocation()),
		"LEASED_RESOURCE="+strings.Join(lease.Items(), " "),
		fenceVariable+"="+strconv.FormatUint(lease.Fence(), 10),
		leaseVariable+"="+lease.ID(), cli.NamespaceVariable+"="+lease.Namespace())
}
