package runner_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/chaos/runner"
)

// server builds the server, or takes the one that QUORATE_BINARY names.
func server(t *testing.T) string {
	t.Helper()
	if named := os.Getenv("QUORATE_BINARY"); named != "" {
		return named
	}
	path := filepath.Join(t.TempDir(), "quorate")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", path, "../../cmd/quorate").CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

// TestSmoke breaks real clusters for some seconds. It judges what may never happen; how long things take it leaves to
// machines of which something is known.
func TestSmoke(t *testing.T) {
	if testing.Short() {
		t.Skip("real processes")
	}
	t.Parallel()
	binary := server(t)
	for name, scenario := range map[string][]string{
		"leaders": {"isolate-leader", "kill-leader", "pause-leader"},
		"members": {"remove-member", "demote-member", "hand-over"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			smoke(t, binary, scenario)
		})
	}
}

func smoke(t *testing.T, binary string, scenario []string) {
	t.Helper()
	result, err := runner.Run(t.Context(), runner.Config{
		Binary: binary, Dir: t.TempDir(), Size: 3, Seed: 1, Clients: 1, Pause: 30 * time.Millisecond, PlainDisks: true,
		Scenario: scenario, Length: 8 * time.Second, Patience: 5 * time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s%s", result.String(), result.Timeline())
	for _, failure := range result.Failures {
		if !strings.HasPrefix(failure, "live: ") {
			t.Error(failure)
		}
	}
	if len(result.History.Ops) == 0 || result.Faults.All() == 0 {
		t.Errorf("%d operations and %d faults prove nothing", len(result.History.Ops), result.Faults.All())
	}
}
