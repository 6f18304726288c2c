package request

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// longestReserve is the longest time that a reservation may stand.
const longestReserve = time.Hour

type allocateOptions struct {
	*cli.Env
	Options
	LeaseOptions
	dryRun, async bool
}

func newAllocateCmd(c *cli.Env) *cobra.Command {
	o := &allocateOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "allocate --at TREE:node/path {--amount RESOURCE=AMOUNT | --item RESOURCE}...",
		Short: "Hold amounts and items at nodes of one or more trees, all or nothing",
		Long: `Hold amounts and items at nodes of one or more trees until they are released, all or nothing. Each --amount and
--item belongs to the --at before it. Every limit on the way from each node to its root must have room.

--item account asks for one item that is free, account=3 for three, account@dirty for one in another state, and
account:a,b for these two; the one that has been in its state for longest comes first.

If a limit stands in the way, nothing is held, every such limit is named on standard error, and the exit code
is 3; "quorate explain" takes the same flags and says what would help. Repeating a command with the same --id
is safe: it holds once.

With --wait it waits in the queue if it does not fit now, and says for what. The queue is ordered by --priority, then by
arrival; whoever can never fit is denied at once. With --async the command does not stay: repeat it with the same --id
within the time of --keep to come for the grant.

With --ttl it is a lease: it ends by itself unless "quorate renew" is called in time. "quorate lease run" does that for
a command.

With --reserve it is held for that time only, until "quorate confirm" keeps it or "quorate cancel" gives it up.
With --force it is held whatever the limits say, for use that exists already.`,
		Example: `  quorate allocate --id job-1 --at cern:atlas/physics/higgs --amount cores=25
  quorate allocate --at tenants:tenant-1 --amount servers=2 --amount ram=16Gi \
                   --at providers:cloud-a/main --amount servers=2
  quorate allocate --id job-2 --user ann --group physics --application fit --priority 10 \
                   --at cern:atlas/physics --amount cores=1
  quorate allocate --id job-3 --reserve 5m --at cern:atlas/physics --amount cores=1
  quorate allocate --id job-4 --ttl 10m --wait 1h --at ci:tenants/web --item aws-account --amount cores=4`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.runAllocate(cmd.Context()) },
	}
	o.Options.AddFlags(cmd)
	o.LeaseOptions.AddFlags(cmd, 0)
	cmd.Flags().BoolVar(&o.async, "async", false, "do not stay while it waits; exit code 9 says that it does")
	cmd.Flags().DurationVar(&o.reserve, "reserve", 0, "hold it for this time only, up to 1h, until it is confirmed")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "only say whether it would fit")
	return cmd
}

func (o *allocateOptions) runAllocate(ctx context.Context) error {
	if err := o.checkFlags(); err != nil {
		return err
	}
	o.Patient = o.waitsForGrant()
	quorate, limited, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	request, err := o.BuildMessage(limited, o.Env, quorate)
	if err != nil {
		return err
	}
	if err := o.ApplyTo(request); err != nil {
		return err
	}
	answer, err := o.sendRequest(ctx, limited, quorate, request)
	if err != nil {
		if client.MayBeDone(err) && !o.dryRun && !o.waitsForGrant() {
			o.Messagef("it may be held all the same; to know, repeat the command with --id %s", cli.ShellWord(request.GetId()))
		}
		return PrintDenial(o.Env, err)
	}
	return o.printGrant(answer)
}

// waitsForGrant tells whether the command waits for the grant.
func (o *allocateOptions) waitsForGrant() bool { return o.Wait > 0 && !o.async && !o.dryRun }

// sendRequest makes the request; one that waits may take longer than a call.
func (o *allocateOptions) sendRequest(
	ctx, limited context.Context, quorate *client.Client, request *quoratev1.AllocateRequest,
) (*quoratev1.AllocateResponse, error) {
	if o.dryRun {
		request.Mode = quoratev1.Mode_MODE_DRY_RUN
		request.WaitMs, request.KeepMs = 0, 0
	}
	if !o.waitsForGrant() {
		return quorate.Allocations.Allocate(limited, request)
	}
	waiting, cancel := context.WithTimeout(ctx, o.Wait+o.Timeout)
	defer cancel()
	line := NewWaitingLine(o.Env)
	defer line.Close()
	return quorate.Wait(waiting, request, client.WithProgress(line.ReportProgress))
}

