package arch

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestHousePlan holds every package of this module against the plan.
func TestHousePlan(t *testing.T) {
	for _, violation := range Violations(list(t, ".")) {
		t.Error(violation)
	}
}

// TestPlantedViolations shows that the plan is a rule: each of these imports must be found, or must be let through.
func TestPlantedViolations(t *testing.T) {
	tests := map[string]struct {
		from, imports string
		want          string // part of the only violation; empty if the import is allowed
	}{
		"the domain enters no room":           {"quota", module + "fsm", "quota may only enter []"},
		"the domain has no clock":             {"quota", "time", "the domain is pure"},
		"the domain has no context":           {"quota/policy", "context", "the domain is pure"},
		"the domain has no chance":            {"quota", "math/rand/v2", "the domain is pure"},
		"the domain takes no library":         {"quota", "google.golang.org/protobuf/proto", "belongs to"},
		"the domain may count":                {"quota", "math/bits", ""},
		"the domain may have rooms inside":    {"quota", module + "quota/policy", ""},
		"fsm is below cluster":                {"fsm", module + "cluster", "fsm may only enter [quota gen]"},
		"fsm does not gossip":                 {"fsm", "github.com/hashicorp/memberlist", "belongs to [cluster]"},
		"fsm knows the ledger":                {"fsm", module + "quota", ""},
		"fsm knows raft's types":              {"fsm", "github.com/hashicorp/raft", ""},
		"cluster is below rpc":                {"cluster", module + "rpc", "cluster may only enter"},
		"cluster speaks no connect":           {"cluster", "connectrpc.com/connect", "belongs to"},
		"activity is below rpc":               {"activity", module + "rpc", "activity may only enter"},
		"activity follows a node":             {"activity", module + "cluster", ""},
		"activity does not reach through":     {"activity", module + "fsm", "activity may only enter"},
		"cluster may have rooms inside":       {"cluster/clustertest", module + "cluster", ""},
		"rpc does not reach through to fsm":   {"rpc", module + "fsm", "rpc may only enter"},
		"rpc does not open the log store":     {"rpc", "github.com/hashicorp/raft-boltdb/v2", "belongs to [cluster]"},
		"rpc asks cluster":                    {"rpc", module + "cluster", ""},
		"the SDK speaks the public API only":  {"client", module + "quota", "client may only enter [gen]"},
		"manifests are text and messages":     {"manifest", module + "client", "manifest may only enter [gen]"},
		"manifests make messages":             {"manifest", module + "gen/quorate/v1", ""},
		"a front end speaks the public API":   {"compat/boskos", module + "cluster", "compat may only enter [gen]"},
		"chaos does not link the server":      {"chaos", module + "rpc", "chaos may only enter"},
		"chaos uses the ledger as its model":  {"chaos/check", module + "quota", ""},
		"chaos starts whole nodes":            {"chaos/simtest", module + "server", ""},
		"server assembles everything":         {"server", module + "cluster/host", ""},
		"server does not parse commands":      {"server", "github.com/spf13/cobra", "belongs to [cmd]"},
		"server is above rpc":                 {"rpc", module + "server", "rpc may only enter"},
		"cmd starts servers":                  {"cmd/quorate", module + "server", ""},
		"cmd wires everything":                {"cmd/quorate", module + "cluster", ""},
		"cmd does not break things":           {"cmd/quorate", module + "chaos", "cmd may only enter"},
		"nobody enters the workshop":          {"cmd/quorate", module + "internal/arch", "cmd may only enter"},
		"generated code enters no room":       {"gen/quorate/v1", module + "quota", "gen may only enter []"},
		"the dashboard's assets need nothing": {"web", module + "gen/quorate/v1", "web may only enter []"},
		"a room that nobody planned":          {"util", "strings", `room "util" is not in the plan`},
		"a drawer that nobody planned":        {"pkg/quota", module + "quota", `room "pkg" is not in the plan`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			found := Violations([]Package{{ImportPath: module + test.from, Imports: []string{test.imports}}})
			switch {
			case test.want == "" && len(found) > 0:
				t.Errorf("found %q, want nothing", found)
			case test.want != "" && (len(found) != 1 || !strings.Contains(found[0], test.want)):
				t.Errorf("found %q, want one that says %q", found, test.want)
			}
		})
	}
}

// TestPlantedModule shows that what go list tells is what the checker understands: a real module with one bad import.
func TestPlantedModule(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, "go.mod", "module "+strings.TrimSuffix(module, "/")+"\n\ngo 1.26\n")
	plant(t, dir, "quota/quota.go", "package quota\n\nimport \"time\"\n\nvar Now = time.Now\n")
	plant(t, dir, "rpc/rpc.go", "package rpc\n\nimport \"net/http\"\n\nvar Mux http.ServeMux\n")

	found := Violations(list(t, dir))
	want := []string{module + "quota must not import time: the domain is pure"}
	if !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
}

func plant(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// list asks go list for all packages of the module that dir belongs to.
func list(t *testing.T, dir string) []Package {
	t.Helper()
	command := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...")
	command.Dir = dir
	out, err := command.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		t.Fatalf("go list: %v\n%s", err, failed.Stderr)
	}
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []Package
	for decoder := json.NewDecoder(strings.NewReader(string(out))); decoder.More(); {
		var p Package
		if err := decoder.Decode(&p); err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	if len(packages) == 0 {
		t.Fatal("go list found no package")
	}
	return packages
}
