package config

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
	"github.com/quorate/quorate/internal/manifest"
)

func newPolicyListCmd(c *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the policies that the configuration defines",
		Long: `List the policies that the configuration defines, each with its base and the switches of the base that
it changes. Trees can name the built-in policies too.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return listPolicies(cmd.Context(), c) },
	}
}

func listPolicies(ctx context.Context, c *cli.Env) error {
	quorate, ctx, cancel, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	answer, err := quorate.Trees.ListTrees(ctx, &quoratev1.ListTreesRequest{Read: c.ReadOptions()})
	if err != nil {
		return err
	}
	c.ReportAge(answer.GetRead())
	shown := &quoratev1.ListTreesResponse{
		Policies: answer.GetPolicies(), Revision: answer.GetRevision(), Read: answer.GetRead(),
	}
	return c.Print(shown, func(p *cli.Page) error {
		rows := [][]string{{"POLICY", "BASE", "SWITCHES"}}
		for _, policy := range answer.GetPolicies() {
			rows = append(rows, []string{policy.GetName(), policy.GetBase(), manifest.DescribeSwitches(policy)})
		}
		return p.Table(rows)
	})
}

type policyRemoveOptions struct {
	changeOptions
	names []string
}

func newPolicyDeleteCmd(c *cli.Env) *cobra.Command {
	o := &policyRemoveOptions{changeOptions: changeOptions{Env: c}}
	cmd := &cobra.Command{
		Use:   "delete POLICY...",
		Short: "Remove policies that no tree uses",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.names = args
			return o.runPolicyRemove(cmd.Context())
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *policyRemoveOptions) runPolicyRemove(ctx context.Context) error {
	return o.runChange(ctx, o.unitsForTable, func(ctx context.Context, quorate *client.Client) (changeAnswer, error) {
		return applyTrees(ctx, quorate, &quoratev1.ApplyTreesRequest{
			RemovePolicies: o.names,
			DryRun:         o.dryRun, ExpectedRevision: o.expected.value, Actor: o.actor, Reason: o.reason,
		})
	})
}
