//go:build !race

package arch

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReleasedSystemsCompile checks the types of the binary and of all that it links on each system that has a release.
// Compiling all of them would take many minutes; make package does. The race detector would find nothing here and makes
// it several times slower: make lint runs it without.
func TestReleasedSystemsCompile(t *testing.T) {
	t.Parallel()
	for _, system := range []string{"darwin/arm64", "linux/arm64", "windows/amd64"} {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			goos, goarch, _ := strings.Cut(system, "/")
			c := checker{files: token.NewFileSet(), checked: map[string]*types.Package{"unsafe": types.Unsafe}, goarch: goarch}
			for _, p := range listPackages(t, goos, goarch) {
				if err := c.check(p); err != nil {
					t.Fatalf("%s on %s: %v", p.ImportPath, system, err)
				}
			}
			if len(c.checked) < 100 {
				t.Errorf("only %d packages were checked", len(c.checked))
			}
		})
	}
}

type listedPackage struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string // of vendored packages
	Module          *struct{ Main bool }
}

// listPackages lists each package after those that it imports.
func listPackages(t *testing.T, goos, goarch string) []listedPackage {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module",
		"./cmd/quorate")
	command.Dir, command.Stderr = root, os.Stderr
	command.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []listedPackage
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listedPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// checker checks the types of packages in the order of their imports.
type checker struct {
	files   *token.FileSet
	checked map[string]*types.Package
	goarch  string
}

// check reads only the declarations of packages that are not ours.
func (c checker) check(p listedPackage) error {
	if p.ImportPath == "unsafe" {
		return nil
	}
	ours := p.Module != nil && p.Module.Main
	var parsed []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(c.files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		parsed = append(parsed, file)
	}
	config := types.Config{
		Importer: importedFrom{c, p}, IgnoreFuncBodies: !ours, Sizes: types.SizesFor(build.Default.Compiler, c.goarch),
	}
	checked, err := config.Check(p.ImportPath, c.files, parsed, nil)
	c.checked[p.ImportPath] = checked
	return err
}

type importedFrom struct {
	checker
	from listedPackage
}

func (i importedFrom) Import(path string) (*types.Package, error) {
	if vendored, isVendored := i.from.ImportMap[path]; isVendored {
		path = vendored
	}
	if p := i.checked[path]; p != nil {
		return p, nil
	}
	return nil, errors.New("no package " + path + " was listed")
}
