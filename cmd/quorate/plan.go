package main

import (
	"github.com/spf13/cobra"
)

func newPlanCmd(c *cli) *cobra.Command {
	o := newApplyOptions(c)
	o.dryRun = true
	cmd := &cobra.Command{
		Use:   "plan -f FILE...",
		Short: "Show what apply would change, and what that would do to requests",
		Long: `Show what "quorate apply" would change, without changing anything:

  + added, ~ changed, - removed
  !  a node, user or group would use more than its new limit
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
