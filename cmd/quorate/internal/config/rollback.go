package config

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

type rollbackOptions struct {
	changeOptions
	to revisionFlag
}

func newRollbackCmd(c *cli.Env) *cobra.Command {
	o := &rollbackOptions{changeOptions: changeOptions{Env: c}}
	cmd := &cobra.Command{
		Use:   "rollback REVISION",
		Short: "Restore the configuration of an earlier revision",
		Long: `Restore the configuration of an earlier revision, as numbered by "quorate revision list"; 0 is the empty
configuration of the beginning. A rollback is a change like any other: it makes a new revision, is checked like
apply, and is refused if it would remove nodes with allocations. Allocations are kept. If it
removes a tree, or more than half of the nodes of one, it needs --allow-removals with their number, which --dry-run
says.`,
		Example: `  quorate revision list
  quorate revision rollback 6 --dry-run
  quorate revision rollback 6 --reason "the new limits were a mistake"`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.to.Set(args[0]); err != nil {
				return err
			}
			return o.runRollback(cmd.Context())
		},
	}
	o.addFlags(cmd)
	o.addConfirmation(cmd)
	o.addAllowRemovals(cmd)
	cmd.ValidArgsFunction = completeRevisions(c)
	return cmd
}

func (o *rollbackOptions) runRollback(ctx context.Context) error {
	if err := o.confirm("replace the whole configuration by that of revision " + o.to.String()); err != nil {
		return err
	}
	return o.runChange(ctx, o.unitsForTable, func(ctx context.Context, quorate *client.Client) (changeAnswer, error) {
		call := func(ctx context.Context, dry bool) (changeAnswer, error) {
			return quorate.Configuration.RollBack(ctx, &adminv1.RollBackRequest{
				Revision: *o.to.value,
				DryRun:   dry, ExpectedRevision: o.expected.value, Actor: o.actor, Reason: o.reason,
			})
		}
		answer, err := o.guardRemovals(ctx, countOnServer(ctx, quorate), call)
		if err != nil || o.dryRun {
			return answer, err
		}
		return call(ctx, false)
	})
}
