package runner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/chaos/check"
	"github.com/quorate/quorate/chaos/guarded"
	"github.com/quorate/quorate/chaos/runner"
	"github.com/quorate/quorate/internal/testbinary"
	"github.com/quorate/quorate/internal/verify"
)

// serverBinary builds the server, or returns the one that QUORATE_BINARY names.
func serverBinary(t *testing.T) string {
	t.Helper()
	if named := os.Getenv("QUORATE_BINARY"); named != "" {
		return named
	}
	path := filepath.Join(t.TempDir(), "quorate")
	if err := testbinary.Build(t.Context(), path, "../../cmd/quorate"); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSmoke breaks real clusters for some seconds. It checks the promises, but not liveness, which depends on the
// machine.
func TestSmoke(t *testing.T) {
	if testing.Short() {
		t.Skip("real processes")
	}
	t.Parallel()
	binary := serverBinary(t)
	for name, config := range map[string]runner.Config{
		"quick": {
			Scenario: []string{"kill-leader"}, Workloads: []string{"deep", "items", "read", "retry", "wait", "watch"},
			Length: 4 * time.Second,
		},
		"leaders": {Scenario: []string{"isolate-leader", "kill-leader", "pause-leader"}, Length: 8 * time.Second},
		"guarded": {
			Scenario: []string{"kill-leader", "isolate-leader"}, Workloads: []string{"limits", "read", "wait"},
			Guarded: true, Length: 12 * time.Second,
		},
		"members": {Scenario: []string{"remove-member", "demote-member", "hand-over"}, Length: 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "quick" {
				verify.Only(t)
			}
			t.Parallel()
			playShortRun(t, binary, config)
		})
	}
}

func playShortRun(t *testing.T, binary string, config runner.Config) {
	t.Helper()
	config.Binary, config.Dir, config.Size, config.Seed = binary, t.TempDir(), 3, 1
	config.Clients, config.Pause, config.PlainDisks, config.Patience = 1, 30*time.Millisecond, true, 5*time.Minute
	result, err := runner.Run(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s%s", result.String(), result.Timeline())
	for _, failure := range result.Failures {
		if !strings.HasPrefix(failure, "live: ") {
			t.Error(failure)
		}
	}
	if config.Guarded {
		checkExamined(t, result.Verdicts)
	}
	if len(result.History.Ops) == 0 || result.Faults.All() == 0 {
		t.Errorf("%d operations and %d faults prove nothing", len(result.History.Ops), result.Faults.All())
	}
}

// checkExamined fails the test if a guarded run has proved nothing of a kind.
func checkExamined(t *testing.T, verdicts check.Verdicts) {
	t.Helper()
	access, audit := verdicts.Of(guarded.Access), verdicts.Of(guarded.Audit)
	if access == nil || audit == nil {
		t.Fatalf("the run did not judge access:\n%s", verdicts)
	}
	for _, kind := range guarded.Examined() {
		if access.Counts[kind]+audit.Counts[kind] == 0 {
			t.Errorf("the run examined no %s", kind)
		}
	}
}
