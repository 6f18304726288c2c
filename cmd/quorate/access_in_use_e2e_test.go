package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// treesInUse are the trees of a cluster that was not guarded yet.
const treesInUse = `trees:
  cern:
    policy: strict
    resources: {cores: {unit: count}}
    limits: {cores: 100}
    nodes:
      atlas: {limits: {cores: 60}}
  lab:
    resources: {cores: {unit: count}}
    limits: {cores: 100}
`

// TestAClusterInUseIsGuarded: status says what would be lost, and what it names makes the cluster ready to be guarded.
func TestAClusterInUseIsGuarded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(in("secret"), []byte(strings.Repeat("s", 43)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := singleServer(t, "--bootstrap-secret-file", in("secret"))
	startServer(t, f)
	root := " --token-file " + in("admin")
	zuul := " --token-file " + in("zuul")
	playSteps(t, f, []step{
		{"apply -f " + manifestFile(t, treesInUse), 0, "applied"},
		{"allocate --id zuul/1 --at cern:atlas --amount cores=1 --ttl 1h", 0, "granted"},
		{"allocate --id zuul/2 --at cern:atlas --amount cores=1", 0, "granted"},
		{"allocate --id lab/1 --at lab --amount cores=1", 0, "granted"},
		{"token create --secret-file " + in("secret") + " --out " + in("admin"), 0, ""},
		{"account create zuul" + root, 0, "zuul"},
		{"token create zuul --out " + in("zuul") + root, 0, ""},
		{"access set watching" + root, 0, "watching"},
		{"allocate --id later --at lab --amount cores=1" + zuul, 0, "granted"},
		{"access status" + root, 0, "3, which then only operators can renew and release"},
		{"access status" + root, 0, "hold 1"},
		{"access set guarded" + root, 0, "guarded"},
		{"release zuul/1" + zuul, 1, "no allocation"},
		{"release zuul/1 --namespace default" + zuul, 1, "no allocation"},
		{"release zuul/1 --namespace default" + root, 0, "released"},
	})
}
