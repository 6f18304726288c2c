package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// TestRefusedCommandLines: what a person has mistyped, or a script has left empty, is refused in words that name the
// remedy, before a server is called.
func TestRefusedCommandLines(t *testing.T) {
	f, server := startFake(t)
	for line, want := range map[string]string{
		"allocate --id= --at cern --amount cores=1":         "it is empty: name an id, or leave --id out for a new UUID",
		"allocate --id=j\u00f6b --at cern --amount cores=1": "an id has 1 to 128 visible ASCII characters",
		"allocate --user= --at cern --amount cores=1":       "it is empty: give it a value, or leave --user out",
		"release --user=":                                   "it is empty: give it a value, or leave --user out",
		"release --owner= --yes":                            "it is empty: give it a value, or leave --owner out",
		"release --prefix= --yes":                           "it is empty: give it a value, or leave --prefix out",
		"release --tree= --yes":                             "it is empty: give it a value, or leave --tree out",
		"trees --timeout 5":                                 `"5" has no unit: write 5s, 5m, 5h or 5d`,
		"trees --timeout soon":                              `"soon" is not a time: write days, hours, minutes and seconds`,
		"trees --timeout=-3s":                               `"-3s" is negative`,
		"allocate --ttl 8d --at cern --amount cores=1":      "--ttl must be between 1ms and 7d, not 192h",
		"allocate --ttl 7dd --at cern --amount cores=1":     `"7dd" is not a time`,
		"audit list --since yesterday":                      `--since: "yesterday" is neither a time such as`,
		"usage cern/atlas":                                  "did you mean cern:atlas?",
		"allocate --at cern/atlas/physics --amount cores=1": "did you mean cern:atlas/physics?",
		"usage":                     "TREE[:node/path] is missing",
		"usage cern tenants":        `"tenants" is one argument too many`,
		"move x":                    "is missing",
		"lease run --resource r --": "COMMAND is missing",
	} {
		code, _, stderr := runQuorate(server, "", strings.Split(line, " ")...)
		if code != cli.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("quorate %s: exit code %d, %q; want %d, %q", line, code, stderr, cli.ExitUsage, want)
		}
	}
	if len(f.requests) != 0 {
		t.Errorf("the server was called: %v", f.requests)
	}
}

// TestOneWordForRemovals: what removes something is called remove, and by the words of earlier versions too, which help
// does not name.
func TestOneWordForRemovals(t *testing.T) {
	removals := 0
	var check func(at *cobra.Command)
	check = func(at *cobra.Command) {
		for _, sub := range at.Commands() {
			switch sub.Name() {
			case "rm", "delete":
				t.Errorf("%s is not called remove", sub.CommandPath())
			case "remove":
				removals++
				var help strings.Builder
				sub.SetOut(&help)
				if err := sub.Help(); err != nil || !sub.HasAlias("rm") || !sub.HasAlias("delete") ||
					strings.Contains(help.String(), "Aliases") {
					t.Errorf("%s has the aliases %v and the help\n%s", sub.CommandPath(), sub.Aliases, help.String())
				}
			}
			check(sub)
		}
	}
	check(newRootCmd(&cli.Env{}))
	if removals < 6 {
		t.Errorf("there are only %d commands that remove something", removals)
	}
}

// TestSpansHaveDays: every flag with a time takes days.
func TestSpansHaveDays(t *testing.T) {
	f, server := startFake(t)
	code, _, stderr := runQuorate(server, "", "allocate", "--id", "a", "--at", "cern", "--amount", "cores=1", "--ttl",
		"1d12h", "--for", "366d")
	sent, isAllocate := f.lastRequest(t).(*quoratev1.AllocateRequest)
	if code != cli.ExitOK || !isAllocate || sent.GetTtlMs() != 36*3_600_000 || sent.GetForMs() != 366*24*3_600_000 {
		t.Errorf("exit code %d, sent %v: %s", code, sent, stderr)
	}
}

// TestATokenFileOfAFlagComesBeforeTheEnvironment: quorate dev --guarded tells people to export QUORATE_TOKEN, and
// --token-file must work in the same shell.
func TestATokenFileOfAFlagComesBeforeTheEnvironment(t *testing.T) {
	_, server := startFake(t)
	t.Setenv("QUORATE_TOKEN", "of-the-environment")
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("of-the-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := runQuorate(server, "", "trees", "--token-file", file); code != cli.ExitOK {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	t.Setenv("QUORATE_TOKEN_FILE", file)
	code, _, stderr := runQuorate(server, "", "trees")
	if code != cli.ExitUsage || !strings.Contains(stderr, "QUORATE_TOKEN is set beside QUORATE_TOKEN_FILE") {
		t.Errorf("two tokens in the environment: exit code %d: %s", code, stderr)
	}
}
