package request

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// longestReserve is the longest duration of a reservation.
const longestReserve = time.Hour

type allocateOptions struct {
	*cli.Env
	Options
	LeaseOptions
	dryRun, async bool
	from, file    string // the format and the file of the request, instead of --at
}

func newAllocateCmd(c *cli.Env) *cobra.Command {
	o := &allocateOptions{Env: c}
	cmd := &cobra.Command{
		Use: "create --at TREE[:node/path] {--amount RESOURCE=AMOUNT | --item RESOURCE}... | " +
			"create --from quota-manager FILE",
		Short: "Allocate amounts and items at nodes of one or more trees, all or nothing",
		Long: `Allocate amounts and items at nodes of one or more trees until they are released, all or nothing. Each
--amount and --item belongs to the --at before it. Every limit on the path from each node to its root must have
headroom.

--amount gpus=4..16/4 asks for 4 to 16 in steps of 4, and --scale 4..16 for 4 to 16 times all amounts: the most steps
that fit are allocated, and the answer says how many. Several ranges take their steps together and have equally many, at
most 64. A request with a range waits, preempts and is denied for its least amounts only.

--or ends one alternative and begins the next, up to 8 in order of preference: the first that fits is allocated, and the
answer says which. One that preempts others comes after all that do not. With --wait the request waits for all of them
and gets the one that fits first.

--item account asks for one free item, account=3 for three, account@dirty for one in another state, and account:a,b for
these two; the item that has been in its state for longest comes first.

If a limit forbids it, nothing is allocated, standard error names every such limit, and the exit code is 3; "quorate
explain" takes the same flags and shows what would help. Repeating a command with the same --id is safe: it allocates
once.

With --wait a request that does not fit now waits in the queue, and the command shows what blocks it. The queue is
ordered by --priority, then by arrival; a request that can never fit is denied at once. With --async the command
returns at once: repeat it with the same --id within the time of --keep to collect the grant.

With --ttl the allocation is a lease: it ends unless "quorate renew" is called in time. "quorate lease run" renews it
while a command runs.

With --reserve the allocation ends after that time, unless "quorate allocation confirm" keeps it; "quorate release
--restore" gives it up. With --force it is granted regardless of limits, to record existing usage.

With --from quota-manager the request is the Consumer document in FILE: one claim for each of its trees, with the
document's priorities and, unless --id is given, its id. The trees are those that "quorate apply --from quota-manager"
made.`,
		Example: `  quorate allocate --id job-1 --at cern:atlas/physics/higgs --amount cores=25
  quorate allocate --at tenants:tenant-1 --amount servers=2 --amount ram=16Gi \
                   --at providers:cloud-a/main --amount servers=2
  quorate allocate --id job-2 --user ann --group physics --application fit --priority 10 \
                   --at cern:atlas/physics --amount cores=1
  quorate allocate --id job-3 --reserve 5m --at cern:atlas/physics --amount cores=1
  quorate allocate --id job-5 --wait 1h --scale 4..16 --at cern:atlas/physics --amount cores=2
  quorate allocate --id job-6 --wait 10m --at gpus:a100 --amount gpus=4 --or --at gpus:h100 --amount gpus=4
  quorate allocate --id job-4 --ttl 10m --wait 1h --at ci:tenants/web --item aws-account --amount cores=4
  quorate allocate --from quota-manager examples/quota-manager/job1.json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.file = strings.Join(args, "")
			return o.runAllocate(cmd.Context())
		},
	}
	o.Options.AddFlags(cmd)
	o.LeaseOptions.AddFlags(cmd, 0)
	cmd.Flags().BoolVar(&o.async, "async", false,
		"return at once with exit code 9 while the request waits in the queue")
	cli.SpanVar(cmd.Flags(), &o.reserve, "reserve", 0, "reserve for this time, up to 1h; it ends unless it is confirmed")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "only report whether it would be granted")
	cmd.Flags().StringVar(&o.from, "from", "", "read the request from FILE, in this format: "+fromQuotaManager)
	cli.CompleteFlag(cmd, "from", fromQuotaManager)
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
	request, err := o.buildRequest(limited, quorate)
	if err != nil {
		return err
	}
	if err := o.ApplyTo(request); err != nil {
		return err
	}
	answer, err := o.sendRequest(ctx, limited, quorate, request)
	if err != nil {
		if client.MayBeDone(err) && !o.dryRun && !o.waitsForGrant() {
			o.Messagef("the request may have been granted nevertheless: to find out, repeat the command with --id %s",
				cli.ShellWord(request.GetId()))
		}
		return PrintDenial(o.Env, err)
	}
	return o.printGrant(answer)
}

func (o *allocateOptions) buildRequest(
	ctx context.Context, quorate *client.Client,
) (*quoratev1.AllocateRequest, error) {
	if o.from != "" {
		return o.buildFromFile(ctx, quorate)
	}
	return o.BuildMessage(ctx, o.Env, quorate)
}

func (o *allocateOptions) waitsForGrant() bool { return o.Wait > 0 && !o.async && !o.dryRun }

// sendRequest makes the request. A waiting request may take longer than one call.
func (o *allocateOptions) sendRequest(
	ctx, limited context.Context, quorate *client.Client, request *quoratev1.AllocateRequest,
) (*quoratev1.AllocateResponse, error) {
	if o.dryRun {
		return o.askDecision(limited, quorate, request)
	}
	request.NameHolders = true
	if !o.waitsForGrant() {
		return quorate.Allocations.Allocate(limited, request)
	}
	if !signal.Ignored(syscall.SIGHUP) { // as with nohup
		closed, stop := signal.NotifyContext(ctx, syscall.SIGHUP) // the terminal was closed: the request is withdrawn
		defer stop()
		ctx = closed
	}
	waiting, cancel := context.WithTimeout(ctx, o.Wait+o.Timeout)
	defer cancel()
	line := NewWaitingLine(o.Env)
	defer line.Close()
	return quorate.Wait(waiting, request, client.WithProgress(line.ReportProgress))
}

// askDecision returns what would happen, in the shape of what happens: a grant, or the error of a denial.
func (o *allocateOptions) askDecision(
	ctx context.Context, quorate *client.Client, request *quoratev1.AllocateRequest,
) (*quoratev1.AllocateResponse, error) {
	answer, err := quorate.Allocations.Explain(ctx, &quoratev1.ExplainRequest{
		Question: &quoratev1.ExplainRequest_Request{Request: request}, Read: o.ReadOptions(),
	})
	if err != nil {
		return nil, err
	}
	decision := answer.GetDecision()
	if decision.GetOutcome() == quoratev1.Outcome_OUTCOME_DENIED {
		denied := connect.NewError(connect.CodeResourceExhausted, errors.New(decision.GetExplanation()))
		detail, err := connect.NewErrorDetail(decision)
		if err != nil {
			return nil, err
		}
		denied.AddDetail(detail)
		return nil, denied
	}
	return &quoratev1.AllocateResponse{
		Decision: decision, Allocation: answer.GetAllocation(), Write: &quoratev1.WriteInfo{
			Index: answer.GetRead().GetIndex(), LedgerTimeMs: answer.GetRead().GetLedgerTimeMs(),
			Repetition: answer.GetAllocation() != nil,
		},
	}, nil
}

func (o *allocateOptions) checkFlags() error {
	reserves := o.reserve != 0
	switch {
	case reserves && (o.reserve < time.Millisecond || o.reserve > longestReserve):
		return cli.Usagef("--reserve must be between 1ms and 1h, not %v", o.reserve)
	case reserves && o.Force, reserves && o.dryRun, o.Force && o.dryRun:
		return cli.Usagef("use only one of --reserve, --force and --dry-run")
	case o.Wait > 0 && (reserves || o.Force):
		return cli.Usagef("--wait cannot be combined with --reserve or --force")
	case o.async && o.Wait == 0:
		return cli.Usagef("--async needs --wait")
	}
	if err := o.CheckSpans(); err != nil {
		return err
	}
	return o.checkFile()
}

func (o *allocateOptions) printGrant(answer *quoratev1.AllocateResponse) error {
	if answer.GetDecision().GetOutcome() == quoratev1.Outcome_OUTCOME_WAITING {
		return o.printQueued(answer)
	}
	switch {
	case answer.GetWrite().GetRepetition() && !o.waitsForGrant():
		o.Messagef("granted before; this call changed nothing")
	case o.dryRun:
		o.Messagef("dry run: it would be granted")
	case o.reserve > 0:
		id := cli.ShellWord(answer.GetAllocation().GetId())
		o.Messagef("reserved for %v: quorate allocation confirm %s keeps it, quorate release --restore %s gives it up",
			o.reserve, id, id)
	case holdsNothing(answer.GetAllocation()):
		o.Messagef("granted, and it holds nothing: all its amounts are 0")
	default:
		o.Messagef("granted")
	}
	return o.Print(answer, func(p *cli.Page) error {
		if answer.GetAllocation() == nil { // a dry run allocates nothing
			drawPlacements(o.Units, p, answer.GetDecision())
			return nil
		}
		return o.Units.DrawAllocation(p, answer.GetAllocation(), answer.GetWrite().GetLedgerTimeMs())
	})
}

// holdsNothing reports whether all amounts are zero, as those of a shell variable may be.
func holdsNothing(a *quoratev1.Allocation) bool {
	for _, claim := range a.GetClaims() {
		if len(claim.GetItems()) > 0 {
			return false
		}
		for _, amount := range claim.GetAmounts() {
			if amount != 0 {
				return false
			}
		}
	}
	return len(a.GetClaims()) > 0
}

// printQueued prints the position of a request that stays in the queue, and what blocks it.
func (o *allocateOptions) printQueued(answer *quoratev1.AllocateResponse) error {
	err := o.Print(answer, func(p *cli.Page) error {
		if err := o.Units.DrawAllocation(p, answer.GetAllocation(), answer.GetWrite().GetLedgerTimeMs()); err != nil {
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
	return &cli.WaitingError{Message: fmt.Sprintf("the request is in the queue and holds nothing yet: repeat the "+
		"command with --id %s within %v to collect the grant",
		cli.ShellWord(answer.GetAllocation().GetId()), cli.FormatSpan(cmp.Or(o.Keep, defaultKeep)))}
}

func drawPlacements(u cli.Units, p *cli.Page, decision *quoratev1.Decision) {
	if number := decision.GetAlternative(); number > 0 {
		p.Linef("%s would be given", cli.AlternativeText(number))
	}
	for _, at := range decision.GetPlacements() {
		if ranges := at.GetRangeAmounts(); len(ranges) > 0 {
			p.Linef("%s would hold %s", cli.PlaceOf(at.GetTree(), at.GetNode()), u.FormatAmounts(at.GetTree(), ranges))
		}
		if at.GetPlaced() != at.GetNode() {
			p.Linef("%s would be counted at %s", cli.PlaceOf(at.GetTree(), at.GetNode()),
				cli.PlaceOf(at.GetTree(), at.GetPlaced()))
		}
	}
	for _, victim := range decision.GetPreempted() {
		p.Linef("would preempt %s", u.VictimText(victim))
	}
}

// PrintDenial prints the decision of a denial as JSON or YAML, in the shape of a grant. A table has nothing to add to
// the error on standard error.
func PrintDenial(c *cli.Env, err error) error {
	decision, found := client.DecisionOf(err)
	if timedOut := (*client.TimedOutError)(nil); errors.As(err, &timedOut) {
		decision, found = timedOut.Decision, true
	}
	if !found || c.IsTable() || c.Output == cli.OutputName {
		return err
	}
	if unprinted := c.Print(&quoratev1.AllocateResponse{Decision: decision}, nil); unprinted != nil {
		return unprinted
	}
	return err
}
