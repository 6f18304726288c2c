// Package arch checks the import rules of this module, and that its documentation is consistent with its files.
//
// The import rules stand here and nowhere else: which package may import which, which package owns which dependency,
// and what some packages must not import. Change them in the same commit as the decision record that explains why.
package arch

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// module is the import path prefix of the packages of this module.
const module = "github.com/quorate/quorate/"

// mayImport lists the packages of this module that a package may import. A name stands for all packages below it that
// have no rule of their own. A package without a rule is a violation, so a new one is a decision.
var mayImport = map[string]string{
	"internal/spelling": "",
	"internal/yamldoc":  "",

	"internal/access":     "",
	"internal/audit":      "",
	"internal/audit/sink": "internal/audit",
	"quota":               "internal/access",
	"quota/internal":      "",
	"quota/policy":        "quota",
	// The ledger and its layers, the lowest first.
	"quota/ledger":                    ledgerLayers("state", "admit", "configure", "permit", "image", "read", "explain"),
	"quota/ledger/internal/state":     ledgerLayers(),
	"quota/ledger/internal/admit":     ledgerLayers("state"),
	"quota/ledger/internal/configure": ledgerLayers("state", "admit"),
	"quota/ledger/internal/permit":    ledgerLayers("state", "admit", "configure"),
	"quota/ledger/internal/image":     ledgerLayers("state", "admit", "configure", "permit"),
	"quota/ledger/internal/read": ledgerLayers("state", "admit", "configure", "permit", "image") +
		" internal/spelling",
	"quota/ledger/internal/explain": ledgerLayers("state", "admit", "configure", "permit", "image", "read"),
	"quota/quotatest":               "internal/access internal/verify quota quota/policy quota/ledger",

	// The public API, in the module of the client, and what only servers speak and write.
	"client/gen": "",
	"gen":        "client/gen",

	"fsm":     "internal/access internal/audit quota quota/ledger gen",
	"cluster": "internal/access internal/audit fsm quota quota/ledger cluster/recurrence",
	// Rules of a calendar for those who propose commands: the ledger knows instants only.
	"cluster/recurrence": "quota",
	// Messages of a hostile peer, for tests here and for chaos.
	"cluster/gossip/forge": "",
	"internal/activity":    "cluster quota quota/ledger",
	"internal/webhook":     "cluster quota quota/ledger",
	// Files, which speak to the server as any other caller does.
	"web":            "",
	"web/plain":      "client/gen client/quantity internal/manifest web",
	"internal/pki":   "",
	"internal/authn": "internal/pki",
	// manifest: ParseManifest and GetConfiguration speak of manifests, for callers without a library of ours.
	"rpc": "internal/access internal/activity internal/audit internal/authn internal/manifest internal/pki " +
		"cluster cluster/recurrence quota quota/ledger client/gen gen",
	"client":          "client/gen",
	"client/quantity": "client/gen",
	// Clients of other languages; in Go only tests.
	"sdk": "",
	// What operators load into other programs; in Go only its tests.
	"deploy":            "",
	"internal/manifest": "internal/access quota quota/policy client/gen client/quantity internal/yamldoc",
	"compat":            "client/gen internal/yamldoc",
	// The calls of a library, on our client.
	"compat/quotamanager/quota": "client client/gen compat",
	// The loop that all adapters share; an adapter itself is a module of its own.
	"adapters/gate": "client client/gen",
	"internal/server": "internal/access internal/activity internal/audit internal/audit/sink internal/authn " +
		"internal/manifest internal/pki internal/webhook internal/yamldoc rpc cluster fsm quota quota/ledger " +
		"client client/gen compat examples web web/plain",
	"chaos":    "internal/audit cluster/gossip/forge client client/gen gen quota quota/ledger internal/server",
	"examples": "",
	"cmd": "internal/access internal/activity internal/audit internal/authn internal/manifest internal/pki " +
		"internal/server internal/spelling internal/yamldoc rpc cluster fsm quota quota/ledger client client/gen " +
		"client/quantity compat examples internal/load",

	// Writes the licences of what the binary contains.
	"internal/licences": "",

	// What the product is compared with and measured by.
	"tools/bench/compare": "internal/load client client/gen internal/testbinary",
	"tools/bench/floor":   "client/gen",
	"internal/load":       "",
}

// ledgerLayers is what the ledger or one of its layers may import: the vocabulary, and these layers.
func ledgerLayers(names ...string) string {
	list := []string{"internal/access quota quota/policy quota/internal"}
	for _, name := range names {
		list = append(list, "quota/ledger/internal/"+name)
	}
	return strings.Join(list, " ")
}

// onlyInTests are packages that test the code itself or help tests. They may import everything, and nothing that ships
// may import them.
var onlyInTests = strings.Fields("internal/arch internal/servertest internal/testbinary internal/verify")

