//go:build !race

package main_test

// buildFlags of the binary under test.
var buildFlags []string
