// Package testbinary builds programs of this module for tests that start them, with the race detector and the
// invariant checks if the test itself has them: what the test has compiled is then not compiled a second time.
package testbinary

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Flags returns the flags of go build with which this test was built.
func Flags() []string { return slices.Concat([]string{"-buildvcs=false"}, raceFlags, tagFlags) }

// Build compiles the main package in folder into a file, with Flags.
func Build(ctx context.Context, file, folder string) error {
	return BuildPackage(ctx, file, folder, ".")
}

// BuildPlain compiles the main package in folder into a file as users get it, for tests that measure it.
func BuildPlain(ctx context.Context, file, folder string) error {
	return BuildPackagePlain(ctx, file, folder, ".")
}

// BuildPackage compiles a main package of the module of folder, or of a module that it requires, into a file, with
// Flags. It leaves out the tables for debuggers, which take a third of the time to link.
func BuildPackage(ctx context.Context, file, folder, name string) error {
	return buildWith(ctx, append(Flags(), "-ldflags=-s -w"), file, folder, name)
}

// BuildPackagePlain is BuildPackage as users get the program.
func BuildPackagePlain(ctx context.Context, file, folder, name string) error {
	return buildWith(ctx, []string{"-buildvcs=false"}, file, folder, name)
}

// endAtOnce makes the programs that this test starts end without the second for which one with the race detector waits,
// by default, for reports of its other threads: tests start thousands of commands. The thread that finds a race reports
// it at once. Options that the caller has set in GORACE come later and win.
func endAtOnce() error {
	const variable, option = "GORACE", "atexit_sleep_ms=0"
	if given := os.Getenv(variable); len(raceFlags) > 0 && !strings.Contains(given, option) {
		return os.Setenv(variable, strings.TrimSpace(option+" "+given))
	}
	return nil
}

func buildWith(ctx context.Context, flags []string, file, folder, name string) error {
	if err := endAtOnce(); err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", slices.Concat([]string{"build", "-o", file}, flags, []string{name})...)
	build.Dir = folder
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s in %s: %w\n%s", name, folder, err, out)
	}
	return nil
}
