package servertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/quorate/quorate/internal/testbinary"
)

// Program is a main package that tests start. The first call of Path builds it, into a folder that Main removes.
type Program struct {
	// Folder is the folder where go build runs, relative to that of the tests; if empty, the root of Quorate's module.
	Folder string
	// Package is the main package as go build takes it.
	Package string
	// Plain omits the race detector and the invariant checks, which the program otherwise has if the test has them.
	Plain bool

	once sync.Once
	file string
	err  error
}

// Quorate is the program under test. If QUORATE_BINARY names a file, tests start that one instead of building it.
var Quorate = &Program{Package: "./cmd/quorate"}

// Set by Main: where programs are built into, and the folder of the tests, which a test may leave by Chdir.
var binaries, testFolder string

// Main runs the tests of a package and returns the exit code for os.Exit. TestMain calls it.
func Main(m *testing.M) int {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

func runTests(m *testing.M) (code int, err error) {
	if testFolder, err = os.Getwd(); err != nil {
		return 1, err
	}
	if binaries, err = os.MkdirTemp("", "quorate-servertest-"); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(binaries)) }()
	return m.Run(), nil
}

// Path returns the file of the program.
func (p *Program) Path(t testing.TB) string {
	t.Helper()
	p.once.Do(func() { p.file, p.err = p.findOrBuild() })
	if p.err != nil {
		t.Fatal(p.err)
	}
	return p.file
}

func (p *Program) findOrBuild() (string, error) {
	if binaries == "" {
		return "", errors.New("TestMain of this package does not call servertest.Main")
	}
	if given := os.Getenv("QUORATE_BINARY"); given != "" && p == Quorate {
		return fromTestFolder(given), nil
	}
	folder := fromTestFolder(p.Folder)
	if p.Folder == "" {
		var err error
		if folder, err = moduleRoot(testFolder); err != nil {
			return "", err
		}
	}
	build := testbinary.BuildPackage
	if p.Plain {
		build = testbinary.BuildPackagePlain
	}
	file := filepath.Join(binaries, filepath.Base(p.Package))
	return file, build(context.Background(), file, folder, p.Package)
}

func fromTestFolder(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(testFolder, path)
}

// moduleRoot returns the nearest folder at or above another one that is the root of Quorate's module: tests of modules
// below it run in folders below it too.
func moduleRoot(folder string) (string, error) {
	for at := folder; ; at = filepath.Dir(at) {
		text, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module github.com/quorate/quorate\n") {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not below the root of Quorate's module", folder)
		}
	}
}

// Command returns a command of Quorate with Environment, not started.
func Command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	return newCommand(context.Background(), Quorate.Path(t), args)
}

func newCommand(ctx context.Context, file string, args []string) *exec.Cmd {
	command := exec.CommandContext(ctx, file, args...)
	command.Env = Environment()
	return command
}

// Environment returns the variables of the machine without QUORATE_*.
func Environment() []string {
	var kept []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "QUORATE_") {
			kept = append(kept, variable)
		}
	}
	return kept
}
