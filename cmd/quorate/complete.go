package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// completionPatience is how long a shell waits for names before it offers none.
const completionPatience = time.Second

// complete offers fixed values for a flag.
func complete(cmd *cobra.Command, flag string, values ...string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag does not exist: a mistake in this program
	}
}

// completeTrees offers the names of trees; none if no server answers in time.
func (c *cli) completeTrees(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	c.timeout = completionPatience
	c.stale = true
	parent := cmd.Context()
	if parent == nil {
		parent = context.Background()
	}
	quorate, ctx, cancel, err := c.connect(parent)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer cancel()
	answer, err := quorate.Trees.ListTrees(ctx, &quoratev1.ListTreesRequest{Read: c.read()})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var found []string
	for _, tree := range answer.GetTrees() {
		found = append(found, tree.GetName())
	}
	return found, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}
