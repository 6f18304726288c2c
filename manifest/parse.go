package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// Parse reads a manifest; file is the name that errors give. The trees come sorted by name, their nodes by path and
// their resources by name, whatever the order of the text.
//
// An error names up to ten problems with line and column (each an *Error, joined); nothing is returned then. Policies are
// not checked here: the server knows them.
func Parse(file string, text []byte) ([]*quoratev1.Tree, error) {
	root, err := read(file, text)
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
	sections := p.sections(what, e.value, "labels", "limits", "nodes", "policy", "resources")
	if _, found := sections["resources"]; !found && e.value.isMap {
		p.fail(e.line, e.column, "%s registers no resource: write resources: {cores: {unit: count}}", what)
	}
	resources, units := p.resources(what, sections["resources"])
	t := &quoratev1.Tree{
		Name:      e.key,
		Resources: resources,
		Policy:    p.policy(what, sections),
		Limits:    p.limits(what, sections["limits"], units),
		Labels:    p.labels(what, sections["labels"]),
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
	sections := w.sections(what, e.value, "labels", "limits", "nodes", "policy")
	w.tree.Nodes = append(w.tree.Nodes, &quoratev1.Node{
		Path:   path,
		Policy: w.policy(what, sections),
		Limits: w.limits(what, sections["limits"], w.units),
		Labels: w.labels(what, sections["labels"]),
	})
	w.nodes(path, depth+1, sections["nodes"])
}

func (p *parser) resources(what string, resources value) ([]*quoratev1.Resource, map[string]quoratev1.Unit) {
	units := map[string]quoratev1.Unit{}
	if resources.isMap && len(resources.entries) == 0 {
		p.fail(resources.line, resources.column, "%s registers no resource: write resources: {cores: {unit: count}}", what)
	}
	for _, e := range p.entries("resources", resources, maxResources) {
		if !resourceName.MatchString(e.key) {
			p.failName(e, "resource", "_ . / -")
			continue
		}
		unit, known := p.unit(e)
		if known {
			units[e.key] = unit
		}
	}
	var sorted []*quoratev1.Resource
	for _, name := range slices.Sorted(maps.Keys(units)) {
		sorted = append(sorted, &quoratev1.Resource{Name: name, Unit: units[name]})
	}
	return sorted, units
}

func (p *parser) unit(e entry) (quoratev1.Unit, bool) {
	unit, found := p.sections(fmt.Sprintf("resource %q", e.key), e.value, "unit")["unit"]
	if !found {
		if e.value.isMap {
			p.fail(e.line, e.column, "resource %q has no unit: write {unit: count}, or milli, or bytes", e.key)
		}
		return 0, false
	}
	for known, name := range unitNames {
		if !unit.isMap && unit.text == name {
			return known, true
		}
	}
	p.fail(unit.line, unit.column, "the unit of %q is one of count, milli, bytes", e.key)
	return 0, false
}

func (p *parser) policy(what string, sections map[string]value) string {
	policy, found := sections["policy"]
	if found && (policy.isMap || policy.text == "" || len(policy.text) > maxPolicy) {
		p.fail(policy.line, policy.column, "the policy of %s is a name of up to %d bytes, such as open or strict",
			what, maxPolicy)
	}
	return policy.text
}

func (p *parser) limits(what string, limits value, units map[string]quoratev1.Unit) map[string]*quoratev1.Limit {
	var parsed map[string]*quoratev1.Limit
	for _, e := range p.entries("limits", limits, maxResources) {
		unit, registered := units[e.key]
		if !registered {
			p.fail(e.line, e.column, "%s limits %q, which its tree does not register; it has %s",
				what, e.key, strings.Join(slices.Sorted(maps.Keys(units)), ", "))
			continue
		}
		limit, err := parseSetLimit(e.value, unit)
		if err != nil {
			p.fail(e.value.line, e.value.column, "%s, limit of %q: %v", what, e.key, err)
			continue
		}
		if parsed == nil {
			parsed = map[string]*quoratev1.Limit{}
		}
		parsed[e.key] = limit
	}
	return parsed
}

func parseSetLimit(v value, unit quoratev1.Unit) (*quoratev1.Limit, error) {
	if v.isMap {
		return nil, fmt.Errorf("it is a quantity or the word %s", unlimitedWord)
	}
	if v.text == unsetWord {
		return nil, fmt.Errorf("leave the line out: what is not written is unset")
	}
	return ParseLimit(v.text, unit)
}

func (p *parser) labels(what string, labels value) map[string]string {
	var parsed map[string]string
	for _, e := range p.entries("labels", labels, maxLabels) {
		switch {
		case e.key == "" || len(e.key) > maxLabelKey:
			p.fail(e.line, e.column, "the name of a label of %s has 1 to %d bytes, this one %d", what, maxLabelKey, len(e.key))
		case e.value.isMap || len(e.value.text) > maxLabelValue:
			p.fail(e.value.line, e.value.column, "label %q of %s is a text of up to %d bytes", e.key, what, maxLabelValue)
		default:
			if parsed == nil {
				parsed = map[string]string{}
			}
			parsed[e.key] = e.value.text
		}
	}
	return parsed
}

// sections are the entries of a map that has only known keys.
func (p *parser) sections(what string, m value, allowed ...string) map[string]value {
	if !m.isMap {
		p.fail(m.line, m.column, "%s is a map of %s, not %q", what, strings.Join(allowed, ", "), m.text)
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
	case !m.isMap:
		p.fail(m.line, m.column, "%s is a map of names, not %q", what, m.text)
		return nil
	case len(m.entries) > most:
		p.fail(m.line, m.column, "%s has %d entries; %d are allowed", what, len(m.entries), most)
		return nil
	}
	return m.entries
}

func (p *parser) failName(e entry, kind, marks string) {
	p.fail(e.line, e.column, "%q is no name for a %s: 1 to 63 of letters, digits and %s, beginning with a letter, digit or _",
		e.key, kind, marks)
}

func (p *parser) fail(line, column int, format string, args ...any) {
	p.problems = append(p.problems, &Error{p.file, line, column, fmt.Sprintf(format, args...)})
}
