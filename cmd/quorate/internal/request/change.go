package request

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// changeOptions are the flags of commands that change what an allocation holds.
type changeOptions struct {
	*cli.Env
	fence, generation uint64
	dryRun            bool
}

func (o *changeOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().Uint64Var(&o.fence, "fence", 0, "fence that it must have (default: any)")
	cmd.Flags().Uint64Var(&o.generation, "generation", 0,
		"number of this change, counted up with each: the same again is a repetition, and an earlier one is refused")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "only report whether it would be granted")
}

type changeAnswer interface {
	proto.Message
	GetAllocation() *quoratev1.Allocation
	GetDecision() *quoratev1.Decision
	GetWrite() *quoratev1.WriteInfo
}

func (o *changeOptions) print(answer changeAnswer, word string, parts ...*quoratev1.Allocation) error {
	switch {
	case answer.GetWrite().GetRepetition():
		o.Messagef("%s before; this call changed nothing", word)
	case o.dryRun:
		o.Messagef("dry run: it would be granted")
	default:
		o.Messagef("%s", word)
	}
	return o.Print(answer, func(p *cli.Page) error {
		if o.dryRun && !answer.GetWrite().GetRepetition() {
			drawPlacements(o.Units, p, answer.GetDecision())
			return nil
		}
		if err := o.draw(p, answer, parts); err != nil {
			return err
		}
		for _, victim := range answer.GetDecision().GetPreempted() {
			p.Linef("preempted %s", o.Units.VictimText(victim))
		}
		return nil
	})
}

func (o *changeOptions) draw(p *cli.Page, answer changeAnswer, parts []*quoratev1.Allocation) error {
	if len(parts) == 0 {
		return o.Units.DrawAllocation(p, answer.GetAllocation(), answer.GetWrite().GetLedgerTimeMs())
	}
	return p.Table(o.Units.AllocationRows(append([]*quoratev1.Allocation{answer.GetAllocation()}, parts...)...))
}

// onlyClaim is the place of the allocation's claim, if it has one only.
func (o *changeOptions) onlyClaim(ctx context.Context, quorate *client.Client, id, flag string) (cli.Place, error) {
	answer, err := quorate.Allocations.GetAllocation(ctx, &quoratev1.GetAllocationRequest{Id: id})
	if err != nil {
		return cli.Place{}, err
	}
	claims := answer.GetAllocation().GetClaims()
	if len(claims) != 1 {
		return cli.Place{}, cli.Usagef("allocation %s has %d claims: say which one with %s TREE[:node/path]", id, len(claims),
			flag)
	}
	return cli.PlaceOf(claims[0].GetTree(), claims[0].GetNode()), nil
}

type resizeOptions struct {
	changeOptions
	Claims

	wait  time.Duration
	async bool
}

func newResizeCmd(c *cli.Env) *cobra.Command {
	o := &resizeOptions{changeOptions: changeOptions{Env: c}}
	cmd := &cobra.Command{
		Use:   "resize ID [--at TREE[:node/path]] --amount RESOURCE=AMOUNT...",
		Short: "Change the amounts of an allocation",
		Long: `Change amounts of a held allocation in one step, without releasing it: its fence and its lease stay. Resources
that are not named keep their amounts. Lower amounts make room for higher ones, and only levels whose use rises are
checked, by the difference: a resize that only lowers amounts is never denied.

Each --amount belongs to the --at before it; without any, to the only claim of the allocation. At a node without a
claim one is added. An amount of 0 gives up the resource, and a claim without any resource is removed.

If a limit forbids it, nothing changes, standard error names every such limit, and the exit code is 3. Repeating the
command is safe. Callers that change one allocation again and again number their changes with --generation, so that an
earlier one that arrives late is refused.

With --wait a resize that does not fit now waits in the queue, and the allocation holds its present amounts until all of
the resize fits. With --async the command ends at once with exit code 9 and the resize stays in the queue; repeat it to
see what has become of it. It ends with its time, with the allocation, and with any other change of the allocation. A
later resize with --wait takes its place, and one to the present amounts withdraws it.`,
		Example: `  quorate allocation resize job-1 --amount cores=40
  quorate allocation resize job-1 --amount cores=400 --wait 10m
  quorate allocation resize job-1 --at cern:atlas/physics --amount cores=0 --at cern:cms --amount cores=8 \
                            --generation 2`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.runResize(cmd.Context(), args[0]) },
	}
	o.addFlags(cmd)
	cli.SpanVar(cmd.Flags(), &o.wait, "wait", 0, "wait in the queue for so long if it does not fit (default: do not wait)")
	cmd.Flags().BoolVar(&o.async, "async", false, "with --wait: do not stay until it is done")
	o.PlaceIsOptional, o.AmountsAreFixed = true, true
	cmd.Flags().Var(atFlag{&o.Claims}, "at", "node of the claim; may be repeated")
	cmd.Flags().Var(amountFlag{&o.Claims}, "amount", "new amount at the node before it; may be repeated")
	return cmd
}

