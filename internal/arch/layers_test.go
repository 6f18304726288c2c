package arch

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestLedgerIsLayered checks that declarations of quota/ledger use only their own layer and those below. The exceptions
// in layers_exceptions.txt may only become fewer: remove the lines of those that exist no longer.
func TestLedgerIsLayered(t *testing.T) {
	folder := filepath.Join(root, "quota/ledger")
	layers, err := parseLayering(readText(t, filepath.Join(folder, "layers.txt")))
	if err != nil {
		t.Fatal(err)
	}
	for file := range layers.ofFile {
		if _, err := os.Stat(filepath.Join(folder, file)); err != nil {
			t.Errorf("layers.txt: %v", err)
		}
	}
	files, parsed, info := checkLedger(t)
	found, err := layers.exceptions(files, declarationsOf(parsed, info))
	if err != nil {
		t.Fatal(err)
	}
	known := strings.Split(strings.TrimSpace(readText(t, filepath.Join(folder, "layers_exceptions.txt"))), "\n")
	if !slices.IsSorted(known) {
		t.Error("layers_exceptions.txt is not sorted")
	}
	for _, line := range found {
		if _, isKnown := slices.BinarySearch(known, line); !isKnown {
			t.Errorf("against the layers of quota/ledger/layers.txt: %s", line)
		}
	}
	for _, line := range known {
		if _, exists := slices.BinarySearch(found, line); !exists {
			t.Errorf("remove this line from quota/ledger/layers_exceptions.txt, it is mended: %s", line)
		}
	}
	t.Logf("%d exceptions from the layers of quota/ledger", len(found))
}

// TestPlantedUseOfAHigherLayer shows what an exception is: the use of a function, a method, a type or a field of a
// higher layer, and a method apart from its type.
func TestPlantedUseOfAHigherLayer(t *testing.T) {
	layers, err := parseLayering("# two layers\nlow: a\n  b\nhigh: c\n")
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	var parsed []*ast.File
	for _, source := range []struct{ name, text string }{
		{"a.go", "package p\n\ntype low struct{ up *high }\n\nfunc (l low) field() int { return l.up.n }\n"},
		{"b.go", "package p\n\nfunc calls(h interface{ m() }) { h.m(); generic(1); calls(h) }\n"},
		{"c.go", "package p\n\ntype high struct{ n int }\n\nfunc generic[T any](T) { calls(nil) }\n\n" +
			"func (low) method() { _ = low{} }\n"},
	} {
		file, err := parser.ParseFile(files, source.name, source.text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, file)
	}
	found, err := layers.exceptions(files, declarationsOf(parsed, typesOf(t, "p", files, parsed, nil)))
	want := []string{"calls uses generic", "low uses high", "low.field uses high", "method low.method"}
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("found %q and %v, want %q", found, err, want)
	}
	delete(layers.ofFile, "b.go")
	if _, err := layers.exceptions(files, declarationsOf(parsed, typesOf(t, "p", files, parsed, nil))); err == nil {
		t.Error("a file without a layer is accepted")
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// checkLedger type-checks quota/ledger against the compiled packages that it imports.
func checkLedger(t *testing.T) (*token.FileSet, []*ast.File, *types.Info) {
	t.Helper()
	ledger := listLedger(t, "./quota/ledger")[0]
	compiled := map[string]string{}
	for _, p := range listLedger(t, append([]string{"-export", "-deps"}, ledger.Imports...)...) {
		compiled[p.ImportPath] = p.Export
	}
	files := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range ledger.GoFiles {
		file, err := parser.ParseFile(files, filepath.Join(ledger.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, file)
	}
	imports := importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(compiled[path])
	})
	return files, parsed, typesOf(t, ledger.ImportPath, files, parsed, imports)
}

// ledgerPackage is what go list says of quota/ledger or of what it imports.
type ledgerPackage struct {
	ImportPath, Dir, Export string
	GoFiles, Imports        []string
}

func listLedger(t *testing.T, arguments ...string) []ledgerPackage {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go",
		append([]string{"list", "-json=ImportPath,Dir,Export,GoFiles,Imports"}, arguments...)...)
	command.Dir, command.Stderr = root, os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var listed []ledgerPackage
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var p ledgerPackage
		if err := decoder.Decode(&p); err != nil {
			t.Fatal(err)
		}
		listed = append(listed, p)
	}
	return listed
}

func typesOf(
	t *testing.T, path string, files *token.FileSet, parsed []*ast.File, imports types.Importer,
) *types.Info {
	t.Helper()
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: imports}
	if _, err := config.Check(path, files, parsed, info); err != nil {
		t.Fatal(err)
	}
	return info
}
