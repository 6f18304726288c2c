package cli

import "github.com/spf13/cobra"

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
