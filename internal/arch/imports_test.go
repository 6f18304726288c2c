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

// TestImportRules checks every package of the product and of the modules in its workspace.
func TestImportRules(t *testing.T) {
	for _, violation := range Violations(list(t, root, absolute(t, workspace), modules...)) {
		t.Error(violation)
	}
}

// TestPlantedViolations shows that the rules are enforced: each of these imports must be found, or must be allowed.
func TestPlantedViolations(t *testing.T) {
	tests := map[string]struct {
		from, imports string
		want          string // part of the only violation; empty if the import is allowed
	}{
		"the domain imports nothing of ours": {"quota", module + "fsm", "quota may only import [internal/access]"},
		"the domain has no clock":            {"quota", "time", "the domain is pure"},
		"the domain has no context":          {"quota/policy", "context", "the domain is pure"},
		"the domain has no randomness":       {"quota", "math/rand/v2", "the domain is pure"},
		"the domain takes no library":        {"quota", "google.golang.org/protobuf/proto", "belongs to"},
		"the domain may calculate":           {"quota", "math/bits", ""},
		"the ledger uses the vocabulary":     {"quota/ledger", module + "quota", ""},
		"the ledger uses its containers":     {"quota/ledger", module + "quota/internal/ordmap", ""},
		"the vocabulary stands alone":        {"quota", module + "quota/policy", "quota may only import [internal/access]"},
		"policies do not know the ledger": {
			"quota/policy", module + "quota/ledger",
			"quota/policy may only import [quota]",
		},
		"access imports nothing of ours":   {"internal/access", module + "quota", "internal/access may only import []"},
		"access has no clock":              {"internal/access", "time", "the domain is pure"},
		"access has no cryptography":       {"internal/access/internal/persist", "crypto/sha256", "the domain is pure"},
		"access has containers of its own": {"internal/access", module + "internal/access/internal/persist", ""},
		"access may calculate":             {"internal/access", "math/bits", ""},
		"the ledger has no clock":          {"quota/ledger", "time", "the domain is pure"},
		"fsm is below cluster": {
			"fsm", module + "cluster",
			"fsm may only import [internal/access internal/audit quota quota/ledger gen]",
		},
		"fsm does not gossip": {"fsm", "github.com/hashicorp/memberlist", "belongs to [cluster]"},
		"fsm is deterministic": {
			"fsm/backup", "math/rand/v2",
			"applying an entry is deterministic",
		},
		"fsm does no I/O":                  {"fsm", "net", "applying an entry is deterministic"},
		"fsm knows the ledger":             {"fsm", module + "quota", ""},
		"fsm knows raft's types":           {"fsm", "github.com/hashicorp/raft", ""},
		"cluster is below rpc":             {"cluster", module + "rpc", "cluster may only import"},
		"cluster does not use connect":     {"cluster", "connectrpc.com/connect", "belongs to"},
		"activity is below rpc":            {"internal/activity", module + "rpc", "internal/activity may only import"},
		"activity follows a node":          {"internal/activity", module + "cluster", ""},
		"activity does not bypass cluster": {"internal/activity", module + "fsm", "internal/activity may only import"},
		"cluster has packages inside":      {"cluster/clustertest", module + "cluster", ""},
		"rpc does not bypass cluster":      {"rpc", module + "fsm", "rpc may only import"},
		"rpc does not open the log store": {
			"rpc", "github.com/hashicorp/raft-boltdb/v2",
			"belongs to [cluster tools/bench/floor]",
		},
		"rpc calls cluster":                  {"rpc", module + "cluster", ""},
		"the SDK uses the public API only":   {"client", module + "quota", "client may only import [client/gen]"},
		"the SDK has no server dependencies": {"client", "github.com/hashicorp/go-hclog", "clients stay free"},
		"manifests are text and messages":    {"internal/manifest", module + "client", "internal/manifest may only import"},
		"manifests are read by yamldoc":      {"internal/manifest", module + "internal/yamldoc", ""},
		"yamldoc imports nothing of ours": {
			"internal/yamldoc", module + "client/gen/quorate/v1",
			"internal/yamldoc may only import []",
		},
		"authentication knows no rights":     {"internal/authn", module + "quota", "may only import [internal/pki]"},
		"authentication is below rpc":        {"internal/authn", module + "rpc", "may only import [internal/pki]"},
		"authentication reads certificates":  {"internal/authn", module + "internal/pki", ""},
		"one package verifies tokens":        {"rpc", "github.com/coreos/go-oidc/v3/oidc", "belongs to [internal/authn]"},
		"one package has keys of tokens":     {"cmd/quorate", "github.com/go-jose/go-jose/v4", "to [internal/authn]"},
		"manifests make messages":            {"internal/manifest", module + "client/gen/quorate/v1", ""},
		"a front end uses the public API":    {"compat/boskos", module + "cluster", "compat may only import"},
		"chaos does not link rpc":            {"chaos", module + "rpc", "chaos may only import"},
		"chaos uses the ledger as its model": {"chaos/check", module + "quota", ""},
		"chaos starts whole nodes":           {"chaos/simtest", module + "internal/server", ""},
		"server assembles everything":        {"internal/server", module + "cluster/host", ""},
		"server does not parse commands":     {"internal/server", "github.com/spf13/cobra", "belongs to [cmd]"},
		"server is above rpc":                {"rpc", module + "internal/server", "rpc may only import"},
		"cmd starts servers":                 {"cmd/quorate", module + "internal/server", ""},
		"cmd uses everything":                {"cmd/quorate", module + "cluster", ""},
		"cmd does not break things":          {"cmd/quorate", module + "chaos", "cmd may only import"},
		"test helpers do not ship":           {"cmd/quorate", module + "internal/arch", "cmd may only import"},
		"generated code imports nothing of ours": {
			"client/gen/quorate/v1", module + "quota",
			"client/gen may only import []",
		},
		"a new package needs a rule": {"util", "strings", `package "util" has no import rule`},
		"the product does not use the prototype it is compared with": {
			"cmd/quorate", module + "tools/bench/floor",
			"cmd may only import",
		},
		"the product does not use the comparison": {
			"cmd/quorate", module + "tools/bench/compare/systems",
			"cmd may only import",
		},
		"the comparison uses the public API": {
			"tools/bench/compare/systems", module + "internal/server",
			"tools/bench/compare may only import",
		},
		"the prototype has its own ledger": {
			"tools/bench/floor", module + "quota/ledger",
			"tools/bench/floor may only import [client/gen]",
		},
		"a new package below pkg needs a rule": {
			"pkg/quota", module + "quota",
			`package "pkg" has no import rule`,
		},
		"a new package below internal needs a rule": {"internal/util", "strings", `"internal/util" has no import rule`},
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

// TestPlantedModule shows that the checker understands the output of go list: a real module with one bad import.
func TestPlantedModule(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, "go.mod", "module "+strings.TrimSuffix(module, "/")+"\n\ngo 1.26\n")
	plant(t, dir, "quota/quota.go", "package quota\n\nimport \"time\"\n\nvar Now = time.Now\n")
	plant(t, dir, "rpc/rpc.go", "package rpc\n\nimport \"net/http\"\n\nvar Mux http.ServeMux\n")

	found := Violations(list(t, dir, "off", "./..."))
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

func list(t *testing.T, dir, workspace string, patterns ...string) []Package {
	t.Helper()
	command := exec.Command("go", append([]string{"list", "-json=ImportPath,Imports"}, patterns...)...)
	command.Dir, command.Env = dir, append(os.Environ(), "GOWORK="+workspace)
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
