//go:build invariants

package testbinary

var tagFlags = []string{"-tags", "invariants"}
