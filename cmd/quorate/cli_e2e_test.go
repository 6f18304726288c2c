package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/cmd/quorate/internal/cli"
)

// TestEveryCommand runs every command against a real server and checks the exit codes that scripts rely on.
func TestEveryCommand(t *testing.T) {
	t.Parallel()
	f := singleServer(t)
	server := startServer(t, f)
	folder := t.TempDir()
	for name, text := range map[string]string{
		"half.yaml":      "trees:\n  cern:\n    resources:\n      cores: {unit: cou",
		"negative.yaml":  "trees: {t: {resources: {cores: {unit: count}}, limits: {cores: -1}}}\n",
		"duplicate.yaml": "trees:\n  t:\n    resources: {cores: {unit: count}}\n    nodes:\n      a: {}\n      a: {}\n",
		"cycle.yaml":     "trees:\n  t: &t\n    resources: {cores: {unit: count}}\n    nodes:\n      a: *t\n",
		"typo.yaml":      "trees: {t: {resource: {cores: {unit: count}}}}\n",
		"deep.yaml": "trees:\n  t:\n    resources: {cores: {unit: count}}\n    nodes: " +
			strings.Repeat("{a: {nodes: ", 17) + "{}" + strings.Repeat("}}", 17) + "\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := func(name string) string { return filepath.Join(folder, name) }
	playSteps(t, f, []step{
		{"apply -f ../../examples/cern.yaml", 0, ""},
		{"apply -f ../../examples/cern.yaml --dry-run", 0, ""},
		{"apply -f " + file("half.yaml"), 2, "half.yaml:"},
		{"apply -f " + file("negative.yaml"), 2, "negative.yaml:"},
		{"apply -f " + file("duplicate.yaml"), 2, "duplicate.yaml:"},
		{"apply -f " + file("cycle.yaml"), 2, "cycle.yaml:"},
		{"apply -f " + file("typo.yaml"), 2, "typo.yaml:"},
		{"apply -f " + file("deep.yaml"), 2, "too deep"},
		{"apply -f " + file("nowhere.yaml"), 1, "nowhere.yaml"},
		{"allocate --id a --at cern:atlas/physics/simulation --amount cores=5", 0, "a"},
		{"allocate --id a --at cern:atlas/physics/simulation --amount cores=5", 0, "a"},
		{"allocate --id a --at cern:atlas/physics/simulation --amount cores=6", 5, "other content"},
		{"allocate --id b --at cern:atlas/physics/simulation --amount cores=6", 3, "cern:atlas/physics/simulation"},
		{"allocate --id b --at cern:atlas/physics/simulation --amount cores=6 --dry-run", 3, "missing"},
		{"allocate --id b --at cern:atlas/physics/simulation --amount cores=-6", 2, "-6"},
		{"allocate --id b --at cern:atlas/physics/simulation --amount cores=1.5", 2, "1.5"},
		{
			"allocate --id b --at cern:atlas/physics/simulation --amount cores=9223372036854775808", 2,
			"9223372036854775808",
		},
		{"allocate --id b --at cern:atlas/physics/simulation --amount cpus=1", 1, "cpus"},
		{"allocate --id b --at cern:atlas/chemistry --amount cores=1", 1, "chemistry"},
		{"allocate --id b --at bern --amount cores=1", 1, "bern"},
		{"usage cern", 0, "simulation"},
		{"usage cern:atlas/physics -o json", 0, `"subtree": "5"`},
		{"allocation list", 0, "a"},
		{"activity list cern:atlas/physics", 0, "as seen by n1"},
		{"activity list cern -o json", 0, `"granted": "1"`},
		{"activity list cern:atlas/higgs", 1, "nothing happen to cern:atlas/higgs"},
		{"status", 0, "n1"},
		{"release a", 0, "a"},
		{"release a", 0, "a"},
		{"allocate --id a --at cern:atlas/physics/simulation --amount cores=5", 5, "ended"},
		{"release nobody", 1, "nobody"},
		{"version", 0, "quorate"},
		{"frobnicate", 2, "frobnicate"},
		{"usage", 2, ""},
		{"status --server http://127.0.0.1:1 --timeout 1s", 6, "127.0.0.1:1"},
	})
	server.stopCleanly(t)
}

type step struct {
	args string
	code int
	says string
}

func playSteps(t *testing.T, f serverFlags, steps []step) {
	t.Helper()
	for _, c := range steps {
		args := strings.Fields(c.args)
		if !strings.Contains(c.args, "--server") {
			args = append(args, "--server", f.baseURL())
		}
		end := runCommand(t, args...)
		// A busy machine may delay a leader until the others elect another one, and some calls are not repeated by commands.
		for begun := time.Now(); end.code == cli.ExitUnavailable && c.code != end.code && time.Since(begun) < patience; {
			time.Sleep(100 * time.Millisecond)
			end = runCommand(t, args...)
		}
		if end.code != c.code || !strings.Contains(end.stdout+end.stderr, c.says) {
			t.Errorf("quorate %s: exit code %d, want %d saying %q\n%s%s", c.args, end.code, c.code, c.says,
				end.stdout, end.stderr)
		}
	}
}
