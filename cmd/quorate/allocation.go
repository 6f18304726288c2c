package main

import (
	"context"

	"github.com/spf13/cobra"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

func newAllocationCmd(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "allocation ID",
		Short: "Show one allocation, held or ended not long ago",
		Args:  cobra.ExactArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return c.allocation(cmd.Context(), args[0]) },
	}
}

func (c *cli) allocation(ctx context.Context, id string) error {
	quorate, ctx, cancel, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Allocations.GetAllocation(ctx, &quoratev1.GetAllocationRequest{Id: id, Read: c.read()})
	if err != nil {
		return err
	}
	c.sayAge(answer.GetRead())
	c.learnForTable(ctx, quorate)
	return c.print(answer, func(p *page) error {
		return c.units.drawAllocation(p, answer.GetAllocation(), answer.GetRead().GetLedgerTimeMs())
	})
}
