package main_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestListsOfMisspelledPlaces: every list says once which place may be meant, to those who see it.
func TestListsOfMisspelledPlaces(t *testing.T) {
	t.Parallel()
	list, _, tokens := guardedCluster(t)
	as := func(name, command string) []string {
		return append(strings.Fields(command), "--token-file", filepath.Join(tokens, name))
	}
	for _, command := range []string{
		"queue list", "allocation list", "lease list", "event list", "revision list", "request list",
		"watch",
	} {
		for _, c := range []struct{ at, says string }{
			{"cern:atlas/phisics", "did you mean cern:atlas/physics?"},
			{"cren:atlas", "there is no tree cren, or you may not see it; did you mean cern?"},
			{"cern:cms", "there is no node cern:cms, or you may not see it; the nearest that exists is cern (not_found)"},
			{"cern:csm", "there is no node cern:csm, or you may not see it; the nearest that exists is cern (not_found)"},
		} {
			end := runCommand(t, append(as("anna", command+" --at "+c.at), "--server", list[1].baseURL())...)
			if end.code != 1 || !strings.Contains(end.stderr, c.says) || strings.Count(end.stderr, "did you mean") > 1 {
				t.Errorf("%s --at %s: exit code %d, want 1 and %q in\n%s", command, c.at, end.code, c.says, end.stderr)
			}
		}
	}
}
