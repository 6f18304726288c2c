package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// longestReserve is the longest time that a reservation may stand.
const longestReserve = time.Hour

type allocateOptions struct {
	*cli
	requestOptions
	leaseOptions
	dryRun, async bool
}

func newAllocateCmd(c *cli) *cobra.Command {
	o := &allocateOptions{cli: c}
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
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.requestOptions.addFlags(cmd)
	o.leaseOptions.addFlags(cmd, 0)
	cmd.Flags().BoolVar(&o.async, "async", false, "do not stay while it waits; exit code 9 says that it does")
	cmd.Flags().DurationVar(&o.reserve, "reserve", 0, "hold it for this time only, up to 1h, until it is confirmed")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "only say whether it would fit")
	return cmd
}

func (o *allocateOptions) run(ctx context.Context) error {
	if err := o.checkFlags(); err != nil {
		return err
	}
	o.patient = o.stays()
	quorate, limited, cancel, err := o.connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	request, err := o.message(limited, o.cli, quorate)
	if err != nil {
		return err
	}
	if err := o.set(request); err != nil {
		return err
	}
	answer, err := o.ask(ctx, limited, quorate, request)
	if err != nil {
		if client.MayBeDone(err) && !o.dryRun && !o.stays() {
			o.say("it may be held all the same; to know, repeat the command with --id %s", shellWord(request.GetId()))
		}
		return o.denied(err)
	}
	return o.granted(answer)
}

// stays tells whether the command waits for the grant.
func (o *allocateOptions) stays() bool { return o.wait > 0 && !o.async && !o.dryRun }

// ask makes the request; one that waits may take longer than a call.
func (o *allocateOptions) ask(
	ctx, limited context.Context, quorate *client.Client, request *quoratev1.AllocateRequest,
) (*quoratev1.AllocateResponse, error) {
	if o.dryRun {
		request.Mode = quoratev1.Mode_MODE_DRY_RUN
		request.WaitMs, request.KeepMs = 0, 0
	}
	if !o.stays() {
		return quorate.Allocations.Allocate(limited, request)
	}
	waiting, cancel := context.WithTimeout(ctx, o.wait+o.timeout)
	defer cancel()
	line := newWaitingLine(o.cli)
	defer line.end()
	return quorate.Wait(waiting, request, client.WithProgress(line.report))
}

func (o *allocateOptions) checkFlags() error {
	reserves := o.reserve != 0
	switch {
	case reserves && (o.reserve < time.Millisecond || o.reserve > longestReserve):
		return usagef("--reserve is a time from 1ms to 1h, not %v", o.reserve)
	case reserves && o.force, reserves && o.dryRun, o.force && o.dryRun:
		return usagef("--reserve, --force and --dry-run exclude each other")
	case o.wait > 0 && (reserves || o.force):
		return usagef("--wait is for what is to be held within the limits: leave --reserve and --force out")
	case o.async && o.wait == 0:
		return usagef("--async says not to stay while it waits: it needs --wait")
	}
	if err := o.leaseOptions.check(); err != nil {
		return err
	}
	return o.requestOptions.check()
}

func (o *allocateOptions) granted(answer *quoratev1.AllocateResponse) error {
	if answer.GetDecision().GetOutcome() == quoratev1.Outcome_OUTCOME_WAITING {
		return o.queued(answer)
	}
	switch {
	case o.dryRun:
		o.say("dry run: it would be granted")
	case answer.GetRepeated() && !o.stays():
		o.say("granted before; this call changed nothing")
	case o.reserve > 0:
		id := shellWord(answer.GetAllocation().GetId())
		o.say("reserved for %v: quorate confirm %s keeps it, quorate cancel %s gives it up", o.reserve, id, id)
	default:
		o.say("granted")
	}
	return o.print(answer, func(p *page) error {
		if answer.GetAllocation() == nil { // a dry run holds nothing
			drawPlacements(p, answer.GetDecision())
			return nil
		}
		return o.units.drawAllocation(p, answer.GetAllocation(), answer.GetLedgerTimeMs())
	})
}

// queued says where a request stands that was left in the queue, and what it waits for.
func (o *allocateOptions) queued(answer *quoratev1.AllocateResponse) error {
	err := o.print(answer, func(p *page) error {
		if err := o.units.drawAllocation(p, answer.GetAllocation(), answer.GetLedgerTimeMs()); err != nil {
			return err
		}
		for _, v := range answer.GetDecision().GetViolations() {
			p.line("  %s", o.units.violation(v))
		}
		return nil
	})
	if err != nil || o.dryRun {
		return err
	}
	return &waitingError{fmt.Sprintf("it waits and holds nothing yet: repeat the command with --id %s within %v to come for it",
		shellWord(answer.GetAllocation().GetId()), shortSpan(cmp.Or(o.keep, defaultKeep)))}
}

// drawPlacements writes where a request would be counted, where that is not what it says, and whom it would preempt.
func drawPlacements(p *page, decision *quoratev1.Decision) {
	for _, at := range decision.GetPlacements() {
		if at.GetPlaced() != at.GetNode() {
			p.line("%s would be counted at %s", place{at.GetTree(), at.GetNode()}, place{at.GetTree(), at.GetPlaced()})
		}
	}
	for _, victim := range decision.GetPreempted() {
		p.line("would preempt %s at %s", victim.GetId(), place{victim.GetTree(), victim.GetNode()})
	}
}

// denied gives programs the decision in the same shape as a grant's; people read it on standard error.
func (c *cli) denied(err error) error {
	decision, found := client.DecisionOf(err)
	if timedOut := (*client.TimedOutError)(nil); errors.As(err, &timedOut) {
		decision, found = timedOut.Decision, true
	}
	if !found || c.output == outputTable {
		return err
	}
	if unprinted := c.print(&quoratev1.AllocateResponse{Decision: decision}, nil); unprinted != nil {
		return unprinted
	}
	return err
}
