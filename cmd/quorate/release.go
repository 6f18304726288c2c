package main

import (
	"context"

	"github.com/spf13/cobra"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

func newReleaseCmd(c *cli) *cobra.Command {
	return &cobra.Command{
		Use:   "release ID",
		Short: "End an allocation and free everything it held",
		Long: `End an allocation and free everything it held. Repeating it is safe: an allocation that has ended already is
shown again.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.release(cmd.Context(), args[0]) },
	}
}

func (c *cli) release(ctx context.Context, id string) error {
	quorate, ctx, cancel, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Allocations.Release(ctx, &quoratev1.ReleaseRequest{Id: id})
	if err != nil {
		return err
	}
	c.say("released")
	c.learnForTable(ctx, quorate)
	return c.print(answer, func(p *page) error { return c.units.drawAllocation(p, answer.GetAllocation()) })
}
