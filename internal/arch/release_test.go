package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/verify"
)

// TestReleasesCanBeInstalled tags a version in a copy of this repository as CONTRIBUTING.md says, and lets go install
// load the program from it: the module of the server must be complete without the folder of the client beside it, and
// must have no replace.
func TestReleasesCanBeInstalled(t *testing.T) {
	verify.Only(t) // a module cache of its own has to be filled
	const version = "v1.999.0"
	parent := t.TempDir()
	clone := filepath.Join(parent, "quorate")
	environment := fromClone(t, clone)
	run := func(program string, args ...string) {
		t.Helper()
		command := exec.CommandContext(t.Context(), program, args...)
		command.Dir, command.Env = clone, environment
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
		}
	}
	if out, err := exec.Command("git", "clone", "--quiet", root, clone).CombinedOutput(); err != nil {
		t.Fatalf("git clone: %v\n%s", err, out)
	}
	run("git", "tag", "client/"+version)
	run("make", "pin-client", "VERSION="+version)
	run("git", "commit", "--quiet", "--all", "--message=release")
	run("git", "tag", version)
	run("go", "install", "-n", module+"cmd/quorate@"+version)
}

// TestOnlyTheClientIsReplaced: make pin-client drops that replace and no other.
func TestOnlyTheClientIsReplaced(t *testing.T) {
	for line := range strings.Lines(readFile(t, root+"/go.mod")) {
		if strings.Contains(line, "=>") && strings.TrimSpace(line) != "replace "+clientModule+" => ./client" {
			t.Errorf("go.mod has %q, with which go install refuses the program of a release", line)
		}
	}
}

// fromClone is an environment in which go downloads the modules of this repository from a clone, and all others from
// what is downloaded already.
func fromClone(t *testing.T, clone string) []string {
	t.Helper()
	downloaded := strings.TrimSpace(goCommand(t, root, "env", "GOMODCACHE"))
	proxies := strings.TrimSpace(goCommand(t, root, "env", "GOPROXY"))
	cache := t.TempDir()
	t.Cleanup(func() { // modules are read-only
		command := exec.Command("go", "clean", "-modcache")
		command.Env = append(os.Environ(), "GOMODCACHE="+cache)
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("go clean -modcache: %v\n%s", err, out)
		}
	})
	return append(os.Environ(), "GOWORK=off", "GOFLAGS=", "GOMODCACHE="+cache, "GOPRIVATE=github.com/quorate",
		"GOPROXY=file://"+downloaded+"/cache/download,"+proxies,
		"GIT_CONFIG_COUNT=3",
		"GIT_CONFIG_KEY_0=url.file://"+clone+".insteadOf", "GIT_CONFIG_VALUE_0=https://"+strings.TrimSuffix(module, "/"),
		"GIT_CONFIG_KEY_1=user.name", "GIT_CONFIG_VALUE_1=test",
		"GIT_CONFIG_KEY_2=user.email", "GIT_CONFIG_VALUE_2=test@example.org")
}
