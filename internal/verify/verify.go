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

// Check is rapid.Check, with fewer runs in make test. The flag -rapid.checks and RAPID_CHECKS override the number.
func Check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	lowerChecks(t)
	rapid.Check(t, property)
}

var lowered sync.Once

// lowerChecks changes the default of -rapid.checks for the whole test binary: rapid has no other way to pass a number.
func lowerChecks(t *testing.T) {
	t.Helper()
	lowered.Do(func() {
		given := os.Getenv("RAPID_CHECKS") != ""
		flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
		if given || Enabled() {
			return
		}
		if err := flag.Set("rapid.checks", quickChecks); err != nil {
			t.Fatal(err)
		}
	})
}
