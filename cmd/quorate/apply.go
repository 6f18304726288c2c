package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

type applyOptions struct {
	changeOptions
	source sourceOptions
}

func newApplyOptions(c *cli) *applyOptions {
	return &applyOptions{changeOptions: changeOptions{cli: c}}
}

func newApplyCmd(c *cli) *cobra.Command {
	o := newApplyOptions(c)
	cmd := &cobra.Command{
		Use:   "apply -f FILE...",
		Short: "Make trees exactly as manifests say, all or nothing",
		Long: `Make each tree that the manifests name exactly as it is written there, all or nothing. Trees that they do not
name stay as they are, unless --prune removes them. Nodes keep their use; what is in use is not removed.

Every difference is printed: + added, ~ changed, - removed, and ! for a node, user or group that uses more than its new
limit.
"quorate plan" shows them beforehand, with what they would do to requests.`,
		Example: `  quorate apply -f examples/cern.yaml --dry-run
  quorate apply -f cern.yaml -f zuul.yaml --prune --expected-revision 7 --reason "one text for everything"
  quorate apply -f nodepool.yaml --from zuul
  quorate tree export cern | sed s/20/25/ | quorate apply -f - --reason "physics bought a rack"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.source.addFlags(cmd)
	o.addFlags(cmd)
	return cmd
}

func (o *applyOptions) run(ctx context.Context) error {
	trees, err := o.source.read(o.cli)
	if err != nil {
		return err
	}
	learn := func(ctx context.Context, quorate *client.Client) error {
		o.source.learn(ctx, o.cli, quorate, trees)
		return nil
	}
	return o.runChange(ctx, learn, func(ctx context.Context, quorate *client.Client) (changeAnswer, error) {
		return quorate.Trees.ApplyTrees(ctx, &quoratev1.ApplyTreesRequest{
			Trees: trees, Prune: o.source.prune,
			DryRun: o.dryRun, ExpectedRevision: o.expected.value, Actor: o.actor, Reason: o.reason,
		})
	})
}
