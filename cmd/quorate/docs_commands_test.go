package main

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// namedCommand matches a command of this program in a text: at the start of a line, after a prompt or in back quotes,
// with its words.
var namedCommand = regexp.MustCompile("(?m)(?:^\\s*(?:\\$ )?|`)quorate ((?:[a-z][a-z-]*)(?: [^\\s`|>;&]+)*)")

// otherCommands are the commands about the program, and those that pages show although they do not exist.
var otherCommands = []string{
	"completion", "help", "version", "docs",
	"leases", // docs/command-line.md: what a wrong word is answered with
	"export", // docs/operations.md: of development builds
}

// TestCommandsOfAllPages: every command that a page names exists, with the flags that stand after it, also where no
// test plays it.
func TestCommandsOfAllPages(t *testing.T) {
	listed, err := exec.CommandContext(t.Context(), "git", "ls-files", "../../*.md").Output()
	if err != nil {
		t.Skipf("this is not a checkout: %v", err)
	}
	found := 0
	for file := range strings.FieldsSeq(string(listed)) {
		if strings.Contains(file, "/adr/") || strings.Contains(file, "findings/") || strings.Contains(file, "CHANGELOG") {
			continue // they tell of what was
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		joined := strings.ReplaceAll(string(text), "\\\n", "")
		for _, match := range namedCommand.FindAllStringSubmatch(joined, -1) {
			found++
			if problem := checkNamedCommand(strings.Fields(match[1])); problem != "" {
				t.Errorf("%s: quorate %s: %s", file, match[1], problem)
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d commands were found", found)
	}
}

// checkNamedCommand says what is wrong with the words of a command line; empty for nothing.
func checkNamedCommand(words []string) string {
	root := newRootCmd(&cli.Env{})
	if slices.Contains(otherCommands, words[0]) {
		return ""
	}
	cmd, rest, err := root.Find(words)
	switch {
	case err != nil:
		return err.Error()
	case cmd == root:
		return "there is no such command"
	case cmd.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-"):
		return cmd.Name() + " has no verb " + rest[0]
	}
	for _, word := range rest {
		if word == "--" {
			return ""
		}
		if name, isFlag := strings.CutPrefix(word, "--"); isFlag {
			name, _, _ = strings.Cut(strings.TrimRight(name, ",.:)]}'\""), "=")
			if !hasFlag(cmd, name) {
				return "it has no flag --" + name
			}
		}
	}
	return ""
}

func hasFlag(cmd *cobra.Command, name string) bool {
	cmd.InitDefaultHelpFlag()
	return cmd.Flags().Lookup(name) != nil || cmd.InheritedFlags().Lookup(name) != nil
}
