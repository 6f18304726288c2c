package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// patience is how long one step may take on a busy machine.
const patience = 3 * time.Minute

// imageLayout is the layout that make image wrote. The test is skipped without it, because building it takes minutes.
func imageLayout(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("QUORATE_IMAGE")
	if folder == "" {
		t.Skip("make verify-image builds the image and runs it")
	}
	return folder
}

// containers runs podman with a storage of its own.
type containers struct {
	dir   string
	flags []string
}

func newContainers(t *testing.T) containers {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "quorate-image-") // layers cannot lie on every file system of temporary files
	if err != nil {
		t.Fatal(err)
	}
	c := containers{dir, []string{
		"--runtime", "runc", "--root", filepath.Join(dir, "root"), "--runroot", filepath.Join(dir, "run"),
		"--tmpdir", filepath.Join(dir, "tmp"), "--cgroup-manager", "cgroupfs", "--events-backend", "file",
	}}
	t.Cleanup(func() {
		for _, args := range [][]string{{"rm", "--all", "--force", "--volumes"}, {"rmi", "--all", "--force"}} {
			if out, err := c.try(args...); err != nil {
				t.Errorf("podman %v: %v\n%s", args, err, out)
			}
		}
		_ = syscall.Unmount(filepath.Join(dir, "root", "overlay"), syscall.MNT_DETACH) // not mounted by other drivers
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("the storage of the containers stays: %v", err)
		}
	})
	return c
}

func (c containers) command(args ...string) *exec.Cmd {
	return exec.Command("podman", append(append([]string{}, c.flags...), args...)...)
}

// try returns all of the output if the command fails.
func (c containers) try(args ...string) (string, error) {
	command := c.command(args...)
	var out, talk bytes.Buffer
	command.Stdout, command.Stderr = &out, &talk
	if err := command.Run(); err != nil {
		return out.String() + talk.String(), err
	}
	return strings.TrimSpace(out.String()), nil
}

func (c containers) must(t *testing.T, args ...string) string {
	t.Helper()
	out, err := c.try(args...)
	if err != nil {
		t.Fatalf("podman %v: %v\n%s", args, err, out)
	}
	return out
}

// pull loads the image for this machine. Podman names it by the path of the layout, which must have the form of a name.
func (c containers) pull(t *testing.T, layout string) (id string) {
	t.Helper()
	link := filepath.Join(c.dir, "layout")
	if err := os.Symlink(layout, link); err != nil {
		t.Fatal(err)
	}
	return c.must(t, "pull", "--quiet", "oci:"+link+":"+os.Getenv("QUORATE_VERSION"))
}

// runCommand begins a command line that runs a container, with limits that need no right to raise limits.
func runCommand(more ...string) []string {
	return append([]string{"run", "--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096", "--read-only",
		"--read-only-tmpfs=false"}, more...)
}

// startServer starts a server as Kubernetes' restricted profile has it: a read-only root, no capabilities, no new
// privileges.
func (c containers) startServer(t *testing.T, image string) (id, address string) {
	t.Helper()
	file, address := writeConfiguration(t, "/var/lib/quorate")
	if err := os.Chmod(file, 0o644); err != nil { //nolint:gosec // the user of the image reads it
		t.Fatal(err)
	}
	id = c.must(t, runCommand("--detach", "--network", "host", "--cap-drop", "all", "--security-opt",
		"no-new-privileges", "--volume", file+":"+configuration+":ro", image)...)
	t.Cleanup(func() {
		if t.Failed() {
			out, err := c.try("logs", id)
			t.Logf("the server said (%v): %s", err, out)
		}
	})
	return id, address
}

// writeConfiguration returns the address of the server's API.
func writeConfiguration(t *testing.T, data string) (file, address string) {
	t.Helper()
	ports := freePorts(t, 3)
	file = filepath.Join(t.TempDir(), "quorate.yaml")
	text := fmt.Sprintf("id: n1\ndata-dir: %s\nhttp-addr: %s\nraft-addr: %s\ngossip-addr: %s\n", data, ports[0], ports[1],
		ports[2])
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, "http://" + ports[0]
}

