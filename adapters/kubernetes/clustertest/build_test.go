// Package clustertest runs the adapter against real API servers, schedulers and servers of Quorate.
package clustertest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/servertest"
	"github.com/quorate/quorate/internal/verify"
)

const (
	root = "../../.."
	// patience is how long anything may take on a busy machine.
	patience = 2 * time.Minute
)

// adapter is the program under test.
var adapter = &servertest.Program{Folder: "..", Package: "./cmd/quorate-kubernetes"}

// The binaries that it is tested with.
var etcd, apiserver, scheduler, kubectl, registry string

func TestMain(m *testing.M) {
	if verify.Enabled() { // otherwise the tests say why they skip
		if err := buildKubernetes(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(servertest.Main(m))
}

func buildKubernetes() error {
	cached, err := kubernetesFolder()
	if err != nil {
		return err
	}
	etcd, apiserver = filepath.Join(cached, "etcd"), filepath.Join(cached, "kube-apiserver")
	scheduler, kubectl = filepath.Join(cached, "kube-scheduler"), filepath.Join(cached, "kubectl")
	registry = filepath.Join(cached, "registry")
	const servers = "../apiservers"
	for _, build := range []struct{ in, from, to string }{
		{servers, "go.etcd.io/etcd/server/v3", etcd},
		{servers, "k8s.io/kubernetes/cmd/kube-apiserver", apiserver},
		{servers, "k8s.io/kubernetes/cmd/kube-scheduler", scheduler},
		{servers, "k8s.io/kubernetes/cmd/kubectl", kubectl},
		{root + "/tools/image", "github.com/google/go-containerregistry/cmd/registry", registry},
	} {
		if _, err := os.Stat(build.to); err == nil {
			continue
		}
		fmt.Fprintln(os.Stderr, "building", build.from)
		command := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", build.to, build.from)
		command.Dir = build.in
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w\n%s", build.from, err, out)
		}
	}
	return nil
}

// kubernetesFolder keeps the servers of Kubernetes: building them takes many minutes. Its name depends on their
// versions.
func kubernetesFolder() (string, error) {
	caches, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("looking for a cache: %w", err)
	}
	sums, err := os.ReadFile("../apiservers/go.sum")
	if err != nil {
		return "", fmt.Errorf("reading the versions: %w", err)
	}
	digest := sha256.Sum256(sums)
	folder := filepath.Join(caches, "quorate-adapters", "kubernetes-"+hex.EncodeToString(digest[:8]))
	return folder, os.MkdirAll(folder, 0o755)
}
