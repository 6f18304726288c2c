//go:build race

package main_test

// buildFlags make the binary under test find races when the tests do.
var buildFlags = []string{"-race", "-tags", "invariants"}
