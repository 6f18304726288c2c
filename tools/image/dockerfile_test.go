package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// newBuilder makes an image that stands for golang of a registry: a shell, and Go and its caches of this machine.
func (c containers) newBuilder(t *testing.T) (volumes []string) {
	t.Helper()
	dir := t.TempDir()
	shell, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"bin", "etc/ssl/certs", "root", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, "root", folder), 0o755); err != nil { //nolint:gosec // as in images
			t.Fatal(err)
		}
	}
	authorities, err := os.ReadFile("/etc/ssl/certs/ca-certificates.crt")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(shell)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"root/etc/ssl/certs/ca-certificates.crt": authorities, "root/bin/busybox": program,
		"Containerfile": []byte("FROM scratch\nCOPY root /\nENV PATH=/usr/local/go/bin:/bin HOME=/root GOPATH=/go " +
			"GOMODCACHE=/go/pkg/mod GOCACHE=/go/cache GOTOOLCHAIN=local GOFLAGS=-mod=mod GOPROXY=off\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil { //nolint:gosec // as in images
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "root/bin/busybox"), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	for _, name := range []string{"sh", "mkdir", "cp", "echo", "printf"} {
		if err := os.Symlink("busybox", filepath.Join(dir, "root/bin", name)); err != nil {
			t.Fatal(err)
		}
	}
	c.must(t, "build", "--isolation", "chroot", "--quiet", "--tag", "builder", dir)
	for variable, at := range map[string]string{
		"GOROOT": "/usr/local/go:ro", "GOMODCACHE": "/go/pkg/mod", "GOCACHE": "/go/cache",
	} {
		folder, err := exec.Command("go", "env", variable).Output()
		if err != nil {
			t.Fatal(err)
		}
		volumes = append(volumes, "--volume", strings.TrimSpace(string(folder))+":"+at)
	}
	return volumes
}

func (c containers) files(t *testing.T, image string) string {
	t.Helper()
	root := c.must(t, "image", "mount", image)
	defer c.must(t, "image", "unmount", image)
	var list strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		owner := info.Sys().(*syscall.Stat_t)
		fmt.Fprintf(&list, "%v %d:%d %s\n", info.Mode(), owner.Uid, owner.Gid, strings.TrimPrefix(path, root))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list.String()
}

// TestTheDockerfile: it builds an image with the same files and the same way to run as that of make image.
func TestTheDockerfile(t *testing.T) {
	layout := imageLayout(t)
	podman := newContainers(t)
	image := podman.pull(t, layout)
	args := append([]string{"build", "--isolation", "chroot", "--quiet", "--build-arg", "BUILDER=localhost/builder",
		"--build-arg", "VERSION=" + os.Getenv("QUORATE_VERSION"), "--file", "../../deploy/Dockerfile", "--tag", "built"},
		podman.newBuilder(t)...)
	podman.must(t, append(args, "../..")...)
	if want, got := podman.files(t, image), podman.files(t, "localhost/built"); want != got {
		t.Errorf("the image of the Dockerfile has\n%swant\n%s", got, want)
	}
	const how = "{{.Config.User}} {{.Config.Entrypoint}} {{.Config.Cmd}} {{.Config.Env}} {{.Config.Volumes}} " +
		"{{.Config.ExposedPorts}} {{.Config.StopSignal}} {{.Config.WorkingDir}}"
	want := podman.must(t, "image", "inspect", "--format", how, image)
	if got := podman.must(t, "image", "inspect", "--format", how, "localhost/built"); got != want {
		t.Errorf("the image of the Dockerfile runs as\n%s\nwant\n%s", got, want)
	}
	said := podman.must(t, runCommand("--rm", "--network", "none", "localhost/built", "version")...)
	if !strings.Contains(said, os.Getenv("QUORATE_VERSION")) {
		t.Errorf("version: %s", said)
	}
}
