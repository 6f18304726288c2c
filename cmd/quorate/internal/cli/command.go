package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// NewGroup makes a command that only has subcommands.
func NewGroup(use, short string, commands ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{Use: use, Short: short}
	makeGroup(group)
	group.AddCommand(commands...)
	return group
}

// makeGroup lets a command without a verb say which there are.
func makeGroup(group *cobra.Command) {
	group.SuggestionsMinimumDistance = mostEdits
	group.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return unknownCommand(cmd, args)
	}
	group.RunE = func(cmd *cobra.Command, _ []string) error {
		return Usagef("%s needs a verb: %s; see %s --help", cmd.CommandPath(), strings.Join(verbNames(cmd), ", "),
			cmd.CommandPath())
	}
}

// mostEdits is how many letters a word may differ by from a command that it suggests.
const mostEdits = 2

func verbNames(group *cobra.Command) []string {
	var names []string
	for _, sub := range group.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return names
}

// SetRoot makes a command print its help without arguments, and refuse words that are not commands.
func SetRoot(root *cobra.Command) {
	root.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return unknownCommand(cmd, args)
	}
	root.SuggestionsMinimumDistance = mostEdits
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}

// unknownCommand says which command may be meant by words that are not one, as it can be pasted.
func unknownCommand(at *cobra.Command, args []string) error {
	words := append(strings.Fields(at.CommandPath())[1:], args...)
	shown := strings.Join(words[:len(words)-len(args)+1], " ")
	var meant []string
	for _, found := range suggestedCommands(at, words) {
		meant = append(meant, `"`+found+`"`)
	}
	switch {
	case len(meant) > 0:
		return Usagef("unknown command %q: did you mean %s?", shown, strings.Join(meant, " or "))
	case at.HasParent():
		return Usagef("unknown command %q: the verbs of %s are %s", shown, at.Name(), strings.Join(verbNames(at), ", "))
	}
	return Usagef("unknown command %q: \"quorate help\" lists the commands", shown)
}

// suggestedCommands are the commands that declare the longest beginning of the words in SuggestFor, or else those whose
// names are similar to the last word that is not a command.
func suggestedCommands(at *cobra.Command, words []string) (found []string) {
	all := allCommands(at.Root())
	for n := min(len(words), 3); n > 0; n-- {
		typed := strings.Join(words[:n], " ")
		for _, cmd := range all {
			if slices.Contains(cmd.SuggestFor, typed) {
				found = append(found, cmd.CommandPath())
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	unknown := words[len(strings.Fields(at.CommandPath()))-1]
	for _, name := range at.SuggestionsFor(unknown) {
		found = append(found, at.CommandPath()+" "+name)
	}
	return found
}
