package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// workspace makes one go command see the modules in which modules are packages.
const workspace = root + "/tools/make/go.work"

var modules = []string{"./...", "./client/...", "./chaos/...", "./tools/bench/..."}

// testedAsProcesses are packages that make race leaves out: tests start their programs. make race RACED=./... has them.
var testedAsProcesses = []string{"chaos/", "cmd/", "internal/servertest", "tools/bench/"}

// TestPackagesWithGoroutinesAreRaced: make race knows each package of the workspace that starts or guards goroutines.
func TestPackagesWithGoroutinesAreRaced(t *testing.T) {
	raced := make(map[string]bool)
	for _, folder := range listFolders(t, racedPatterns(t)...) {
		raced[folder] = true
	}
	for _, folder := range listFolders(t, modules...) {
		inModule, err := filepath.Rel(absolute(t, root), folder)
		if err != nil {
			t.Fatal(err)
		}
		if !raced[folder] && !startsWithAny(inModule, testedAsProcesses) && hasGoroutines(t, folder) {
			t.Errorf("%s starts or guards goroutines: add it to RACED in the Makefile", inModule)
		}
	}
}

func racedPatterns(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	definition := regexp.MustCompile(`(?m)^RACED \?=((?:.*\\\n)*.*)$`).FindSubmatch(text)
	if definition == nil {
		t.Fatal("the Makefile does not define RACED")
	}
	return strings.Fields(strings.ReplaceAll(string(definition[1]), "\\\n", " "))
}

// listFolders fails for a pattern that matches no package.
func listFolders(t *testing.T, patterns ...string) []string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", append([]string{"list", "-f", "{{.Dir}}"}, patterns...)...)
	command.Dir, command.Env = root, append(os.Environ(), "GOWORK="+absolute(t, workspace))
	out, err := command.CombinedOutput()
	if err != nil || strings.Contains(string(out), "matched no packages") {
		t.Fatalf("go list %v: %v\n%s", patterns, err, out)
	}
	return strings.Fields(string(out))
}

func absolute(t *testing.T, folder string) string {
	t.Helper()
	path, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func startsWithAny(s string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(s, prefix) })
}

// hasGoroutines sees go statements, calls of a method Go and mutexes, of the code and not of its tests.
func hasGoroutines(t *testing.T, folder string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.GoStmt:
				found = true
			case *ast.SelectorExpr:
				found = found || slices.Contains([]string{"Go", "Mutex", "RWMutex"}, node.Sel.Name)
			}
			return !found
		})
	}
	return found
}
