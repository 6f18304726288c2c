package verify

import (
	"flag"
	"os"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

func TestLevels(t *testing.T) {
	for value, full := range map[string]bool{"": false, "0": false, "1": true} {
		t.Run("QUORATE_VERIFY="+value, func(t *testing.T) {
			t.Setenv(variable, value)
			skipped := false
			t.Run("Only", func(t *testing.T) {
				t.Cleanup(func() { skipped = t.Skipped() })
				Only(t)
			})
			if got := Scale(1, 2); skipped == full || got == 2 != full || Enabled() != full {
				t.Errorf("skipped %v, scale %d, enabled %v", skipped, got, Enabled())
			}
		})
	}
}

func TestCheckRunsFewerChecks(t *testing.T) {
	t.Setenv(variable, "")
	given := os.Getenv("RAPID_CHECKS") != ""
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if given {
		t.Skip("the number of checks is given")
	}
	runs := 0
	Check(t, func(*rapid.T) { runs++ })
	if strconv.Itoa(runs) != quickChecks {
		t.Errorf("the property ran %d times, want %s", runs, quickChecks)
	}
}

func TestCheckDrawsTheSameValues(t *testing.T) {
	t.Setenv(variable, "")
	given := os.Getenv("RAPID_SEED") != ""
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.seed" && f.Value.String() != quickSeed })
	if given {
		t.Skip("the seed is given")
	}
	var drawn [2][]uint64
	for i := range drawn {
		Check(t, func(t *rapid.T) { drawn[i] = append(drawn[i], rapid.Uint64().Draw(t, "value")) })
	}
	if len(drawn[0]) < 2 || !slices.Equal(drawn[0], drawn[1]) {
		t.Errorf("first %v, then %v", drawn[0], drawn[1])
	}
}
