package arch

import (
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// clientModules are the modules that a program links when it imports package client, with the most packages of each.
// Every module is one more that users of the client must accept, audit and keep up to date, so a new line needs a
// reason.
var clientModules = map[string]int{
	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go": 1, // the options in the messages, not the validator
	"connectrpc.com/connect":                                     2,
	"github.com/cenkalti/backoff/v5":                             1,
	"github.com/google/uuid":                                     1,
	"github.com/planetscale/vtprotobuf":                          2, // what generated encoders share
	// client and the messages with their service clients
	"github.com/quorate/quorate":                3,
	"google.golang.org/genproto/googleapis/rpc": 1, // details of errors
	"google.golang.org/protobuf":                36,
}

// TestClientLinksFewPackages bounds the dependencies of package client.
func TestClientLinksFewPackages(t *testing.T) {
	for _, problem := range excessLinks(linkedModules(t, module+"client"), clientModules) {
		t.Error(problem)
	}
}

// TestExcessLinksAreFound shows that the bound is enforced.
func TestExcessLinksAreFound(t *testing.T) {
	allowed := map[string]int{"a": 1, "b": 2}
	found := excessLinks(map[string]int{"a": 2, "b": 1, "c": 1}, allowed)
	want := []string{"module a: 2 packages are linked, 1 are allowed", "module c: 1 packages are linked, 0 are allowed"}
	if !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
	if linked := linkedModules(t, module+"internal/server"); len(excessLinks(linked, clientModules)) < 10 {
		t.Errorf("server links only %v", linked)
	}
}

func excessLinks(linked, allowed map[string]int) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(linked)) {
		if n, most := linked[name], allowed[name]; n > most {
			found = append(found, fmt.Sprintf("module %s: %d packages are linked, %d are allowed", name, n, most))
		}
	}
	return found
}

// linkedModules counts, by module, the packages outside of the standard library that a package and its dependencies
// consist of.
func linkedModules(t *testing.T, path string) map[string]int {
	t.Helper()
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", path).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	linked := map[string]int{}
	for name := range strings.FieldsSeq(string(out)) {
		linked[name]++
	}
	if len(linked) == 0 {
		t.Fatal("go list found no module")
	}
	return linked
}
