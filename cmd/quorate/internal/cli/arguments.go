package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
)

// nameArguments makes the errors about the number of arguments name what is missing or too much, in the words of the
// line of usage, for all commands below root.
func nameArguments(root *cobra.Command) {
	for _, cmd := range allCommands(root) {
		check := cmd.Args
		if check == nil || cmd.HasSubCommands() {
			continue // cobra suggests subcommands that are spelled similarly
		}
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if ours := (*usageError)(nil); err == nil || errors.As(err, &ours) {
				return err
			}
			return argumentsError(cmd, args)
		}
	}
}

func argumentsError(cmd *cobra.Command, args []string) error {
	required := requiredArguments(cmd.Use)
	switch {
	case len(args) < len(required):
		return Usagef("%s is missing", strings.Join(required[len(args):], " "))
	case len(args) == 0:
		return Usagef("an argument is missing")
	default:
		return Usagef("%q is one argument too many", args[len(args)-1])
	}
}

// requiredArguments are the words of a line of usage that a command needs, without options and what is in brackets.
func requiredArguments(use string) (words []string) {
	isOption := false // inside braces
	for _, word := range strings.Fields(use)[1:] {
		switch {
		case word[0] == '{' || isOption:
			isOption = !strings.HasSuffix(strings.TrimSuffix(word, "..."), "}")
		case word == "--":
		case strings.ContainsAny(word[:1], "[|-"):
			return words
		default:
			words = append(words, strings.TrimSuffix(word, "..."))
		}
	}
	return words
}