func (o *allocateOptions) checkFlags() error {
	reserves := o.reserve != 0
	switch {
	case reserves && (o.reserve < time.Millisecond || o.reserve > longestReserve):
		return cli.Usagef("--reserve is a time from 1ms to 1h, not %v", o.reserve)
	case reserves && o.Force, reserves && o.dryRun, o.Force && o.dryRun:
		return cli.Usagef("--reserve, --force and --dry-run exclude each other")
	case o.Wait > 0 && (reserves || o.Force):
		return cli.Usagef("--wait is for what is to be held within the limits: leave --reserve and --force out")
	case o.async && o.Wait == 0:
		return cli.Usagef("--async says not to stay while it waits: it needs --wait")
	}
	if err := o.LeaseOptions.CheckSpans(); err != nil {
		return err
	}
	return o.Options.CheckClaims()
}

func (o *allocateOptions) printGrant(answer *quoratev1.AllocateResponse) error {
	if answer.GetDecision().GetOutcome() == quoratev1.Outcome_OUTCOME_WAITING {
		return o.printQueued(answer)
	}
	switch {
	case o.dryRun:
		o.Messagef("dry run: it would be granted")
	case answer.GetRepeated() && !o.waitsForGrant():
		o.Messagef("granted before; this call changed nothing")
	case o.reserve > 0:
		id := cli.ShellWord(answer.GetAllocation().GetId())
		o.Messagef("reserved for %v: quorate confirm %s keeps it, quorate cancel %s gives it up", o.reserve, id, id)
	default:
		o.Messagef("granted")
	}
	return o.Print(answer, func(p *cli.Page) error {
		if answer.GetAllocation() == nil { // a dry run holds nothing
			drawPlacements(p, answer.GetDecision())
			return nil
		}
		return o.Units.DrawAllocation(p, answer.GetAllocation(), answer.GetLedgerTimeMs())
	})
}

// printQueued says where a request stands that was left in the queue, and what it waits for.
func (o *allocateOptions) printQueued(answer *quoratev1.AllocateResponse) error {
	err := o.Print(answer, func(p *cli.Page) error {
		if err := o.Units.DrawAllocation(p, answer.GetAllocation(), answer.GetLedgerTimeMs()); err != nil {
			return err
		}
		for _, v := range answer.GetDecision().GetViolations() {
			p.Linef("  %s", o.Units.ViolationText(v))
		}
		return nil
	})
	if err != nil || o.dryRun {
		return err
	}
	return &cli.WaitingError{Message: fmt.Sprintf("it waits and holds nothing yet: repeat the command with --id %s within %v to come for it",
		cli.ShellWord(answer.GetAllocation().GetId()), cli.FormatSpan(cmp.Or(o.Keep, defaultKeep)))}
}

// drawPlacements writes where a request would be counted, where that is not what it says, and whom it would preempt.
func drawPlacements(p *cli.Page, decision *quoratev1.Decision) {
	for _, at := range decision.GetPlacements() {
		if at.GetPlaced() != at.GetNode() {
			p.Linef("%s would be counted at %s", cli.PlaceOf(at.GetTree(), at.GetNode()), cli.PlaceOf(at.GetTree(), at.GetPlaced()))
		}
	}
	for _, victim := range decision.GetPreempted() {
		p.Linef("would preempt %s at %s", victim.GetId(), cli.PlaceOf(victim.GetTree(), victim.GetNode()))
	}
}

// PrintDenial gives programs the decision in the same shape as a grant's; people read it on standard error.
func PrintDenial(c *cli.Env, err error) error {
	decision, found := client.DecisionOf(err)
	if timedOut := (*client.TimedOutError)(nil); errors.As(err, &timedOut) {
		decision, found = timedOut.Decision, true
	}
	if !found || c.Output == cli.OutputTable {
		return err
	}
	if unprinted := c.Print(&quoratev1.AllocateResponse{Decision: decision}, nil); unprinted != nil {
		return unprinted
	}
	return err
}
