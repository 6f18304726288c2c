package verify

import (
	"flag"
	"os"
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
