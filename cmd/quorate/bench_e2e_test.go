package main_test

import (
	"strings"
	"testing"
)

// TestBench measures for a moment and leaves nothing behind.
func TestBench(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	server := startServer(t, f)
	for _, batch := range []string{"1", "10"} {
		measured := runCommand(t, "bench", "--server", f.baseURL(), "--callers", "1,4", "--batch", batch, "--leaves", "3", "--for", "200ms")
		if measured.code != 0 {
			t.Fatalf("batch %s: exit code %d\n%s", batch, measured.code, measured.stderr)
		}
		lines := strings.Split(strings.TrimSpace(measured.stdout), "\n")
		if len(lines) != 3 || !strings.HasPrefix(lines[0], "CALLERS") {
			t.Errorf("batch %s: want a heading and a line for each number of callers, got\n%s", batch, measured.stdout)
		}
	}
	for _, more := range [][]string{{"--for", "100ms"}, {"--for", "100ms", "--after-write"}} {
		reads := []string{"bench", "--server", f.baseURL(), "--callers", "1,2", "--reads", "linearizable,stale,min-index"}
		measured := runCommand(t, append(reads, more...)...)
		lines := strings.Split(strings.TrimSpace(measured.stdout), "\n")
		if measured.code != 0 || len(lines) != 7 || !strings.HasPrefix(lines[0], "READS") {
			t.Errorf("%v: exit code %d, want a line for each kind and number of callers, got\n%s%s", more, measured.code, measured.stdout, measured.stderr)
		}
	}
	if trees := runCommand(t, "trees", "--server", f.baseURL()); strings.Contains(trees.stdout, "bench-") {
		t.Errorf("a tree is left behind:\n%s", trees.stdout)
	}
	for _, wrong := range []string{"--callers=0", "--batch=1001", "--leaves=0", "--for=0s", "--reads=fresh", "--after-write"} {
		if refused := runCommand(t, "bench", wrong); refused.code != 2 {
			t.Errorf("bench %s: exit code %d, want 2", wrong, refused.code)
		}
	}
	server.stopCleanly(t)
}
