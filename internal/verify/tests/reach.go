package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

const verifyPath = "github.com/quorate/quorate/internal/verify"

// declaration is a function, method, type, variable or constant at the top level of a test file. The names of methods
// begin with a dot. An exported method also has the name of its receiver's type: rapid, fmt and the testing package
// call methods that no source mentions.
type declaration struct {
	names    []string
	mentions map[string]bool
	direct   bool // mentions package verify
}

// folder has the declarations of the test files of a folder. Build tags and the difference between package x and
// x_test do not count, and names are compared without their scope and types: this finds too many tests rather than too
// few.
type folder struct {
	declarations []declaration
}

func parse(dir string) (folder, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return folder{}, err
	}
	var all folder
	for _, file := range files {
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return folder{}, err
		}
		imported, err := importedAs(syntax)
		if err != nil {
			return folder{}, fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
		for _, d := range syntax.Decls {
			all.add(d, imported)
		}
	}
	return all, nil
}

// importedAs is empty if the file does not import package verify.
func importedAs(file *ast.File) (string, error) {
	for _, i := range file.Imports {
		if imported, err := strconv.Unquote(i.Path.Value); err != nil || imported != verifyPath {
			continue
		}
		switch {
		case i.Name == nil:
			return path.Base(verifyPath), nil
		case i.Name.Name == ".":
			return "", fmt.Errorf("imports %s as a dot, so that its calls cannot be found; import it with a name", verifyPath)
		default:
			return i.Name.Name, nil
		}
	}
	return "", nil
}

// add adds a declaration. The names of one group are one declaration, because constants may take over an expression
// from the line above.
func (f *folder) add(d ast.Decl, imported string) {
	added := declaration{mentions: map[string]bool{}}
	switch d := d.(type) {
	case *ast.FuncDecl:
		added.names = functionNames(d)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			added.names = append(added.names, declaredBy(spec)...)
		}
	}
	addMentions(added.mentions, d)
	added.direct = imported != "" && added.mentions[imported]
	f.declarations = append(f.declarations, added)
}

// addMentions adds the identifiers below a node. Those behind a dot can be methods, or names of other packages, but no
// functions of this one.
func addMentions(to map[string]bool, node ast.Node) {
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			to["."+n.Sel.Name] = true
			addMentions(to, n.X)
			return false
		case *ast.Ident:
			to[n.Name] = true
		}
		return true
	})
}

func functionNames(d *ast.FuncDecl) []string {
	if d.Recv == nil {
		return []string{d.Name.Name}
	}
	method := "." + d.Name.Name
	if !d.Name.IsExported() {
		return []string{method}
	}
	return []string{method, receiver(d.Recv.List[0].Type)}
}

func receiver(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func declaredBy(spec ast.Spec) []string {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		return []string{spec.Name.Name}
	case *ast.ValueSpec:
		var names []string
		for _, name := range spec.Names {
			names = append(names, name.Name)
		}
		return names
	}
	return nil
}

// runs matches what go test -run selects.
var runs = regexp.MustCompile(`^(Test|Fuzz|Example)`)

// exhaustiveTests returns the tests that reach package verify, in order: all tests of the folder if code does that
// runs before every test.
func (f folder) exhaustiveTests() []string {
	reaching := f.reaching()
	always := reaching["TestMain"] || reaching["init"] || reaching["_"]
	var tests []string
	for _, d := range f.declarations {
		if name := d.names; len(name) == 1 && runs.MatchString(name[0]) && name[0] != "TestMain" &&
			(always || reaching[name[0]]) {
			tests = append(tests, name[0])
		}
	}
	slices.Sort(tests)
	return slices.Compact(tests)
}

// reaching returns the names of all declarations that mention package verify, or another that does.
func (f folder) reaching() map[string]bool {
	names := map[string]bool{}
	for before := -1; before != len(names); {
		before = len(names)
		for _, d := range f.declarations {
			if d.direct || d.mentionsAny(names) {
				for _, name := range d.names {
					names[name] = true
				}
			}
		}
	}
	return names
}

func (d declaration) mentionsAny(names map[string]bool) bool {
	for name := range d.mentions {
		if names[name] {
			return true
		}
	}
	return false
}
