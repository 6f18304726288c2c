// Package verify separates the tests that every change runs (make test) from the exhaustive ones (make verify).
//
//	func TestEveryOrderOfCommands(t *testing.T) {
//		verify.Only(t) // six minutes
//		…
//	}
//
//	rounds := verify.Scale(10, 200) // 10 in make test, 200 in make verify
//
//	verify.Check(t, property) // rapid.Check with 10 runs in make test, 100 in make verify
//
// In make test a property sees the same values each time, so that a failure is due to what changed; make verify draws
// new ones.
//
// A test that Only skips must leave something behind that make test runs: a shorter selection of the same, at least
// one case of each kind.
package verify

import (
	"flag"
	"os"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// variable is set to 1 by make verify.
const variable = "QUORATE_VERIFY"

// quickChecks is how often make test runs a property, instead of the 100 times that are the default of rapid.
const quickChecks = "10"

// quickSeed is where the values of a property begin in make test.
const quickSeed = "1"

// Enabled reports whether exhaustive tests run.
func Enabled() bool { return os.Getenv(variable) == "1" }

// Only skips a test that is too slow for make test.
func Only(t testing.TB) {
	t.Helper()
	if !Enabled() {
		t.Skip("exhaustive: make verify runs it, and so does " + variable + "=1 go test")
	}
}

// Scale returns how much a test does: quick in make test, full in make verify.
func Scale[T any](quick, full T) T {
	if Enabled() {
		return full
	}
	return quick
}

// Check is rapid.Check, with fewer runs of the same values in make test. The flags -rapid.checks and -rapid.seed, and
// the variables RAPID_CHECKS and RAPID_SEED, override the number and the values.
func Check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	changed.Do(func() {
		if Enabled() {
			return
		}
		changeDefault(t, "rapid.checks", "RAPID_CHECKS", quickChecks)
		changeDefault(t, "rapid.seed", "RAPID_SEED", quickSeed)
	})
	rapid.Check(t, property)
}

var changed sync.Once

// changeDefault changes the default of a flag of rapid for the whole test binary: there is no other way to pass a
// value.
func changeDefault(t *testing.T, name, variable, value string) {
	t.Helper()
	given := os.Getenv(variable) != ""
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	if given {
		return
	}
	if err := flag.Set(name, value); err != nil {
		t.Fatal(err)
	}
}
