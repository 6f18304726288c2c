package simtest

import (
	"context"
	"flag"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quorate/quorate/chaos/overlay"
	"github.com/quorate/quorate/chaos/planted"
)

var findPlanted = flag.Bool("planted", false, "build this test with one planted bug after the other, and find each")

// moduleRoot is the root folder of the module.
const moduleRoot = "../.."

// TestPlantedBugsAreFound builds this test with one bug after the other and plays seeds until one of them fails.
func TestPlantedBugsAreFound(t *testing.T) {
	if !*findPlanted {
		t.Skip("make chaos-selftest runs this")
	}
	for _, bug := range planted.Bugs() {
		if bug.VirtualTime {
			t.Run(bug.Name, func(t *testing.T) { findBug(t, bug, buildWith(t, bug.Name)) })
		}
	}
}

func buildWith(t *testing.T, bug string) string {
	t.Helper()
	o, err := overlay.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := planted.Apply(bug, moduleRoot, o); err != nil {
		t.Fatal(err)
	}
	file, err := o.Write()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "simtest.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", file, "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// findBug plays seeds, a few at a time, until one of them fails.
func findBug(t *testing.T, bug planted.Bug, binary string) {
	t.Helper()
	const most, few = 60, 6
	args := []string{"-test.run=^TestSeeds$", "-workload", strings.Join(bug.Workloads, ",")}
	if bug.Guarded {
		args = []string{"-test.run=^TestGuardedSeeds$"}
	}
	for first := 1; first < most; first += few {
		out, err := playSeeds(t.Context(), binary, args, few, first)
		if err != nil {
			t.Logf("found in seeds from %d on: %s", first, firstViolation(out))
			return
		}
	}
	t.Errorf("%d seeds did not find it", most)
}

func playSeeds(ctx context.Context, binary string, args []string, seeds, first int) (string, error) {
	args = append(slices.Clone(args), "-seeds", strconv.Itoa(seeds), "-first", strconv.Itoa(first))
	out, err := exec.CommandContext(ctx, binary, args...).CombinedOutput()
	return string(out), err
}

func firstViolation(out string) string {
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "panic") || strings.Contains(line, "_test.go:") &&
			!strings.Contains(line, "examined in all") {
			return line
		}
	}
	return out
}
