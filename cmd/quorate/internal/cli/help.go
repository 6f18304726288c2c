package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// SetHelp makes help pages name the flags of all commands in one line, and "help" suggest what is spelled similarly.
func SetHelp(root *cobra.Command) {
	nameArguments(root)
	addRemoveAliases(root)
	const inherited = "Global Flags:\n{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}"
	const aliases = "{{if gt (len .Aliases) 0}}\n\nAliases:\n  {{.NameAndAliases}}{{end}}"
	root.SetUsageTemplate(strings.NewReplacer(
		inherited, `Use "quorate options" for the flags that all commands have.`, aliases, "",
	).Replace(root.UsageTemplate()))
	root.AddCommand(newOptionsCmd())
	root.SetHelpCommand(newHelpCmd())
}

// addRemoveAliases lets all commands that remove something be called by the words of other programs, and of earlier
// versions of this one. No help page names them.
func addRemoveAliases(at *cobra.Command) {
	for _, sub := range at.Commands() {
		if sub.Name() == "remove" {
			sub.Aliases = []string{"rm", "delete"}
		}
		addRemoveAliases(sub)
	}
}

func newOptionsCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the flags that all commands have",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "All commands have these flags:\n\n%s",
				cmd.Root().PersistentFlags().FlagUsages())
			return printError(err)
		},
	}
}

func newHelpCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Show the help of a command or topic",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			var names []string
			if at, _, err := cmd.Root().Find(args); err == nil {
				for _, sub := range at.Commands() {
					if !sub.Hidden && strings.HasPrefix(sub.Name(), typed) {
						names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return Usagef("there is no command or topic %q%s", strings.Join(args, " "), suggestions(cmd.Root(), args))
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}

func suggestions(root *cobra.Command, args []string) string {
	names := root.SuggestionsFor(args[0])
	for _, sub := range root.Commands() {
		if sub.IsAdditionalHelpTopicCommand() && strings.HasPrefix(sub.Name(), args[0]) {
			names = append(names, sub.Name())
		}
	}
	if len(names) == 0 {
		return ": quorate help lists them"
	}
	return "; did you mean " + strings.Join(names, " or ") + "?"
}
