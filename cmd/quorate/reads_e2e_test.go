package main_test

import (
	"strings"
	"testing"
)

// TestReadsFromAnyServer runs each kind of read against each of three servers.
func TestReadsFromAnyServer(t *testing.T) {
	t.Parallel()
	flags := threeServers(t)
	servers := map[string]*process{}
	for _, f := range flags {
		servers[f.id] = startProcess(t, f.commandLine()...)
	}
	for _, f := range flags {
		awaitReady(t, servers[f.id], f)
	}
	flags[0].applyTree(t)
	flags[1].allocateEach(t, "a")
	for _, f := range flags {
		for _, options := range [][]string{nil, {"--min-index", "1"}, {"--stale", "--min-index", "1"}} {
			got := runCommand(t, append([]string{"usage", "t", "--server", f.baseURL(), "--timeout", "2m"}, options...)...)
			if marked := strings.Contains(got.stderr, "stale: answered by "+f.id); got.code != 0 ||
				marked != (options != nil) {
				t.Errorf("%s %v: exit code %d\n%s%s", f.id, options, got.code, got.stdout, got.stderr)
			}
		}
		far := runCommand(t, "usage", "t", "--server", f.baseURL(), "--min-index", "1000000000", "--timeout", "1s")
		if far.code != 6 {
			t.Errorf("%s: an index that no node has reached: exit code %d\n%s", f.id, far.code, far.stderr)
		}
	}
	for _, f := range flags {
		servers[f.id].stopCleanly(t)
	}
}
