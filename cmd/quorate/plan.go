package main

import (
	"context"

	"github.com/spf13/cobra"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

type planOptions struct {
	*cli
	changeOptions
	source sourceOptions
}

func newPlanCmd(c *cli) *cobra.Command {
	o := &planOptions{cli: c}
	cmd := &cobra.Command{
		Use:   "plan -f FILE...",
		Short: "Show what apply would change, and what that would do to requests",
		Long: `Show what "quorate apply" would change, without changing anything:

  + added, ~ changed, - removed
  !  a node, or a user or group there, would use more than its new limit
  <  a node would have no room for a claim any more
  >  a node would have room for a claim again
  *  a request that was denied lately would be granted

The exit code is 0 whether or not there is something to change, and 3 if the change would be refused: every rule in
the way is named. Give the same --reason, --actor and --expected-revision as for apply, for they can be a reason to
refuse it. Programs find out by -o json whether "changes" is empty.`,
		Example: `  quorate plan -f examples/cern.yaml
  quorate plan -f cern.yaml -f zuul.yaml --prune
  quorate plan -f nodepool.yaml --from zuul`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.source.addFlags(cmd)
	o.addMetaFlags(cmd)
	return cmd
}

func (o *planOptions) run(ctx context.Context) error {
	trees, err := o.source.read(o.cli)
	if err != nil {
		return err
	}
	quorate, ctx, cancel, err := o.connect(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	o.source.learn(ctx, o.cli, quorate, trees)
	answer, err := quorate.Trees.ApplyTrees(ctx, &quoratev1.ApplyTreesRequest{
		Trees:            trees,
		Prune:            o.source.prune,
		DryRun:           true,
		ExpectedRevision: o.expected.value,
		Actor:            o.actor,
		Reason:           o.reason,
	})
	if err != nil {
		return err
	}
	return o.printResult(answer, answer.GetResult(), true)
}
