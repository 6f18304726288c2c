package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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
		"release --at= --yes":                               `--at: "" is not a node`,
		"tree list --timeout 5":                             `"5" has no unit: write 5s, 5m, 5h or 5d`,
		"tree list --timeout soon":                          `"soon" is not a time: write days, hours, minutes and seconds`,
		"tree list --timeout=-3s":                           `"-3s" is negative`,
		"allocate --ttl 8d --at cern --amount cores=1":      "--ttl must be between 1ms and 7d, not 8d",
		"allocate --ttl 7dd --at cern --amount cores=1":     `"7dd" is not a time`,
		"audit list --since yesterday":                      `--since: "yesterday" is neither a time such as`,
		"usage cern/atlas":                                  "did you mean cern:atlas?",
		"allocate --at cern/atlas/physics --amount cores=1": "did you mean cern:atlas/physics?",
		"usage":                     "TREE[:node/path] is missing",
		"usage cern tenants":        `"tenants" is one argument too many`,
		"node move x":               "is missing",
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

// TestChosenColumns: a table shows the columns that are chosen, in their order, also those of -o wide.
func TestChosenColumns(t *testing.T) {
	_, server := startFake(t)
	for line, want := range map[string]string{
		"usage cern -o table=own,Node": "OWN  NODE\n",
		"usage cern -o table=used":     "USED\n",
		"usage cern -o table=node,size": `there is no column "size"; there are: NODE,RESOURCE,LIMIT,OWN,SUBTREE,HEADROOM,OVER,` +
			"USED,BORROWED,LENDABLE",
		"usage cern -o table=node --jq .":     "--jq reads the answer as JSON: leave out -o table=node",
		"allocation list -o table=made-by,id": "MADE BY  ID\n",
		"usage cern -o columns":               "-o csv, or -o table=COLUMN,...",
	} {
		code, stdout, stderr := runQuorate(server, "", strings.Split(line, " ")...)
		isFault := !strings.HasSuffix(want, "\n")
		if isFault != (code == cli.ExitUsage) || !isFault && !strings.HasPrefix(stdout, want) ||
			isFault && !strings.Contains(stderr, want) {
			t.Errorf("quorate %s: exit code %d\n%s%s; want %q", line, code, stdout, stderr, want)
		}
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

// TestATokenFileOfAFlagComesBeforeTheEnvironment: server dev --guarded tells people to export QUORATE_TOKEN, and
// --token-file must work in the same shell.
func TestATokenFileOfAFlagComesBeforeTheEnvironment(t *testing.T) {
	_, server := startFake(t)
	t.Setenv("QUORATE_TOKEN", "of-the-environment")
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("of-the-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := runQuorate(server, "", "tree", "list", "--token-file", file); code != cli.ExitOK {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	t.Setenv("QUORATE_TOKEN_FILE", file)
	code, _, stderr := runQuorate(server, "", "tree", "list")
	if code != cli.ExitUsage || !strings.Contains(stderr, "QUORATE_TOKEN is set beside QUORATE_TOKEN_FILE") {
		t.Errorf("two tokens in the environment: exit code %d: %s", code, stderr)
	}
}
