//go:build planted

package simtest

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/quorate/quorate/quota"
)

// plantedVariable says which bug this process has.
const plantedVariable = "CHAOS_PLANTED"

func init() { quota.Plant(os.Getenv(plantedVariable)) } //nolint:gochecknoinits // before any test, as in the server

// inVirtualTime are the bugs that can show there: nobody turns its clocks, no process of it stands still while others go on,
// and all its nodes are one process, so that they skip the same commands.
var inVirtualTime = []string{"early-acknowledge", "forget-ids", "double-grant", "map-order", "one-too-many", "early-expiry", "queue-jump"}

// TestPlantedBugsAreFound runs this very program with one bug after the other, until a seed finds it.
func TestPlantedBugsAreFound(t *testing.T) {
	if os.Getenv(plantedVariable) != "" {
		t.Skip("this is the process with the bug")
	}
	for _, bug := range inVirtualTime {
		t.Run(bug, func(t *testing.T) { find(t, bug) })
	}
}

// find plays seeds, a few at a time.
func find(t *testing.T, bug string) {
	t.Helper()
	const most, few = 60, 6
	for first := 1; first < most; first += few {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSeeds$", "-seeds", strconv.Itoa(few), "-first", strconv.Itoa(first))
		again.Env = append(os.Environ(), plantedVariable+"="+bug)
		out, err := again.CombinedOutput()
		if err != nil {
			t.Logf("found in seeds from %d on: %s", first, broken(string(out)))
			return
		}
	}
	t.Errorf("%d seeds did not find it", most)
}

// broken is the first violation in the output of a test.
func broken(out string) string {
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "panic") || strings.Contains(line, "_test.go:") && !strings.Contains(line, "examined in all") {
			return line
		}
	}
	return out
}
