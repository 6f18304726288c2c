package clustertest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/servertest"
	"github.com/quorate/quorate/internal/verify"
)

// TestPageImage runs the commands of docs/with-kubernetes.md that build the image and push it, and reads from the
// registry what a kubelet would run. A registry at this machine stands for registry.example.
func TestPageImage(t *testing.T) {
	verify.Only(t)
	podman, err := exec.LookPath("podman")
	if err != nil {
		if os.Getenv("QUORATE_PODMAN") == "require" {
			t.Fatalf("%v: make deploy-tools installs it", err)
		}
		t.Skipf("%v: make verify-kubernetes installs it", err)
	}
	g := openGuide(t)
	g.patience = 20 * time.Minute // without cgo, the libraries of Kubernetes are compiled once more
	g.linkRepository(t)
	address := servertest.FreePorts(t, 1)[0]
	startProcess(t, "registry", registry, "-port", portOf(t, address))
	await(t, "the registry answers", func() bool { return readRegistry(address, "", &struct{}{}) == nil })
	g.usePodman(t, podman, address)
	g.run(t, g.script(t, "CGO_ENABLED=0 go build"))

	var manifest struct {
		Config struct{ Digest string }
		Layers []struct{ Digest string }
	}
	if err := readRegistry(address, "quorate-kubernetes/manifests/1", &manifest); err != nil {
		t.Fatal(err)
	}
	var image struct {
		Config struct {
			User       string
			Entrypoint []string
		}
	}
	if err := readRegistry(address, "quorate-kubernetes/blobs/"+manifest.Config.Digest, &image); err != nil {
		t.Fatal(err)
	}
	// runAsNonRoot of the Deployment needs a user that is a number.
	if c := image.Config; c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/quorate-kubernetes"}) ||
		len(manifest.Layers) != 1 {
		t.Errorf("the image runs %v as %q and has the layers %v", c.Entrypoint, c.User, manifest.Layers)
	}
	out := g.run(t, "podman image mount registry.example/quorate-kubernetes:1")
	said, err := exec.Command(filepath.Join(strings.TrimSpace(out), "quorate-kubernetes"), "--help").CombinedOutput()
	if err != nil || !strings.Contains(string(said), "-cluster") {
		t.Errorf("the program of the image: %v\n%s", err, said)
	}
}

// linkRepository adds what the adapter is built from. Its own folder is a copy already: the commands write into it.
func (g *guide) linkRepository(t *testing.T) {
	t.Helper()
	source, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(source)
	if err != nil {
		t.Fatal(err)
	}
	links := []string{"adapters/gate"}
	for _, entry := range entries {
		if name := entry.Name(); name != "adapters" && !strings.HasPrefix(name, ".") {
			links = append(links, name)
		}
	}
	for _, name := range links {
		if err := os.Symlink(filepath.Join(source, name), filepath.Join(g.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// usePodman makes the command podman one with a storage of its own. It reaches registry.example in plain text through a
// proxy at an address, which is the registry itself: podman pushes to the host that the name of an image has.
func (g *guide) usePodman(t *testing.T, podman, address string) {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "quorate-image-") // layers cannot lie on every file system of temporary files
	if err != nil {
		t.Fatal(err)
	}
	g.write(t, "registries.conf", "[[registry]]\nlocation = \"registry.example\"\ninsecure = true\n")
	g.set("CONTAINERS_REGISTRIES_CONF", filepath.Join(g.dir, "registries.conf"))
	script := fmt.Sprintf("#!/bin/sh\nunset NO_PROXY no_proxy HTTPS_PROXY https_proxy\nHTTP_PROXY=http://%s exec %s "+
		"--root %s/root --runroot %[3]s/run --tmpdir %[3]s/tmp --cgroup-manager cgroupfs --events-backend file \"$@\"\n",
		address, podman, dir)
	path := filepath.Join(g.dir, ".tools", "podman")
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil { //nolint:gosec // it is executed
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if out, said, err := g.try("podman rmi --all --force"); err != nil {
			t.Errorf("removing the images: %v\n%s%s", err, out, said)
		}
		_ = syscall.Unmount(filepath.Join(dir, "root", "overlay"), syscall.MNT_DETACH) // not mounted by other drivers
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("the storage of the images stays: %v", err)
		}
	})
}

func readRegistry(address, path string, to any) error {
	answer, err := http.Get("http://" + address + "/v2/" + path)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || path == "" {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", path, answer.Status, text)
	}
	return json.Unmarshal(text, to)
}
