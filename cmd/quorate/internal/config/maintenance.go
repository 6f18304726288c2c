package config

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

type maintenanceOptions struct {
	changeOptions
	tree string
	on   bool
}

func newMaintenanceCmd(c *cli.Env) *cobra.Command {
	o := &maintenanceOptions{changeOptions: changeOptions{Env: c}}
	cmd := &cobra.Command{
		Use:   "maintenance TREE on|off",
		Short: "Suspend limit checks for a tree, or resume them",
		Long: `While a tree is in maintenance, every allocation is admitted at its named node regardless of limits,
for example to import existing usage. After "off", limits apply to new requests again; nodes that are over their
limits are listed, keep their allocations and cannot grow.`,
		Example: `  quorate maintenance cern on --reason "import from the old system"
  quorate maintenance cern off`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[1] != "on" && args[1] != "off" {
				return cli.Usagef("maintenance is on or off, not %q", args[1])
			}
			o.tree, o.on = args[0], args[1] == "on"
			return o.runMaintenance(cmd.Context())
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *maintenanceOptions) runMaintenance(ctx context.Context) error {
	return o.runChange(ctx, o.unitsForTable, func(ctx context.Context, quorate *client.Client) (changeAnswer, error) {
		return quorate.Trees.SetMaintenance(ctx, &quoratev1.SetMaintenanceRequest{
			Tree: o.tree, On: o.on,
			DryRun: o.dryRun, ExpectedRevision: o.expected.value, Actor: o.actor, Reason: o.reason,
		})
	})
}
