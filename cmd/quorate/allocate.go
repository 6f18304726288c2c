package main

import (
	"context"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

type allocateOptions struct {
	*cli
	id     string
	claims claims
	labels []string
	dryRun bool
}

func newAllocateCmd(c *cli) *cobra.Command {
	o := &allocateOptions{cli: c}
	cmd := &cobra.Command{
		Use:   "allocate --at TREE:node/path --amount RESOURCE=AMOUNT...",
		Short: "Hold amounts at nodes of one or more trees, all or nothing",
		Long: `Hold amounts at nodes of one or more trees until they are released, all or nothing. Each --amount belongs to
the --at before it. Every limit on the way from each node to its root must have room.

If a limit stands in the way, nothing is held, every such limit is named on standard error, and the exit code
is 3. Repeating a command with the same --id is safe: it holds once.`,
		Example: `  quorate allocate --id job-1 --at cern:atlas/physics/higgs --amount cores=25
  quorate allocate --at tenants:tenant-1 --amount servers=2 --amount ram=16Gi \
                   --at providers:cloud-a/main --amount servers=2`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.id, "id", "", "name of the allocation, 1 to 128 visible ASCII characters (default: a new UUID)")
	flags.Var(atFlag{&o.claims}, "at", "where to hold the amounts that follow")
	flags.Var(amountFlag{&o.claims}, "amount", "what to hold there, for example cores=25 or ram=1.5Gi")
	flags.StringArrayVar(&o.labels, "label", nil, "a `name=value` to find the allocation by")
	flags.BoolVar(&o.dryRun, "dry-run", false, "only say whether it would fit")
	return cmd
}

func (o *allocateOptions) run(ctx context.Context) error {
	if err := o.claims.check(); err != nil {
		return err
	}
	labels, err := labelPairs(o.labels)
	if err != nil {
		return err
	}
	quorate, ctx, cancel, err := o.connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	if err := o.learn(ctx, quorate); err != nil {
		return err
	}
	wanted, err := o.claims.messages(o.units)
	if err != nil {
		return err
	}
	request := &quoratev1.AllocateRequest{Id: o.id, Claims: wanted, Labels: labels, Mode: quoratev1.Mode_MODE_REJECT}
	if request.GetId() == "" {
		request.Id = uuid.NewString()
	}
	if o.dryRun {
		request.Mode = quoratev1.Mode_MODE_DRY_RUN
	}
	answer, err := quorate.Allocations.Allocate(ctx, request)
	if err != nil {
		if client.MayBeDone(err) && !o.dryRun {
			o.say("it may be held all the same; to know, repeat the command with --id %s", request.GetId())
		}
		return o.denied(err)
	}
	return o.granted(answer)
}

func (o *allocateOptions) granted(answer *quoratev1.AllocateResponse) error {
	switch {
	case o.dryRun:
		o.say("dry run: it would be granted")
	case answer.GetRepeated():
		o.say("granted before; this call changed nothing")
	default:
		o.say("granted")
	}
	return o.print(answer, func(p *page) error {
		if answer.GetAllocation() == nil { // a dry run holds nothing
			return nil
		}
		return p.table(o.units.allocationRows(answer.GetAllocation()))
	})
}

// denied gives programs the decision in the same shape as a grant's; people read it on standard error.
func (o *allocateOptions) denied(err error) error {
	decision, denied := client.DecisionOf(err)
	if !denied || o.output == outputTable {
		return err
	}
	if unprinted := o.print(&quoratev1.AllocateResponse{Decision: decision}, nil); unprinted != nil {
		return unprinted
	}
	return err
}