// owners confines a dependency to the packages that own it.
var owners = map[string]string{
	"connectrpc.com/connect": "rpc client compat compat/quotamanager/quota client/gen gen cmd chaos tools/bench/floor " +
		"tools/bench/compare web/plain",
	"connectrpc.com/otelconnect":          "rpc",
	"github.com/HdrHistogram":             "internal/load",
	"github.com/anishathalye/porcupine":   "chaos",
	"github.com/coreos/go-oidc/v3":        "internal/authn",
	"github.com/coreos/go-systemd/v22":    "internal/server",
	"github.com/go-jose/go-jose/v4":       "internal/authn",
	"github.com/hanwen/go-fuse/v2":        "chaos",
	"github.com/hashicorp/memberlist":     "cluster",
	"github.com/hashicorp/raft":           "fsm cluster cmd tools/bench/floor",
	"github.com/hashicorp/raft-boltdb/v2": "cluster tools/bench/floor",
	"github.com/hashicorp/raft-wal":       "cluster tools/bench/floor",
	"github.com/lib/pq":                   "tools/bench/compare",
	"github.com/spf13/cobra":              "cmd",
	"go.etcd.io/bbolt":                    "cluster tools/bench/floor",
	"go.opentelemetry.io/otel":            "rpc internal/server",
	"go.opentelemetry.io/otel/exporters":  "internal/server",
	"go.opentelemetry.io/otel/sdk":        "internal/server",
	"go.yaml.in/yaml/v3":                  "internal/yamldoc internal/manifest compat",
	"golang.org/x/sys":                    "cluster cmd chaos",
	"golang.org/x/time":                   "rpc internal/authn",
	"google.golang.org/genproto":          "rpc client",
	"google.golang.org/protobuf": "fsm rpc client client/gen internal/manifest compat compat/quotamanager/quota gen cmd " +
		"chaos tools/bench/compare web/plain",
	"net/http": "rpc client client/gen compat gen internal/authn internal/server internal/webhook web web/plain cmd " +
		"chaos tools/bench/floor tools/bench/compare",
}

// forbidden are imports that are wrong in a package although no other package owns them. A name stands for the packages
// below it too.
var forbidden = map[string]struct{ imports, reason string }{
	"fsm":               {"net math/rand math/rand/v2 crypto/rand", "applying an entry is deterministic and does no I/O"},
	"client":            {"github.com/hashicorp", "clients stay free of the server's dependencies"},
	"internal/manifest": {"github.com/hashicorp", "clients stay free of the server's dependencies"},
	"compat":            {"github.com/hashicorp", "clients stay free of the server's dependencies"},
}

// pure is everything that the domain may import: values and algorithms, nothing that waits, does I/O or reads a clock.
// A name stands for the packages below it too.
var pure = strings.Fields("bytes cmp container/heap encoding/binary errors fmt hash iter maps math math/bits slices " +
	"sort strconv strings unicode")

// impure lists exceptions from pure.
var impure = strings.Fields("hash/maphash math/rand math/rand/v2")

// Package is a package and what it imports outside its tests, as go list reports it.
type Package struct {
	ImportPath string
	Imports    []string
}

// Violations names every import that the rules forbid, and every package that they do not list, one sentence each.
func Violations(packages []Package) []string {
	var found []string
	for _, p := range packages {
		from, ours := ruleName(p.ImportPath)
		if !ours || slices.Contains(onlyInTests, from) {
			continue
		}
		if _, listed := mayImport[from]; !listed {
			found = append(found, fmt.Sprintf("%s: package %q has no import rule", p.ImportPath, from))
			continue
		}
		for _, imported := range p.Imports {
			if reason := whyForbidden(from, imported, ships(p.ImportPath)); reason != "" {
				found = append(found, fmt.Sprintf("%s must not import %s: %s", p.ImportPath, imported, reason))
			}
		}
	}
	return found
}

// ships is false for packages that only help tests; their names end in "test".
func ships(path string) bool { return !strings.HasSuffix(path, "test") }

// whyForbidden is empty if the import is allowed.
func whyForbidden(from, imported string, ships bool) string {
	if to, ours := ruleName(imported); ours {
		if to == from || listed(mayImport[from], to) {
			return ""
		}
		return fmt.Sprintf("%s may only import [%s]", from, mayImport[from])
	}
	for dependency, packages := range owners {
		if within(imported, dependency) && !listed(packages, from) {
			return fmt.Sprintf("%s belongs to [%s]", dependency, packages)
		}
	}
	rule := forbidden[from]
	if slices.ContainsFunc(strings.Fields(rule.imports), func(name string) bool { return within(imported, name) }) {
		return rule.reason
	}
	if (within(from, "quota") || within(from, "internal/access")) && ships && !isPure(imported) {
		return "the domain is pure"
	}
	return ""
}

// ruleName returns the name of a package in the rules, and whether it belongs to this module.
func ruleName(importPath string) (string, bool) {
	rest, ours := strings.CutPrefix(importPath, module)
	for name := rest; name != "."; name = path.Dir(name) {
		if _, listed := mayImport[name]; listed {
			return name, ours
		}
	}
	parts := strings.SplitN(rest, "/", 3)
	if parts[0] == "internal" && len(parts) > 1 {
		return parts[0] + "/" + parts[1], ours
	}
	return parts[0], ours
}

func isPure(path string) bool {
	return slices.ContainsFunc(pure, func(name string) bool { return within(path, name) }) &&
		!slices.ContainsFunc(impure, func(name string) bool { return within(path, name) })
}

func within(path, name string) bool {
	return path == name || strings.HasPrefix(path, name+"/")
}

func listed(packages, name string) bool {
	return slices.Contains(strings.Fields(packages), name)
}
