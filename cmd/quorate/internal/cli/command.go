package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// NewGroup makes a command that only has subcommands.
func NewGroup(use, short string, commands ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return Usagef("%s needs a subcommand; see %s --help", cmd.CommandPath(), cmd.CommandPath())
		},
	}
	group.AddCommand(commands...)
	return group
}

// AddGroup adds commands under a title of the help.
func AddGroup(root *cobra.Command, id, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, command := range commands {
		command.GroupID = id
	}
	root.AddCommand(commands...)
}

// completionTimeout bounds the wait of a shell for names from a server.
const completionTimeout = time.Second

// CompleteFlag offers fixed values for a flag.
func CompleteFlag(cmd *cobra.Command, flag string, values ...string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag does not exist, which is a mistake in this program
	}
}

// CompleteTrees offers the names of trees; none if no server answers in time.
func (c *Env) CompleteTrees(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	c.Stale = true
	return c.CompleteNames(cmd, cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp,
		func(ctx context.Context, quorate *client.Client) ([]string, error) {
			answer, err := quorate.Trees.ListTrees(ctx, &quoratev1.ListTreesRequest{Read: c.ReadOptions()})
			var names []string
			for _, tree := range answer.GetTrees() {
				names = append(names, tree.GetName())
			}
			return names, err
		})
}

// CompleteNames offers names that a server has; none if no server answers in time.
func (c *Env) CompleteNames(
	cmd *cobra.Command, directive cobra.ShellCompDirective,
	list func(context.Context, *client.Client) ([]string, error),
) ([]string, cobra.ShellCompDirective) {
	c.Timeout = completionTimeout
	parent := cmd.Context()
	if parent == nil {
		parent = context.Background()
	}
	quorate, ctx, cancel, err := c.Connect(parent)
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