func (o *resizeOptions) runResize(ctx context.Context, id string) error {
	if err := o.checkClaims(); err != nil {
		return err
	}
	switch {
	case o.wait < 0 || o.wait > 0 && o.wait < time.Millisecond:
		return cli.Usagef("--wait must be at least 1ms, not %v", o.wait)
	case o.async && o.wait == 0:
		return cli.Usagef("--async needs --wait")
	}
	unlimited := ctx
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	if o.List[0].At == (cli.Place{}) {
		if o.List[0].At, err = o.onlyClaim(ctx, quorate, id, "--at"); err != nil {
			return err
		}
	}
	if err := o.LearnUnits(ctx, quorate); err != nil {
		return err
	}
	claims, err := o.buildMessages(o.List, o.Units)
	if err != nil {
		return err
	}
	request := &quoratev1.ResizeRequest{
		Id: id, Fence: o.fence, Generation: o.generation, DryRun: o.dryRun, WaitMs: o.wait.Milliseconds(),
	}
	for _, claim := range claims {
		request.Claims = append(request.Claims, &quoratev1.ClaimChange{
			Tree: claim.GetTree(), Node: claim.GetNode(), Amounts: claim.GetAmounts(),
		})
	}
	answer, err := o.sendResize(unlimited, ctx, quorate, request)
	switch {
	case err != nil:
		return PrintDenial(o.Env, err)
	case answer.GetDecision().GetOutcome() == quoratev1.Outcome_OUTCOME_WAITING:
		return o.printWaiting(answer)
	case o.blocks():
		answer.Write.Repetition = false
	}
	return o.print(answer, "resized")
}

// blocks is true for a command that waits until its resize is done.
func (o *resizeOptions) blocks() bool { return o.wait > 0 && !o.async && !o.dryRun }

// sendResize makes the request. One that waits may take longer than one call.
func (o *resizeOptions) sendResize(
	ctx, limited context.Context, quorate *client.Client, request *quoratev1.ResizeRequest,
) (*quoratev1.ResizeResponse, error) {
	if !o.blocks() {
		return quorate.Allocations.Resize(limited, request)
	}
	waiting, cancel := context.WithTimeout(ctx, o.wait+o.Timeout)
	defer cancel()
	line := NewWaitingLine(o.Env)
	defer line.Close()
	return quorate.Resize(waiting, request, client.WithProgress(line.ReportProgress))
}

// printWaiting prints the position of a resize that stays in the queue, and what blocks it.
func (o *resizeOptions) printWaiting(answer *quoratev1.ResizeResponse) error {
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
	return &cli.WaitingError{Message: "the resize is in the queue and the allocation holds its present amounts: repeat " +
		"the command to see what has become of it"}
}

