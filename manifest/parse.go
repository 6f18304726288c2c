package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// Parse reads a manifest; file is the name that errors give. The trees come sorted by name, their nodes by path,
// resources and admins by name, whatever the order of the text. Principals and moves keep it, since it means something.
//
// An error names up to ten problems with line and column (each an *Error, joined); nothing is returned then. Policies
// are not checked here: the server knows them.
func Parse(file string, text []byte) ([]*quoratev1.Tree, error) {
	root, err := readText(file, text)
	if err != nil {
		return nil, err
	}
	p := &parser{file: file}
	trees := p.manifest(root)
	if len(p.problems) > 0 {
		return nil, joined(p.problems)
	}
	return trees, nil
}

// The keys of a tree and of a node, in the order in which errors list them.
var (
	treeKeys = strings.Fields("admins applications defaults forest labels leases limits maintenance moves nodes " +
		"overtake policy principals queueing require-reason resources")
	nodeKeys = strings.Fields("admins applications borrow defaults hard labels lend limits nodes policy principals queueing")
)

// parser makes messages of maps and gathers what is wrong with them.
type parser struct {
	file     string
	problems []error
}

func (p *parser) manifest(root value) []*quoratev1.Tree {
	sections := p.sections("the manifest", root, "trees")
	trees, found := sections["trees"]
	if !found {
		p.fail(root.line, root.column, `there is no "trees" here`)
		return nil
	}
	var parsed []*quoratev1.Tree
	for _, e := range p.entries("trees", trees, MaxTrees) {
		if nodeName.MatchString(e.key) {
			parsed = append(parsed, p.tree(e))
		} else {
			p.failName(e, "tree", "_ . @ + -")
		}
	}
	slices.SortFunc(parsed, func(a, b *quoratev1.Tree) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return parsed
}

func (p *parser) tree(e entry) *quoratev1.Tree {
	what := fmt.Sprintf("tree %q", e.key)
	sections := p.sections(what, e.value, treeKeys...)
	if _, found := sections["resources"]; !found && e.value.kind == kindMap {
		p.fail(e.line, e.column, "%s registers no resource: write resources: {cores: {unit: count}}", what)
	}
	resources, units := p.resources(what, sections["resources"])
	root := p.shared(what, sections, units)
	t := &quoratev1.Tree{
		Name:          e.key,
		Resources:     resources,
		Forest:        p.word(what, "forest", sections),
		RequireReason: p.flag(what, "require-reason", sections),
		Maintenance:   p.flag(what, "maintenance", sections),
		Leases:        p.leases(what, sections),
		OvertakeMs:    p.span(what, "overtake", sections, maxOvertake),
		Queueing:      root.GetQueueing(),
		Policy:        root.GetPolicy(),
		Limits:        root.GetLimits(),
		Labels:        root.GetLabels(),
		Principals:    root.GetPrincipals(),
		Defaults:      root.GetDefaults(),
		Applications:  root.GetApplications(),
		Admins:        root.GetAdmins(),
		Moves:         p.moves(sections["moves"]),
	}
	w := &walk{parser: p, units: units, tree: t}
	w.nodes("", 1, sections["nodes"])
	if len(t.GetNodes()) > maxNodes {
		p.fail(e.line, e.column, "%s has %d nodes; a tree may have %d", what, len(t.GetNodes()), maxNodes)
	}
	slices.SortFunc(t.GetNodes(), func(a, b *quoratev1.Node) int { return cmp.Compare(a.GetPath(), b.GetPath()) })
	return t
}

// walk goes down the nodes of one tree.
type walk struct {
	*parser
	units map[string]quoratev1.Unit
	tree  *quoratev1.Tree
}

func (w *walk) nodes(parent string, depth int, nodes value) {
	for _, e := range w.entries("nodes", nodes, maxNodes) {
		switch {
		case !nodeName.MatchString(e.key):
			w.failName(e, "node", "_ . @ + -")
		case depth > maxDepth:
			w.fail(e.line, e.column, "%q is too deep: a node may be %d deep", parent+"/"+e.key, maxDepth)
		default:
			w.node(strings.TrimPrefix(parent+"/"+e.key, "/"), depth, e)
		}
	}
}

func (w *walk) node(path string, depth int, e entry) {
	what := fmt.Sprintf("node %q", path)
	sections := w.sections(what, e.value, nodeKeys...)
	n := w.shared(what, sections, w.units)
	n.Path = path
	n.Hard = w.flag(what, "hard", sections)
	n.Borrow = w.limits(what, "borrow", sections, w.units)
	n.Lend = w.limits(what, "lend", sections, w.units)
	w.tree.Nodes = append(w.tree.Nodes, n)
	w.nodes(path, depth+1, sections["nodes"])
}

// shared is what the root of a tree and the nodes below it can both have.
func (p *parser) shared(what string, sections map[string]value, units map[string]quoratev1.Unit) *quoratev1.Node {
	return &quoratev1.Node{
		Policy:       p.word(what, "policy", sections),
		Labels:       p.labels(what, sections["labels"]),
		Limits:       p.limits(what, "limits", sections, units),
		Defaults:     p.limits(what, "defaults", sections, units),
		Applications: p.applications(what, sections),
		Admins:       slices.Sorted(slices.Values(p.names(what, "admins", sections, maxAdmins))),
		Principals:   p.principals(what, sections["principals"], units),
		Queueing:     p.queueing(what, sections),
	}
}

func (p *parser) resources(what string, resources value) ([]*quoratev1.Resource, map[string]quoratev1.Unit) {
	units := map[string]quoratev1.Unit{}
	if resources.kind == kindMap && len(resources.entries) == 0 {
		p.fail(resources.line, resources.column, "%s registers no resource: write resources: {cores: {unit: count}}", what)
	}
	var known []*quoratev1.Resource
	for _, e := range p.entries("resources", resources, maxResources) {
		if !resourceName.MatchString(e.key) {
			p.failName(e, "resource", "_ . / -")
			continue
		}
		if r := p.resource(e); r != nil {
			units[e.key] = r.GetUnit()
			known = append(known, r)
		}
	}
	slices.SortFunc(known, func(a, b *quoratev1.Resource) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return known, units
}

// resource reads what one resource counts; nil if that is not said.
func (p *parser) resource(e entry) *quoratev1.Resource {
	sections := p.sections(fmt.Sprintf("resource %q", e.key), e.value, "items", "unit")
	unit, counted := sections["unit"]
	items, itemized := sections["items"]
	switch {
	case counted && itemized:
		p.fail(e.line, e.column, "resource %q has a unit and items: leave one of them out; items count as whole things", e.key)
	case itemized:
		return &quoratev1.Resource{Name: e.key, Unit: quoratev1.Unit_UNIT_ITEMS, Items: p.itemSpec(e.key, items)}
	case counted:
		return p.counted(e.key, unit)
	case e.value.kind == kindMap:
		p.fail(e.line, e.column, "resource %q has no unit: write {unit: count}, or milli, or bytes, or {items: {names: [a, b]}}",
			e.key)
	}
	return nil
}

func (p *parser) counted(name string, unit value) *quoratev1.Resource {
	for known, word := range unitNames {
		if known != quoratev1.Unit_UNIT_ITEMS && unit.kind == kindText && unit.text == word {
			return &quoratev1.Resource{Name: name, Unit: known}
		}
	}
	p.fail(unit.line, unit.column, "the unit of %q is one of count, milli, bytes; what has names is written {items: {names: [a, b]}}",
		name)
	return nil
}

// sections are the entries of a map that has only known keys.
func (p *parser) sections(what string, m value, allowed ...string) map[string]value {
	if m.kind != kindMap {
		p.fail(m.line, m.column, "%s is a map of %s, not %s", what, strings.Join(allowed, ", "), m.shown())
		return nil
	}
	found := make(map[string]value, len(m.entries))
	for _, e := range m.entries {
		if slices.Contains(allowed, e.key) {
			found[e.key] = e.value
		} else {
			p.fail(e.line, e.column, "%s has no key %q; allowed are %s", what, e.key, strings.Join(allowed, ", "))
		}
	}
	return found
}

// entries are those of a map with free keys; none if it is absent.
func (p *parser) entries(what string, m value, most int) []entry {
	switch {
	case m.line == 0: // absent
		return nil
	case m.kind != kindMap:
		p.fail(m.line, m.column, "%s is a map of names, not %s", what, m.shown())
		return nil
	case len(m.entries) > most:
		p.fail(m.line, m.column, "%s has %d entries; %d are allowed", what, len(m.entries), most)
		return nil
	}
	return m.entries
}

// items are those of a list; none if it is absent.
func (p *parser) items(what string, list value, most int) []value {
	switch {
	case list.line == 0: // absent
		return nil
	case list.kind != kindList:
		p.fail(list.line, list.column, "%s is a list, not %s: write it in brackets, or in lines with a dash",
			what, list.shown())
		return nil
	case len(list.items) > most:
		p.fail(list.line, list.column, "%s has %d entries; %d are allowed", what, len(list.items), most)
		return nil
	}
	return list.items
}

func (p *parser) failName(e entry, kind, marks string) {
	p.fail(e.line, e.column, "%q is no name for a %s: 1 to 63 of letters, digits and %s, beginning with a letter, digit or _",
		e.key, kind, marks)
}

func (p *parser) fail(line, column int, format string, args ...any) {
	p.problems = append(p.problems, &Error{p.file, line, column, fmt.Sprintf(format, args...)})
}
