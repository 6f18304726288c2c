package runner

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/quorate/quorate/chaos/nodes"
)

// Build says how to build the server.
type Build struct {
	// Source is the folder of the module.
	Source string
	// Version is what the server calls itself, and a part of the name of the binary; "chaos" and none if empty.
	Version string
	// Planted builds the version with planted bugs, Turnable the one whose wall clock can be turned.
	Planted, Turnable bool
}

// Make builds the server into a folder and answers the path of the binary. What Go remembers of earlier builds makes it
// quick, but for the first with a clock that can be turned, which is a build of the standard library too.
func (b Build) Make(ctx context.Context, dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("build the server: %w", err)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("build the server: %w", err)
	}
	name := b.name()
	args := []string{"build", "-buildvcs=false", "-ldflags", "-X main.version=" + cmp.Or(b.Version, "chaos")}
	if b.Planted {
		args = append(args, "-tags", "planted")
	}
	if b.Turnable {
		overlay, err := nodes.Overlay(filepath.Join(dir, "overlay"))
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay", overlay)
	}
	binary := filepath.Join(dir, name)
	command := exec.CommandContext(ctx, "go", append(args, "-o", binary, "./cmd/quorate")...)
	command.Dir = b.Source
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the server: %w\n%s", err, out)
	}
	return binary, nil
}

// name is that of the binary.
func (b Build) name() string {
	name := "quorate"
	if b.Version != "" {
		name += "-" + b.Version
	}
	if b.Planted {
		name += "-planted"
	}
	if b.Turnable {
		name += "-turnable"
	}
	return name
}
