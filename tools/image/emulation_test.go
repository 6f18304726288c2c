package main

import (
	"archive/tar"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// foreign is the architecture of the image that this machine lacks, and the program that emulates it.
var foreign = map[string]struct{ architecture, emulator string }{
	"amd64": {"arm64", "qemu-aarch64-static"}, "arm64": {"amd64", "qemu-x86_64-static"},
}[runtime.GOARCH]

type emulated struct{ binary string }

func openForeign(t *testing.T, layout string) emulated {
	t.Helper()
	archive := mutate.Extract(openImages(t, layout)[foreign.architecture])
	defer func() { _ = archive.Close() }()
	reader := tar.NewReader(archive)
	for {
		h, err := reader.Next()
		if err != nil {
			t.Fatalf("looking for the binary: %v", err)
		}
		if h.Name != "usr/bin/quorate" {
			continue
		}
		text, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		binary := filepath.Join(t.TempDir(), "quorate")
		if err := os.WriteFile(binary, text, 0o700); err != nil { //nolint:gosec // it is executed
			t.Fatal(err)
		}
		return emulated{binary}
	}
}

func (e emulated) command(args ...string) *exec.Cmd {
	return exec.Command(foreign.emulator, append([]string{e.binary}, args...)...)
}

func (e emulated) startServer(t *testing.T, file string) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	server := e.command("server", "run", "--config", file)
	server.Stdout, server.Stderr = log, log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill() // it may have ended
		_ = server.Wait()         // it was killed
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("the server said: %s", text)
		}
	})
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		out, err := e.command("server", "probe", "--config", file).CombinedOutput()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not healthy: %v\n%s", err, out)
		}
	}
}

// TestTheOtherArchitecture: under emulation the binary for the architecture that this machine lacks forms a cluster and
// grants what is asked for.
func TestTheOtherArchitecture(t *testing.T) {
	e := openForeign(t, imageLayout(t))
	said, err := e.command("version").CombinedOutput()
	if want := "linux/" + foreign.architecture; err != nil || !strings.Contains(string(said), want) {
		t.Fatalf("version does not say %s: %v\n%s", want, err, said)
	}
	file, address := writeConfiguration(t, filepath.Join(t.TempDir(), "data"))
	e.startServer(t, file)
	allocateJob(t, address, e.command)
	held, err := e.command("--server", address, "allocations", "-o", "name").CombinedOutput()
	if err != nil || strings.TrimSpace(string(held)) != "job" {
		t.Errorf("allocations: %q, %v", held, err)
	}
}
