package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// layering is the order of the layers of one package, and the layer of each of its files.
type layering struct {
	// names are the layers, the lowest first.
	names []string
	// ofFile is the index of the layer of each file.
	ofFile map[string]int
}

// parseLayering reads a text with a line for each layer, the lowest first: its name, a colon, and its files without
// ".go". Lines that begin with white space continue the line before, and those that begin with # are comments.
func parseLayering(text string) (layering, error) {
	l := layering{ofFile: map[string]int{}}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		files := line
		if !strings.ContainsAny(line[:1], " \t") {
			name, rest, found := strings.Cut(line, ":")
			if !found {
				return l, fmt.Errorf("no layer stands in front of the files in %q", line)
			}
			l.names, files = append(l.names, name), rest
		}
		for name := range strings.FieldsSeq(files) {
			if _, twice := l.ofFile[name+".go"]; twice || len(l.names) == 0 {
				return l, fmt.Errorf("file %s needs exactly one layer", name)
			}
			l.ofFile[name+".go"] = len(l.names) - 1
		}
	}
	return l, nil
}

// A declaration of a package at its top level, or a method.
type declaration struct {
	object types.Object
	// uses are the declarations of the package that this one uses, in any number. The use of a field, or of a method of
	// an interface, is one of the type that it belongs to.
	uses []types.Object
	// owner is the type of a method, and nil for all else.
	owner types.Object
}

// name is that of the declaration with the type of a method: "View.Trees".
func (d declaration) name() string { return nameOf(d.object) }

func nameOf(object types.Object) string {
	if owner := receiverOf(object); owner != nil {
		return owner.Name() + "." + object.Name()
	}
	return object.Name()
}

// receiverOf is the type that a method belongs to; nil for all else.
func receiverOf(object types.Object) types.Object {
	function, isFunction := object.(*types.Func)
	if !isFunction || function.Signature().Recv() == nil {
		return nil
	}
	receiver := function.Signature().Recv().Type()
	if pointer, isPointer := receiver.(*types.Pointer); isPointer {
		receiver = pointer.Elem()
	}
	if named, isNamed := receiver.(*types.Named); isNamed {
		return named.Obj()
	}
	return nil
}

// declarationsOf reads the declarations of a package that was type-checked.
func declarationsOf(parsed []*ast.File, info *types.Info) []declaration {
	type part struct {
		object types.Object
		node   ast.Node
	}
	var parts []part
	canonical := map[types.Object]types.Object{} // what a use of an object is a use of
	add := func(name *ast.Ident, node ast.Node) {
		if object := info.Defs[name]; object != nil && name.Name != "_" {
			parts = append(parts, part{object, node})
			canonical[object] = object
		}
	}
	var specs []ast.Spec
	for _, file := range parsed {
		for _, node := range file.Decls {
			switch node := node.(type) {
			case *ast.FuncDecl:
				add(node.Name, node)
			case *ast.GenDecl:
				specs = append(specs, node.Specs...)
			}
		}
	}
	for _, spec := range specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			add(spec.Name, spec)
			for name := range identifiers(spec.Type) {
				if member := info.Defs[name]; member != nil {
					canonical[member] = info.Defs[spec.Name]
				}
			}
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				add(name, spec)
			}
		}
	}
	list := make([]declaration, len(parts))
	for i, p := range parts {
		list[i] = declaration{object: p.object, owner: receiverOf(p.object)}
		for name := range identifiers(p.node) {
			if used := canonical[origin(info.Uses[name])]; used != nil && used != p.object {
				list[i].uses = append(list[i].uses, used)
			}
		}
	}
	return list
}

// origin is the generic declaration of an object that was instantiated.
func origin(object types.Object) types.Object {
	switch object := object.(type) {
	case *types.Func:
		return object.Origin()
	case *types.Var:
		return object.Origin()
	}
	return object
}

// identifiers are all names in a part of a file.
func identifiers(node ast.Node) iter.Seq[*ast.Ident] {
	return func(yield func(*ast.Ident) bool) {
		ast.Preorder(node)(func(n ast.Node) bool {
			name, isName := n.(*ast.Ident)
			return !isName || yield(name)
		})
	}
}

// exceptions lists, sorted, what stands in the way of making each layer a package of its own:
//
//	a uses b       declaration b is in a higher layer than its user a
//	method T.m     the method is in another layer than its type
//
// It fails for a file without a layer.
func (l layering) exceptions(files *token.FileSet, all []declaration) ([]string, error) {
	fileOf := func(object types.Object) string { return filepath.Base(files.Position(object.Pos()).Filename) }
	for _, d := range all {
		if _, listed := l.ofFile[fileOf(d.object)]; !listed {
			return nil, fmt.Errorf("%s has no layer", fileOf(d.object))
		}
	}
	layerOf := func(object types.Object) int { return l.ofFile[fileOf(object)] }
	found := map[string]bool{}
	for _, d := range all {
		if d.owner != nil && layerOf(d.owner) != layerOf(d.object) {
			found["method "+d.name()] = true
		}
		for _, used := range d.uses {
			if layerOf(used) > layerOf(d.object) {
				found[d.name()+" uses "+nameOf(used)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}
