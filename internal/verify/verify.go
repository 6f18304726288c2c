// Package verify separates the tests that every change runs (make test) from the exhaustive ones (make verify).
//
//	func TestEveryOrderOfCommands(t *testing.T) {
//		verify.Only(t) // six minutes
//		…
//	}
//
//	rounds := verify.Scale(10, 200) // 10 in make test, 200 in make verify
//
// A test that Only skips must leave something behind that make test runs: a shorter selection of the same, at least
// one case of each kind.
package verify

import (
	"os"
	"testing"
)

// variable is set to 1 by make verify.
const variable = "QUORATE_VERIFY"

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
