package main_test

import (
	"archive/tar"
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	adminv1 "github.com/quorate/quorate/client/gen/quorate/admin/v1"
	"github.com/quorate/quorate/client/gen/quorate/admin/v1/adminv1connect"
	"github.com/quorate/quorate/internal/testbinary"
)

// released maps the versions whose data this one must be able to read to their commits. previous is the version from
// which rolling upgrades to this one are tested.
var released, previous = releasedVersions()

// commitsText is the list of releases, which make chaos also reads. It is embedded because the test binary also runs in
// other folders, as the curl of docs/operations.md.
//
//go:embed testdata/released/commits.txt
var commitsText string

func releasedVersions() (commits map[string]string, newest string) {
	commits = map[string]string{}
	for line := range strings.Lines(commitsText) {
		if words := strings.Fields(line); len(words) == 2 {
			commits[words[0]], newest = words[1], words[0]
		}
	}
	return commits, newest
}

// release is the binary of a released version, built from its source.
type release struct {
	once           sync.Once
	folder, binary string
	skip           string
	fault          error
}

var previousRelease release

// buildOnce skips the test if the version cannot be built here.
func (r *release) buildOnce(t *testing.T, version string) (source, binary string) {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds another version")
	}
	r.once.Do(func() { r.buildVersion(version) })
	if r.skip != "" {
		t.Skip(r.skip)
	}
	if r.fault != nil {
		t.Fatal(r.fault)
	}
	return r.folder, r.binary
}

// buildVersion unpacks a version beside the binary under test, in a folder that is removed after all tests, and builds
// it. A missing git history or an unavailable dependency is not a failure.
func (r *release) buildVersion(version string) {
	r.folder = filepath.Join(filepath.Dir(binary), version)
	r.binary = filepath.Join(r.folder, "quorate")
	packed, err := exec.Command("git", "-C", "../..", "archive", "--format=tar", released[version]).Output()
	if err != nil {
		r.skip = fmt.Sprintf("this clone has no history back to %s, or git is not there: %v", version, err)
		return
	}
	if r.fault = unpackArchive(packed, r.folder); r.fault != nil {
		return
	}
	if says, err := r.runGo("list", "-deps", "./cmd/quorate"); err != nil {
		r.skip = fmt.Sprintf("the libraries of %s cannot be had: %v\n%s", version, err, says)
		return
	}
	// One package at a time, because other tests run concurrently.
	flags := append([]string{"build", "-p", "1", "-ldflags", "-s -w -X main.version=" + version},
		testbinary.Flags()...)
	flags = append(flags, "-o", r.binary, "./cmd/quorate")
	if says, err := r.runGo(flags...); err != nil {
		r.fault = fmt.Errorf("building %s: %w\n%s", version, err, says)
	}
}

func (r *release) runGo(args ...string) (string, error) {
	command := exec.Command("go", args...)
	command.Dir = r.folder
	said, err := command.CombinedOutput()
	return string(said), err
}

func unpackArchive(packed []byte, folder string) error {
	reader := tar.NewReader(bytes.NewReader(packed))
	for {
		header, err := reader.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case !filepath.IsLocal(header.Name):
			continue
		}
		path := filepath.Join(folder, header.Name)
		switch header.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, 0o755)
		case tar.TypeReg:
			err = unpackFile(reader, path)
		}
		if err != nil {
			return err
		}
	}
}

func unpackFile(from io.Reader, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	return errors.Join(err, file.Close())
}

// serverCommand starts a server. Versions before commands were a noun and a verb call it "quorate server".
func serverCommand(program string, f serverFlags) *exec.Cmd {
	args := f.commandLine()
	if help, _ := exec.Command(program, "server", "run", "--help").Output(); !bytes.Contains(help, []byte("server run")) {
		args = slices.Delete(args, 1, 2)
	}
	return commandOf(program, args...)
}

func commandOf(program string, args ...string) *exec.Cmd { return exec.Command(program, args...) }

// startVersion starts a server of the given version and waits until it is ready.
func startVersion(t *testing.T, program string, f serverFlags) *process {
	t.Helper()
	p := startCommand(t, serverCommand(program, f))
	awaitReady(t, p, f)
	return p
}

func (f serverFlags) memberStatus(t *testing.T) (*adminv1.GetStatusResponse, error) {
	t.Helper()
	return adminv1connect.NewClusterServiceClient(fresh, f.baseURL()).GetStatus(t.Context(),
		&adminv1.GetStatusRequest{})
}

func (f serverFlags) runLine(t *testing.T, line string) outcome {
	t.Helper()
	return runCommand(t, append([]string{"--server", f.baseURL()}, strings.Fields(line)...)...)
}

func (f serverFlags) runUntilDone(t *testing.T, line string) {
	t.Helper()
	var end outcome
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if end = f.runLine(t, line); end.code == 0 {
			return
		}
	}
	t.Errorf("%s ends with %d: %s%s", line, end.code, end.stdout, end.stderr)
}
