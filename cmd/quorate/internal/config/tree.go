package config

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

type treeRemoveOptions struct {
	changeOptions
	name string
}

func newTreeDeleteCmd(c *cli.Env) *cobra.Command {
	o := &treeRemoveOptions{changeOptions: changeOptions{Env: c}}
	cmd := &cobra.Command{
		Use:   "delete TREE",
		Short: "Remove a tree without allocations",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return o.runTreeRemove(cmd.Context())
		},
	}
	o.addFlags(cmd)
	o.addConfirmation(cmd)
	return cmd
}

func (o *treeRemoveOptions) runTreeRemove(ctx context.Context) error {
	if err := o.confirm("remove tree " + o.name + " with all its limits"); err != nil {
		return err
	}
	return o.runChange(ctx, o.unitsForTable, func(ctx context.Context, quorate *client.Client) (changeAnswer, error) {
		return quorate.Trees.DeleteTree(ctx, &quoratev1.DeleteTreeRequest{
			Name:   o.name,
			DryRun: o.dryRun, ExpectedRevision: o.expected.value, Actor: o.actor, Reason: o.reason,
		})
	})
}
