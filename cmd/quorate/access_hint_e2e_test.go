package main_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestTheHintOfARefusalCanBePasted: a refusal prints a command that tells who may do what was refused, and it works as
// it is printed when an administrator runs it.
func TestTheHintOfARefusalCanBePasted(t *testing.T) {
	t.Parallel()
	list, _, tokens := guardedCluster(t)
	as := func(name string) []string {
		return []string{"--server", list[0].baseURL(), "--token-file", filepath.Join(tokens, name)}
	}
	for command, want := range map[string]struct{ hint, holder string }{
		"limit set cern:atlas cores=61":                                 {"limits.set cern", "account admin"},
		"allocate --id x --at cern:atlas/physics --amount cores=1":      {"hold cern:atlas/physics", "account hans"},
		"allocate --id x --at cern:atlas/physics/grid --amount cores=1": {"hold cern:atlas/physics", "account hans"},
		"level raise --dry-run":                                         {"cluster.read", "account ops"},
		"account list":                                                  {"access.read", "account admin"},
		"account create me":                                             {"access.manage", "account admin"},
	} {
		end := runCommand(t, append(strings.Fields(command), as("anna")...)...)
		_, hint, found := strings.Cut(end.stderr, "who may (administrators): quorate ")
		hint, _, _ = strings.Cut(hint, "\n")
		if end.code != 4 || !found || hint != "binding list "+want.hint {
			t.Errorf("%s prints the hint %q, want %q: %+v", command, hint, want.hint, end)
			continue
		}
		end = runCommand(t, append(strings.Fields(hint), as("admin")...)...)
		if end.code != 0 || !strings.Contains(end.stdout, want.holder) {
			t.Errorf("%s answers %+v, want %s", hint, end, want.holder)
		}
	}
	end := runCommand(t, append(strings.Fields("limit set cern:atlas cores=61"), as("carl")...)...)
	if strings.Contains(end.stderr, "who-can") {
		t.Errorf("a caller who does not see the node is shown it: %s", end.stderr)
	}
}
