package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

func newConfirmCmd(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "confirm ID",
		Short: "Keep what was reserved, until it is released",
		Long: `Make a reservation a held allocation, until it is released. Repeating it is safe. A reservation whose time is
over has lapsed and cannot be confirmed.`,
		Example: `  quorate allocate --id job-3 --reserve 5m --at cern:atlas/physics --amount cores=1
  quorate confirm job-3`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.confirm(cmd.Context(), args[0]) },
	}
}

func (c *cli) confirm(ctx context.Context, id string) error {
	quorate, ctx, cancel, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Allocations.Confirm(ctx, &quoratev1.ConfirmRequest{Id: id})
	if err != nil {
		return err
	}
	if answer.GetRepeated() {
		c.say("it was held already; this call changed nothing")
	} else {
		c.say("confirmed")
	}
	c.learnForTable(ctx, quorate)
	return c.print(answer, func(p *page) error { return c.units.drawAllocation(p, answer.GetAllocation(), 0) })
}

func newCancelCmd(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "cancel ID",
		Short: "Give up a reservation and put back what it preempted",
		Long: `End a reservation. If nothing came in between in the trees that it changed, everything is as it was before it.
Otherwise what it preempted or moved is put back if all of that is still possible within the limits, and stays as it is
if not. Repeating it is safe. What is confirmed is ended by "quorate release".`,
		Example: `  quorate cancel job-3`,
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.cancel(cmd.Context(), args[0]) },
	}
}

func (c *cli) cancel(ctx context.Context, id string) error {
	quorate, ctx, cancel, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Allocations.Cancel(ctx, &quoratev1.CancelRequest{Id: id})
	if err != nil {
		return err
	}
	if answer.GetRepeated() { // in whatever way: the table says which
		c.say("it had ended before; this call changed nothing")
	} else {
		c.say("cancelled")
	}
	if restored := answer.GetRestored(); len(restored) > 0 {
		c.say("held again, as before the reservation: %s", strings.Join(restored, ", "))
	}
	c.learnForTable(ctx, quorate)
	return c.print(answer, func(p *page) error { return c.units.drawAllocation(p, answer.GetAllocation(), 0) })
}