func newTransferCmd(c *cli.Env) *cobra.Command {
	o := &changeOptions{Env: c}
	cmd := &cobra.Command{
		Use:   "transfer ID TREE:from/path TREE:to/path",
		Short: "Move what an allocation holds to another node",
		Long: `Move a claim of a held allocation, with everything that it holds, to another node of its tree in one step.
Levels above both nodes see no change and are not checked. The fence and the lease stay, so the work goes on. If the
allocation has a claim at the other node already, their amounts are joined. Repeating the command is safe.`,
		Example: `  quorate allocation transfer vm-17 cern:atlas/physics cern:atlas/operations`,
		Args:    cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.runTransfer(cmd.Context(), args[0], args[1], args[2])
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *changeOptions) runTransfer(ctx context.Context, id, from, to string) error {
	source, target, err := parseMove(from, to)
	if err != nil {
		return err
	}
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Allocations.Transfer(ctx, &quoratev1.TransferRequest{
		Id: id, Fence: o.fence, Generation: o.generation, DryRun: o.dryRun,
		Moves: []*quoratev1.ClaimMove{{Tree: source.Tree, Node: source.Node, NewNode: target.Node}},
	})
	o.LearnUnitsForTable(ctx, quorate)
	if err != nil {
		return PrintDenial(o.Env, err)
	}
	return o.print(answer, "transferred")
}

func parseMove(from, to string) (source, target cli.Place, err error) {
	if source, err = cli.ParsePlace(from); err != nil {
		return source, target, err
	}
	if target, err = cli.ParsePlace(to); err != nil {
		return source, target, err
	}
	if source.Tree != target.Tree {
		return source, target, cli.Usagef("%s and %s are in two trees: a claim stays in its tree", source, target)
	}
	return source, target, nil
}

type splitOptions struct {
	changeOptions
	Claims

	from string
}

func newSplitCmd(c *cli.Env) *cobra.Command {
	o := &splitOptions{changeOptions: changeOptions{Env: c}}
	cmd := &cobra.Command{
		Use:   "split ID PART-ID --at TREE[:node/path] --amount RESOURCE=AMOUNT...",
		Short: "Move a part of what an allocation holds to a new one",
		Long: `Take amounts from a held allocation and give them to a new one, at the same or at another node, in one step.
Levels above both nodes see no change and are not checked. The new allocation has the labels, the principal, the owner
and the TTL of the first one, and a fence of its own. Repeating the command is safe.

The amounts are taken from the only claim of the allocation; if it has several, --source says from which.`,
		Example: `  quorate allocation split project-1 project-1b --at cern:atlas/operations --amount cores=20`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.runSplit(cmd.Context(), args[0], args[1])
		},
	}
	o.addFlags(cmd)
	o.AmountsAreFixed = true
	cmd.Flags().Var(atFlag{&o.Claims}, "at", "node where the part claims the amounts after it")
	cmd.Flags().Var(amountFlag{&o.Claims}, "amount", "amount of the part; may be repeated")
	cmd.Flags().StringVar(&o.from, "source", "", "node of the claim that they are taken from")
	return cmd
}

func (o *splitOptions) runSplit(ctx context.Context, id, part string) error {
	if err := o.checkClaims(); err != nil {
		return err
	}
	quorate, ctx, cancel, err := o.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	from, err := o.source(ctx, quorate, id)
	if err != nil {
		return err
	}
	if err := o.LearnUnits(ctx, quorate); err != nil {
		return err
	}
	claims, err := o.buildMessages(o.List, o.Units)
	if err != nil {
		return err
	}
	made := &quoratev1.SplitPart{Id: part}
	for _, claim := range claims {
		if claim.GetTree() != from.Tree {
			return cli.Usagef("%s and %s are in two trees: what is split stays in its tree", from, cli.PlaceOf(
				claim.GetTree(), claim.GetNode()))
		}
		made.Claims = append(made.Claims, &quoratev1.SplitClaim{
			Tree: claim.GetTree(), Node: from.Node, NewNode: claim.GetNode(), Amounts: claim.GetAmounts(),
		})
	}
	answer, err := quorate.Allocations.Split(ctx, &quoratev1.SplitRequest{
		Id: id, Fence: o.fence, Generation: o.generation, DryRun: o.dryRun, Parts: []*quoratev1.SplitPart{made},
	})
	if err != nil {
		return PrintDenial(o.Env, err)
	}
	return o.print(answer, "split", answer.GetParts()...)
}

func (o *splitOptions) source(ctx context.Context, quorate *client.Client, id string) (cli.Place, error) {
	if o.from == "" {
		return o.onlyClaim(ctx, quorate, id, "--from")
	}
	return cli.ParsePlace(o.from)
}
