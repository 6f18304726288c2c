// Package testbinary builds programs of this module for tests that start them, with the race detector and the
// invariant checks if the test itself has them: what the test has compiled is then not compiled a second time.
package testbinary

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
)

// Flags returns the flags of go build with which this test was built.
func Flags() []string { return slices.Concat([]string{"-buildvcs=false"}, raceFlags, tagFlags) }

// Build compiles the main package in folder into a file, with Flags.
func Build(ctx context.Context, file, folder string) error {
	return buildWith(ctx, Flags(), file, folder)
}

// BuildPlain compiles the main package in folder into a file as users get it, for tests that measure it.
func BuildPlain(ctx context.Context, file, folder string) error {
	return buildWith(ctx, []string{"-buildvcs=false"}, file, folder)
}

func buildWith(ctx context.Context, flags []string, file, folder string) error {
	build := exec.CommandContext(ctx, "go", slices.Concat([]string{"build", "-o", file}, flags, []string{"."})...)
	build.Dir = folder
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build in %s: %w\n%s", folder, err, out)
	}
	return nil
}
