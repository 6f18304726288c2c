package request

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

func newConfirmCmd(c *cli.Env) *cobra.Command {
	fence := uint64(0)
	cmd := &cobra.Command{
		Use:   "confirm ID",
		Short: "Confirm a reservation",
		Long: `Turn a reservation into an allocation that lasts until it is released. Repeating it is safe. A
reservation that has expired cannot be confirmed.`,
		Example: `  quorate allocate --id job-3 --reserve 5m --at cern:atlas/physics --amount cores=1
  quorate allocation confirm job-3`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return confirmReservation(cmd.Context(), c, &quoratev1.ConfirmRequest{Id: args[0], Fence: fence})
		},
	}
	cmd.Flags().Uint64Var(&fence, "fence", 0, "fence that it must have (default: any)")
	return cmd
}

func confirmReservation(ctx context.Context, c *cli.Env, request *quoratev1.ConfirmRequest) error {
	quorate, ctx, cancel, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Allocations.Confirm(ctx, request)
	if err != nil {
		return err
	}
	if answer.GetWrite().GetRepetition() {
		c.Messagef("confirmed before; this call changed nothing")
	} else {
		c.Messagef("confirmed")
	}
	c.LearnUnitsForTable(ctx, quorate)
	return c.Print(answer, func(p *cli.Page) error { return c.Units.DrawAllocation(p, answer.GetAllocation(), 0) })
}

func cancelReservation(ctx context.Context, c *cli.Env, request *quoratev1.CancelRequest) error {
	quorate, ctx, cancel, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Allocations.Cancel(ctx, request)
	if err != nil {
		return err
	}
	if answer.GetWrite().GetRepetition() { // by a cancel, a release or expiry; the table has the state
		c.Messagef("it had ended before; this call changed nothing")
	} else {
		c.Messagef("cancelled")
	}
	var restored []string
	for _, r := range answer.GetRestored() {
		restored = append(restored, cli.NameText(r, answer.GetAllocation().GetNamespace()))
	}
	if len(restored) > 0 {
		c.Messagef("held again, as before the reservation: %s", strings.Join(restored, ", "))
	}
	c.LearnUnitsForTable(ctx, quorate)
	return c.Print(answer, func(p *cli.Page) error { return c.Units.DrawAllocation(p, answer.GetAllocation(), 0) })
}
