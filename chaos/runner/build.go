package runner

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/quorate/quorate/chaos/nodes"
	"github.com/quorate/quorate/chaos/overlay"
	"github.com/quorate/quorate/chaos/planted"
)

// Build says how to build the server.
type Build struct {
	// Source is the root folder of the module.
	Source string
	// Version is the version that the server reports, and part of the name of the binary; "chaos" and nothing if
	// empty.
	Version string
	// Planted is the planted bug that the server has; none if empty.
	Planted string
	// Turnable builds a server whose wall clock can be set.
	Turnable bool
}

// Make builds the server into a folder and returns the path of the binary. Go's build cache makes it fast, except for
// the first build with a turnable clock, which compiles the standard library too.
func (b Build) Make(ctx context.Context, dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("build the server: %w", err)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("build the server: %w", err)
	}
	name := b.binaryName()
	args := []string{"build", "-buildvcs=false", "-ldflags", "-X main.version=" + cmp.Or(b.Version, "chaos")}
	if b.Planted != "" || b.Turnable {
		file, err := b.writeOverlay(filepath.Join(dir, "overlay-"+name))
		if err != nil {
			return "", fmt.Errorf("build the server: %w", err)
		}
		args = append(args, "-overlay", file)
	}
	binary := filepath.Join(dir, name)
	command := exec.CommandContext(ctx, "go", append(args, "-o", binary, "./cmd/quorate")...)
	command.Dir = b.Source
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the server: %w\n%s", err, out)
	}
	return binary, nil
}

// writeOverlay returns the path of the overlay file.
func (b Build) writeOverlay(dir string) (string, error) {
	o, err := overlay.New(dir)
	if err != nil {
		return "", err
	}
	if b.Turnable {
		if err := nodes.AddTurnableClock(o); err != nil {
			return "", err
		}
	}
	if b.Planted != "" {
		if err := planted.Apply(b.Planted, b.Source, o); err != nil {
			return "", err
		}
	}
	return o.Write()
}

func (b Build) binaryName() string {
	name := "quorate"
	if b.Version != "" {
		name += "-" + b.Version
	}
	if b.Planted != "" {
		name += "-" + b.Planted
	}
	if b.Turnable {
		name += "-turnable"
	}
	return name
}
