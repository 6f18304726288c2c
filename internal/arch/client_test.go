package arch

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// clientModule is the module of the Go client and the generated code of the public API.
const clientModule = module + "client"

// clientModules are the modules that a program links when it imports package client, with the most packages of each.
// Every module is one more that users of the client must accept, audit and keep up to date, so a new line needs a
// reason.
var clientModules = map[string]int{
	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go": 1, // the options in the messages, not the validator
	"connectrpc.com/connect":                                     2,
	"github.com/cenkalti/backoff/v5":                             1,
	"github.com/google/uuid":                                     1,
	"github.com/planetscale/vtprotobuf":                          2, // what generated encoders share
	clientModule:                                                 7, // client, and three packages of messages and services
	"google.golang.org/genproto/googleapis/rpc":                  1, // details of errors
	"google.golang.org/protobuf":                                 36,
}

// TestClientLinksFewPackages bounds the dependencies of package client.
func TestClientLinksFewPackages(t *testing.T) {
	for _, problem := range excessLinks(linkedModules(t, clientModule), clientModules) {
		t.Error(problem)
	}
}

// TestProgramsWithTheClientRequireNothingOfTheServer builds a program of another module that imports the client. What
// its go.mod requires, what its go.sum verifies and what its module graph has is all that its author must look after.
func TestProgramsWithTheClientRequireNothingOfTheServer(t *testing.T) {
	dir := t.TempDir()
	plant(t, dir, "main.go", strangersProgram)
	plant(t, dir, "go.mod", "module example.org/scheduler\n\ngo 1.26\n\n"+
		"replace "+clientModule+" => "+absolute(t, root+"/client")+"\n\nrequire "+clientModule+" v0.0.0\n")
	plant(t, dir, "go.sum", readFile(t, root+"/client/go.sum"))
	goCommand(t, dir, "build", "-mod=mod", "-o", os.DevNull, ".")

	for required := range strings.FieldsSeq(goCommand(t, dir, "list", "-m", "-f", "{{.Path}}", "all")) {
		if serverOnly(required) {
			t.Errorf("the module graph of a program that uses the client has %s", required)
		}
	}
	for line := range strings.Lines(readFile(t, dir+"/go.sum")) {
		if name, _, _ := strings.Cut(line, " "); serverOnly(name) {
			t.Errorf("go.sum of a program that uses the client has %s", line)
		}
	}
	for name := range linkedModules(t, dir) {
		if _, listed := clientModules[name]; !listed && name != "example.org/scheduler" {
			t.Errorf("a program that uses the client links %s", name)
		}
	}
}

// TestServersModulesAreRecognized shows that the test above would see them: the module graph of the server has some.
func TestServersModulesAreRecognized(t *testing.T) {
	all := strings.Fields(goCommand(t, root, "list", "-m", "-f", "{{.Path}}", "all"))
	if !slices.ContainsFunc(all, serverOnly) {
		t.Errorf("serverOnly knows none of %v", all)
	}
}

const strangersProgram = `package main

import (
	"context"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

func main() {
	c, err := client.New([]string{"http://127.0.0.1:7101"})
	if err != nil {
		panic(err)
	}
	lease, err := c.Acquire(context.Background(), &quoratev1.AllocateRequest{})
	if err != nil {
		panic(err)
	}
	defer lease.Release(context.Background())
}
`

// serverOnly is about a module that a server needs: that of the server itself, and what it replicates, stores and
// parses flags with.
func serverOnly(name string) bool {
	return name+"/" == module || slices.ContainsFunc([]string{
		"github.com/hashicorp", "go.etcd.io", "github.com/spf13", "github.com/prometheus", "github.com/armon",
		"charm.land", "go.opentelemetry.io", "cel.dev",
	}, func(prefix string) bool { return within(name, prefix) })
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

// linkedModules counts, by module, the packages outside of the standard library that a package or the program in a
// folder and its dependencies consist of.
func linkedModules(t *testing.T, program string) map[string]int {
	t.Helper()
	dir, pattern := root, program
	if filepath.IsAbs(program) {
		dir, pattern = program, "."
	}
	linked := map[string]int{}
	for name := range strings.FieldsSeq(
		goCommand(t, dir, "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", pattern),
	) {
		linked[name]++
	}
	if len(linked) == 0 {
		t.Fatal("go list found no module")
	}
	return linked
}

func goCommand(t *testing.T, dir string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir, command.Env = dir, append(os.Environ(), "GOWORK=off")
	var failed strings.Builder
	command.Stderr = &failed
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go %s in %s: %v\n%s", strings.Join(args, " "), dir, err, failed.String())
	}
	return string(out)
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
