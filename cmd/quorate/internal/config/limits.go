package config

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
	"github.com/quorate/quorate/manifest"
)

func newLimitsCmd(c *cli.Env) *cobra.Command {
	return cli.NewGroup("limits", "Change limits of one node, or ask for other limits", newLimitsSetCmd(c),
		newLimitsRequestCmd(c), newLimitsRequestsCmd(c), newLimitsApproveCmd(c), newLimitsRejectCmd(c),
		newLimitsWithdrawCmd(c))
}

type limitsSetOptions struct {
	changeOptions
	at     string
	limits []string
}

func newLimitsSetCmd(c *cli.Env) *cobra.Command {
	o := &limitsSetOptions{changeOptions: changeOptions{Env: c}}
	cmd := &cobra.Command{
		Use:   "set TREE[:node/path] RESOURCE=LIMIT...",
		Short: "Set limits of one node without changing anything else",
		Long: `Set limits of one node without changing anything else. A limit is an amount, the word unlimited, or
the word unset, which removes the limit, so that the policy of the node applies.

A limit may be set below current usage: nothing is evicted, but usage cannot grow until it is below the limit.`,
		Example: `  quorate limits set cern:atlas/physics cores=25 --reason "a new rack"
  quorate limits set tenants:tenant-1 servers=unlimited ram=16Gi cores=unset`,
		Args:              cobra.MinimumNArgs(2),
		ValidArgsFunction: c.CompleteTrees,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.at, o.limits = args[0], args[1:]
			return o.runLimitsSet(cmd.Context())
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *limitsSetOptions) runLimitsSet(ctx context.Context) error {
	at, err := cli.ParsePlace(o.at)
	if err != nil {
		return err
	}
	return o.runChange(ctx, o.LearnUnits, func(ctx context.Context, quorate *client.Client) (changeAnswer, error) {
		limits, err := parseLimits(o.Units, at, o.limits)
		if err != nil {
			return nil, err
		}
		return quorate.Trees.SetLimits(ctx, &quoratev1.SetLimitsRequest{
			Tree: at.Tree, Node: at.Node, Limits: limits,
			DryRun: o.dryRun, ExpectedRevision: o.expected.value, Actor: o.actor, Reason: o.reason,
		})
	})
}

// parseLimits reads pairs such as cores=120 in the units of a tree.
func parseLimits(units cli.Units, at cli.Place, pairs []string) (map[string]*quoratev1.Limit, error) {
	limits := map[string]*quoratev1.Limit{}
	for _, text := range pairs {
		resource, value, err := cli.SplitPair(text)
		if err != nil {
			return nil, err
		}
		if limits[resource] != nil {
			return nil, cli.Usagef("the limit of %q is given twice", resource)
		}
		unit, err := units.UnitOf(at.Tree, resource)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
		if limits[resource], err = manifest.ParseLimit(value, unit); err != nil {
			return nil, cli.Usagef("limit of %q: %v or unset", resource, err)
		}
	}
	return limits, nil
}
