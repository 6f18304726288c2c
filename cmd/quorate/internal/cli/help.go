package cli

import (
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/cobra"
)

// addTemplateFunctions adds to the functions of cobra, which all commands of this process share.
var addTemplateFunctions = sync.OnceFunc(func() { cobra.AddTemplateFunc("flagUsages", flagUsages) })

// SetHelp makes help pages name the flags of all commands in one line, and "help" suggest what is spelled similarly.
func SetHelp(root *cobra.Command) {
	nameArguments(root)
	const inherited = "Global Flags:\n{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}"
	const aliases = "{{if gt (len .Aliases) 0}}\n\nAliases:\n  {{.NameAndAliases}}{{end}}"
	addTemplateFunctions()
	root.SetUsageTemplate(strings.NewReplacer(
		inherited, `Use "quorate options" for the flags that all commands have.`, aliases, "",
		".LocalFlags.FlagUsages", "flagUsages .LocalFlags",
	).Replace(root.UsageTemplate()))
	root.AddCommand(newOptionsTopic())
	root.SetFlagErrorFunc(explainFlagError)
	root.SetHelpCommand(newHelpCmd())
}

// newOptionsTopic is a topic of the help and no command, because it only shows text.
func newOptionsTopic() *cobra.Command {
	topic := &cobra.Command{Use: "options", Short: "The flags that all commands have"}
	topic.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		_, _ = fmt.Fprintf(cmd.OutOrStdout(), "All commands have these flags:\n\n%s",
			flagUsages(cmd.Root().PersistentFlags())) // a failure cannot be reported
	})
	return topic
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
				return unknownCommand(found, rest)
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
	}
}
