package request

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

func newConfirmCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "confirm ID",
		Short: "Keep what was reserved, until it is released",
		Long: `Make a reservation a held allocation, until it is released. Repeating it is safe. A reservation whose time is
over has lapsed and cannot be confirmed.`,
		Example: `  quorate allocate --id job-3 --reserve 5m --at cern:atlas/physics --amount cores=1
  quorate confirm job-3`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return confirmReservation(cmd.Context(), c, args[0]) },
	}
}

func confirmReservation(ctx context.Context, c *cli.Env, id string) error {
	quorate, ctx, cancel, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Allocations.Confirm(ctx, &quoratev1.ConfirmRequest{Id: id})
	if err != nil {
		return err
	}
	if answer.GetRepeated() {
		c.Messagef("it was held already; this call changed nothing")
	} else {
		c.Messagef("confirmed")
	}
	c.LearnUnitsForTable(ctx, quorate)
	return c.Print(answer, func(p *cli.Page) error { return c.Units.DrawAllocation(p, answer.GetAllocation(), 0) })
}

func newCancelCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "cancel ID",
		Short: "Give up a reservation and put back what it preempted",
		Long: `End a reservation. If nothing came in between in the trees that it changed, everything is as it was before it.
Otherwise what it preempted or moved is put back if all of that is still possible within the limits, and stays as it is
if not. Repeating it is safe. What is confirmed is ended by "quorate release".`,
		Example: `  quorate cancel job-3`,
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return cancelReservation(cmd.Context(), c, args[0]) },
	}
}

func cancelReservation(ctx context.Context, c *cli.Env, id string) error {
	quorate, ctx, cancel, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Allocations.Cancel(ctx, &quoratev1.CancelRequest{Id: id})
	if err != nil {
		return err
	}
	if answer.GetRepeated() { // in whatever way: the table says which
		c.Messagef("it had ended before; this call changed nothing")
	} else {
		c.Messagef("cancelled")
	}
	if restored := answer.GetRestored(); len(restored) > 0 {
		c.Messagef("held again, as before the reservation: %s", strings.Join(restored, ", "))
	}
	c.LearnUnitsForTable(ctx, quorate)
	return c.Print(answer, func(p *cli.Page) error { return c.Units.DrawAllocation(p, answer.GetAllocation(), 0) })
}
