package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/quantity"
)

// Subtree names a node and everything below it.
type Subtree struct {
	// The tree.
	Tree string
	// The node at the top; empty for the root.
	Node string
}

func isSubtree(root value) bool {
	return slices.ContainsFunc(root.entries, func(e entry) bool { return e.key == "at" })
}

func (p *parser) parseSubtree(root value) *Manifest {
	sections := p.knownSections("the text of a subtree", root, subtreeMap)
	at := sections["at"]
	name, path, _ := strings.Cut(at.text, ":")
	if at.kind != kindText || !nodeName().MatchString(name) || !isPath(path) {
		p.addProblem(at.line, at.column,
			"at must name a node below the root of a tree, such as cern:atlas/physics; a whole tree is written under trees")
		return nil
	}
	resources, units := p.parseUnits(sections["units"])
	t := &quoratev1.Tree{Name: name, Resources: resources, Moves: p.parseMoves(sections["moves"])}
	w := &nodeParser{parser: p, units: units, tree: t}
	w.parseNodeSections(path, 1+strings.Count(path, "/"), sections)
	if len(t.GetNodes()) > maxNodes {
		p.addProblem(at.line, at.column, "the subtree has %d nodes; a tree may have %d", len(t.GetNodes()), maxNodes)
	}
	slices.SortFunc(t.GetNodes(), func(a, b *quoratev1.Node) int { return cmp.Compare(a.GetPath(), b.GetPath()) })
	return &Manifest{At: &Subtree{Tree: name, Node: path}, Trees: []*quoratev1.Tree{t}}
}

// parseUnits reads the units of the resources that the text names. What is registered is the tree's business, but
// amounts cannot be read without their units.
func (p *parser) parseUnits(units value) ([]*quoratev1.Resource, map[string]quoratev1.Unit) {
	known := map[string]quoratev1.Unit{}
	var resources []*quoratev1.Resource
	for _, e := range p.mapEntries("units", units, maxResources) {
		if !resourceName().MatchString(e.key) {
			p.failName(e, "resource", "_ . / -")
			continue
		}
		unit, found := unitOf(e.value)
		if !found {
			p.addProblem(e.value.line, e.value.column, "the unit of %q must be one of count, milli, bytes, items", e.key)
			continue
		}
		known[e.key] = unit
		resources = append(resources, &quoratev1.Resource{Name: e.key, Unit: unit})
	}
	slices.SortFunc(resources, func(a, b *quoratev1.Resource) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return resources, known
}

func unitOf(v value) (quoratev1.Unit, bool) {
	unit, found := quantity.UnitOf(v.text)
	return unit, found && v.kind == kindText
}

func subtreeEntries(m *Manifest) ([]entry, error) {
	if m.Access != nil || len(m.Policies) > 0 || len(m.Trees) != 1 || m.Trees[0].GetName() != m.At.Tree {
		return nil, errors.New("the text of a subtree has one tree, its own, and nothing else")
	}
	t, path := m.Trees[0], m.At.Node
	top := slices.IndexFunc(t.GetNodes(), func(n *quoratev1.Node) bool { return n.GetPath() == path })
	if top < 0 {
		return nil, fmt.Errorf("node %q of tree %q is not listed", path, t.GetName())
	}
	families, err := familiesOf(slices.Delete(slices.Clone(t.GetNodes()), top, top+1), path)
	if err != nil {
		return nil, err
	}
	f := formatter{units: map[string]quoratev1.Unit{}, families: families}
	units := value{kind: kindMap}
	byName := func(a, b *quoratev1.Resource) int { return cmp.Compare(a.GetName(), b.GetName()) }
	for _, r := range slices.SortedFunc(slices.Values(t.GetResources()), byName) {
		f.units[r.GetName()] = r.GetUnit()
		units.addText(r.GetName(), quantity.UnitName(r.GetUnit()))
	}
	node, err := f.nodeValue(t.GetNodes()[top])
	if err != nil {
		return nil, err
	}
	place := t.GetName() + ":" + path
	v := value{kind: kindMap}
	v.addEntry("at", value{text: place, plain: plainText().MatchString(strings.Replace(place, ":", "/", 1))})
	v.addFilled("units", units)
	return append(v.entries, node.entries...), nil
}
