// Package arch holds the house plan and checks packages against it.
//
// The plan is two maps and a list. Change it in the same commit as the decision record that explains why.
package arch

import (
	"fmt"
	"slices"
	"strings"
)

// module is the prefix of every package of ours.
const module = "github.com/quorate/quorate/"

// plan says which rooms a room may enter. A room is the first folder of an import path; a room that is not listed here
// is a violation, so nobody adds one in passing.
var plan = map[string]string{
	"quota":    "",
	"gen":      "",
	"web":      "",
	"fsm":      "quota gen",
	"cluster":  "fsm quota",
	"activity": "cluster quota",
	"pki":      "",
	"rpc":      "activity cluster quota gen pki",
	"client":   "gen",
	"manifest": "gen",
	"compat":   "gen",
	"server":   "rpc activity cluster fsm quota gen pki client manifest compat web examples",
	"chaos":    "client gen quota server",
	"examples": "",
	"cmd":      "server rpc activity cluster fsm quota gen pki client manifest compat web examples",
}

// workshop is the room of tests about the code itself. It ships nowhere, so it may look at everything, and nobody may
// enter it.
const workshop = "internal"

// owners confines a dependency to the rooms that own it.
var owners = map[string]string{
	"connectrpc.com/connect":              "rpc client compat gen cmd chaos",
	"connectrpc.com/otelconnect":          "rpc",
	"github.com/anishathalye/porcupine":   "chaos",
	"github.com/hanwen/go-fuse/v2":        "chaos",
	"github.com/hashicorp/memberlist":     "cluster",
	"github.com/hashicorp/raft":           "fsm cluster cmd",
	"github.com/hashicorp/raft-boltdb/v2": "cluster",
	"github.com/spf13/cobra":              "cmd",
	"go.etcd.io/bbolt":                    "cluster",
	"go.opentelemetry.io/otel":            "rpc server",
	"go.opentelemetry.io/otel/exporters":  "server",
	"go.opentelemetry.io/otel/sdk":        "server",
	"go.yaml.in/yaml/v3":                  "compat",
	"golang.org/x/sys":                    "cluster cmd chaos",
	"golang.org/x/time":                   "rpc",
	"google.golang.org/genproto":          "rpc client",
	"google.golang.org/protobuf":          "fsm rpc client manifest compat gen cmd chaos",
	"net/http":                            "rpc client compat web gen server cmd chaos",
}

// pure is everything that the domain may import: values and algorithms, nothing that waits, talks or looks at a clock.
// A name stands for the packages below it too.
var pure = strings.Fields("bytes cmp container/heap encoding/binary errors fmt hash iter maps math math/bits slices " +
	"sort strconv strings unicode")

// impure lists what would otherwise be let in by the name above it.
var impure = strings.Fields("hash/maphash math/rand math/rand/v2")

// Package is a package and what it imports outside its tests, as go list tells it.
type Package struct {
	ImportPath string
	Imports    []string
}

// Violations names every import that the plan forbids, and every room that it does not know, one sentence each.
func Violations(packages []Package) []string {
	var found []string
	for _, p := range packages {
		from, ours := room(p.ImportPath)
		if !ours || from == workshop {
			continue
		}
		if _, listed := plan[from]; !listed {
			found = append(found, fmt.Sprintf("%s: room %q is not in the plan", p.ImportPath, from))
			continue
		}
		for _, imported := range p.Imports {
			if why := forbidden(from, imported, ships(p.ImportPath)); why != "" {
				found = append(found, fmt.Sprintf("%s must not import %s: %s", p.ImportPath, imported, why))
			}
		}
	}
	return found
}

// ships is false for packages that only help tests; their names end in "test".
func ships(path string) bool { return !strings.HasSuffix(path, "test") }

// forbidden says why a room must not import a package, or nothing if it may.
func forbidden(from, imported string, ships bool) string {
	if to, ours := room(imported); ours {
		if to == from || listed(plan[from], to) {
			return ""
		}
		return fmt.Sprintf("%s may only enter [%s]", from, plan[from])
	}
	for dependency, rooms := range owners {
		if within(imported, dependency) && !listed(rooms, from) {
			return fmt.Sprintf("%s belongs to [%s]", dependency, rooms)
		}
	}
	if from == "quota" && ships && !isPure(imported) {
		return "the domain is pure"
	}
	return ""
}

// room is the first folder of a package of ours.
func room(path string) (string, bool) {
	rest, ours := strings.CutPrefix(path, module)
	name, _, _ := strings.Cut(rest, "/")
	return name, ours
}

func isPure(path string) bool {
	return slices.ContainsFunc(pure, func(name string) bool { return within(path, name) }) &&
		!slices.ContainsFunc(impure, func(name string) bool { return within(path, name) })
}

// within tells whether path is the package or one below it.
func within(path, name string) bool {
	return path == name || strings.HasPrefix(path, name+"/")
}

func listed(rooms, name string) bool {
	return slices.Contains(strings.Fields(rooms), name)
}
