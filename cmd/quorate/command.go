package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// newGroup makes a command that only holds others.
func newGroup(use, short string, commands ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usagef("%s needs one of its commands; see %s --help", cmd.CommandPath(), cmd.CommandPath())
		},
	}
	group.AddCommand(commands...)
	return group
}

// addGroup adds commands that help shows together.
func addGroup(root *cobra.Command, id, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, command := range commands {
		command.GroupID = id
	}
	root.AddCommand(commands...)
}

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
	c.stale = true
	return c.completeFrom(cmd, cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp,
		func(ctx context.Context, quorate *client.Client) ([]string, error) {
			answer, err := quorate.Trees.ListTrees(ctx, &quoratev1.ListTreesRequest{Read: c.read()})
			var names []string
			for _, tree := range answer.GetTrees() {
				names = append(names, tree.GetName())
			}
			return names, err
		})
}

// completeFrom offers names that a server has; none if no server answers in time.
func (c *cli) completeFrom(
	cmd *cobra.Command, directive cobra.ShellCompDirective, list func(context.Context, *client.Client) ([]string, error),
) ([]string, cobra.ShellCompDirective) {
	c.timeout = completionPatience
	parent := cmd.Context()
	if parent == nil {
		parent = context.Background()
	}
	quorate, ctx, cancel, err := c.connect(parent)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer cancel()
	names, err := list(ctx, quorate)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, directive
}