// allocateJob applies a tree and holds an allocation of it, by commands that call the server at an address.
func allocateJob(t *testing.T, address string, command func(args ...string) *exec.Cmd) {
	t.Helper()
	for _, args := range [][]string{
		{"apply", "-f", "-"},
		{"allocate", "--id", "job", "--at", "t", "--amount", "cores=3"},
	} {
		command := command(append([]string{"--server", address}, args...)...)
		command.Stdin = strings.NewReader(
			"trees: {t: {policy: strict, resources: {cores: {unit: count}}, limits: {cores: 10}}}\n")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
}

func (c containers) awaitHealthy(t *testing.T, id string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		out, err := c.try("exec", id, "/usr/bin/quorate", "server", "probe", "--config", configuration)
		if err == nil && strings.Contains(out, "is ready") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not healthy: %v\n%s", err, out)
		}
	}
}

// freePorts are free for TCP on loopback.
func freePorts(t *testing.T, count int) (addresses []string) {
	t.Helper()
	for range count {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		addresses = append(addresses, l.Addr().String())
	}
	return addresses
}

// TestTheImageRuns: a container tool runs the image with a read-only root and without rights; what it acknowledged is
// there after a restart.
func TestTheImageRuns(t *testing.T) {
	layout := imageLayout(t)
	podman := newContainers(t)
	image := podman.pull(t, layout)
	said := podman.must(t, runCommand("--rm", "--network", "none", image, "version")...)
	if !strings.Contains(said, os.Getenv("QUORATE_VERSION")) {
		t.Errorf("version: %s", said)
	}
	id, address := podman.startServer(t, image)
	podman.awaitHealthy(t, id)
	checkConfinement(t, podman, id)
	allocateJob(t, address, func(args ...string) *exec.Cmd {
		return podman.command(append([]string{"exec", "-i", id, "/usr/bin/quorate"}, args...)...)
	})
	podman.must(t, "stop", "--time", "60", id)
	if code := podman.must(t, "inspect", "--format", "{{.State.ExitCode}}", id); code != "0" {
		t.Errorf("stopped with exit code %s", code)
	}
	podman.must(t, "start", id)
	podman.awaitHealthy(t, id)
	held := []string{"exec", id, "/usr/bin/quorate", "--server", address, "allocations", "-o", "name"}
	if out := podman.must(t, held...); out != "job" {
		t.Errorf("allocations after a restart: %q", out)
	}
	answer, err := http.Get(address + "/livez")
	if err != nil || answer.Body.Close() != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("livez: %v, %v", answer, err)
	}
}

func checkConfinement(t *testing.T, podman containers, id string) {
	t.Helper()
	pid := podman.must(t, "inspect", "--format", "{{.State.Pid}}", id)
	status, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"Uid:\t65532\t65532\t65532\t65532", "Gid:\t65532\t65532\t65532\t65532", "CapEff:\t0000000000000000", "NoNewPrivs:\t1",
	} {
		if !strings.Contains(string(status), line) {
			t.Errorf("the process has not %q:\n%s", line, status)
		}
	}
	root := filepath.Join("/proc", pid, "root")
	if err := os.WriteFile(filepath.Join(root, "etc/written"), nil, 0o600); err == nil {
		t.Error("the root of the container is not read-only")
	}
	if _, err := os.Stat(filepath.Join(root, "bin/sh")); err == nil {
		t.Error("the image has a shell")
	}
}

// TestTheBuildIsReproducible: the image built again, from the sources, has the same bytes.
func TestTheBuildIsReproducible(t *testing.T) {
	first := imageLayout(t)
	again := filepath.Join(t.TempDir(), "image")
	build := exec.Command("make", "-C", "../..", "image", "IMAGE="+again, "VERSION="+os.Getenv("QUORATE_VERSION"))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want, got := digests(t, first), digests(t, again)
	if len(want) != len(got) {
		t.Errorf("%d files and %d files", len(want), len(got))
	}
	for name, digest := range want {
		if got[name] != digest {
			t.Errorf("%s differs", name)
		}
	}
}
