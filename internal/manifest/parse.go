package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/internal/access"
)

// Manifest is what a manifest says.
type Manifest struct {
	// At is set for the text of a subtree below a root: then there is one tree, with the nodes of the subtree, moves
	// within it, and the resources that it names with their units, and nothing else. Format writes a root as a tree.
	At *Subtree
	// Access is the access section; nil if the manifest has none, which leaves that of the server as it is.
	Access   *quoratev1.AccessSection
	Policies []*quoratev1.Policy
	Trees    []*quoratev1.Tree
}

// Parse reads a manifest; errors use file as its name. Policies and trees are sorted by name, nodes by path, resources
// by name, and bindings and the access section are in the canonical form of package access. Principals and moves keep
// the order of the text, which is significant.
//
// The error joins an *Error for each of the first ten problems. The policies that trees name are not checked, because
// only the server knows all that are defined. Without an access section that also applies to custom roles.
func Parse(file string, text []byte) (*Manifest, error) {
	p := &parser{file: file}
	return p.parseText(text)
}

type parser struct {
	file     string
	problems []error
	// roles are those that bindings may name; rolesKnown is false if the server may define more.
	roles      access.Roles
	rolesKnown bool
	// disputed are warnings of texts that mean something else in one version of YAML.
	disputed []Warning
	// origins has the places of the limits of users and groups, if they are wanted for warnings.
	origins map[*quoratev1.PrincipalLimit]origin
}

func (p *parser) parseText(text []byte) (*Manifest, error) {
	root, err := readText(p.file, text)
	if err != nil {
		return nil, err
	}
	m := p.parseManifest(root)
	if len(p.problems) > 0 {
		return nil, joinProblems(p.problems)
	}
	return m, nil
}

func (p *parser) parseManifest(root value) *Manifest {
	if !p.checkVersion(root) {
		return nil
	}
	if isSubtree(root) {
		return p.parseSubtree(root)
	}
	sections := p.knownSections("the manifest", root, manifestMap)
	delete(sections, "version")
	if len(sections) == 0 {
		p.addProblem(root.line, root.column, `the key "trees" is missing`)
		return nil
	}
	m := &Manifest{}
	if section, found := sections["access"]; found {
		m.Access = p.parseAccess(section)
	}
	m.Policies, m.Trees = p.parsePolicies(sections["policies"]), p.parseTrees(sections["trees"])
	return m
}

// version is the version of the grammar. A manifest that names none has it.
const version = "1"

// checkVersion refuses a text of another version before anything else, because its other keys may be unknown.
func (p *parser) checkVersion(root value) bool {
	for _, e := range root.entries {
		if e.key == "version" && (e.value.kind != kindText || e.value.text != version) {
			p.addProblem(e.value.line, e.value.column, "version of the manifest is %s, not %s: this program knows no other",
				version, e.value.describeValue())
			return false
		}
	}
	return true
}

func (p *parser) parseTrees(trees value) []*quoratev1.Tree {
	var parsed []*quoratev1.Tree
	for _, e := range p.mapEntries("trees", trees, MaxTrees) {
		if nodeName().MatchString(e.key) {
			parsed = append(parsed, p.parseTree(e))
		} else {
			p.failName(e, "tree", "_ . @ + -")
		}
	}
	slices.SortFunc(parsed, func(a, b *quoratev1.Tree) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return parsed
}

func (p *parser) parseTree(e entry) *quoratev1.Tree {
	what := fmt.Sprintf("tree %q", e.key)
	sections := p.knownSections(what, e.value, treeMap)
	if _, found := sections["resources"]; !found && e.value.kind == kindMap {
		p.addProblem(e.line, e.column, "%s registers no resource: write resources: {cores: {unit: count}}", what)
	}
	resources, units := p.parseResources(what, sections["resources"])
	root := p.parseShared(what, sections, units)
	t := &quoratev1.Tree{
		Name:             e.key,
		Resources:        resources,
		Forest:           p.parseWord(what, "forest", sections),
		RequireReason:    p.parseFlag(what, "require-reason", sections),
		RequirePrincipal: p.parseFlag(what, "require-principal", sections),
		Leases:           p.parseLeases(what, sections),
		OvertakeMs:       p.parseSpan(what, "overtake", sections, maxOvertake),
		TenantsSee:       p.parseTenantsSee(what, sections),
		Approvals:        p.parseApprovals(what, sections),
		Queueing:         root.GetQueueing(),
		AutoApprove:      root.GetAutoApprove(),
		Thresholds:       root.GetThresholds(),
		Policy:           root.GetPolicy(),
		Limits:           root.GetLimits(),
		Labels:           root.GetLabels(),
		Principals:       root.GetPrincipals(),
		Defaults:         root.GetDefaults(),
		Applications:     root.GetApplications(),
		Bindings:         root.GetBindings(),
		Moves:            p.parseMoves(sections["moves"]),
	}
	w := &nodeParser{parser: p, units: units, tree: t}
	w.parseNodes("", 1, sections["nodes"])
	if len(t.GetNodes()) > maxNodes {
		p.addProblem(e.line, e.column, "%s has %d nodes; a tree may have %d", what, len(t.GetNodes()), maxNodes)
	}
	slices.SortFunc(t.GetNodes(), func(a, b *quoratev1.Node) int { return cmp.Compare(a.GetPath(), b.GetPath()) })
	return t
}

type nodeParser struct {
	*parser
	units map[string]quoratev1.Unit
	tree  *quoratev1.Tree
}

func (w *nodeParser) parseNodes(parent string, depth int, nodes value) {
	for _, e := range w.mapEntries("nodes", nodes, maxNodes) {
		switch {
		case !nodeName().MatchString(e.key):
			w.failName(e, "node", "_ . @ + -")
		case depth > maxDepth:
			w.addProblem(e.line, e.column, "%q is too deep: a node may be %d deep", parent+"/"+e.key, maxDepth)
		default:
			w.parseNode(strings.TrimPrefix(parent+"/"+e.key, "/"), depth, e)
		}
	}
}

func (w *nodeParser) parseNode(path string, depth int, e entry) {
	w.parseNodeSections(path, depth, w.knownSections(fmt.Sprintf("node %q", path), e.value, nodeMap))
}

func (w *nodeParser) parseNodeSections(path string, depth int, sections map[string]value) {
	what := fmt.Sprintf("node %q", path)
	n := w.parseShared(what, sections, w.units)
	n.Path = path
	n.Hard = w.parseFlag(what, "hard", sections)
	n.Borrow = w.parseLimits(what, "borrow", sections, w.units)
	n.Lend = w.parseLimits(what, "lend", sections, w.units)
	w.tree.Nodes = append(w.tree.Nodes, n)
	w.parseNodes(path, depth+1, sections["nodes"])
}

// parseShared parses the sections that the root of a tree and its nodes have in common.
func (p *parser) parseShared(what string, sections map[string]value, units map[string]quoratev1.Unit) *quoratev1.Node {
	return &quoratev1.Node{
		Policy:       p.parseWord(what, "policy", sections),
		Labels:       p.parseLabels(what, sections["labels"]),
		Limits:       p.parseLimits(what, "limits", sections, units),
		Defaults:     p.parseLimits(what, "defaults", sections, units),
		Applications: p.parseApplications(what, sections),
		Bindings:     bindingMessages(p.parseBindings(what, sections["bindings"], access.NodeScope)),
		Principals:   p.parsePrincipals(what, sections["principals"], units),
		Queueing:     p.parseQueueing(what, sections),
		AutoApprove:  p.parseAutoApprove(what, sections),
		Thresholds:   p.parseThresholds(what, sections),
	}
}

func (p *parser) parseResources(what string, resources value) ([]*quoratev1.Resource, map[string]quoratev1.Unit) {
	units := map[string]quoratev1.Unit{}
	if resources.kind == kindMap && len(resources.entries) == 0 {
		p.addProblem(
			resources.line,
			resources.column,
			"%s registers no resource: write resources: {cores: {unit: count}}",
			what,
		)
	}
	var known []*quoratev1.Resource
	for _, e := range p.mapEntries("resources", resources, maxResources) {
		if !resourceName().MatchString(e.key) {
			p.failName(e, "resource", "_ . / -")
			continue
		}
		if r := p.parseResource(e); r != nil {
			units[e.key] = r.GetUnit()
			known = append(known, r)
		}
	}
	slices.SortFunc(known, func(a, b *quoratev1.Resource) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return known, units
}

// parseResource is nil if the resource has neither a unit nor items.
func (p *parser) parseResource(e entry) *quoratev1.Resource {
	sections := p.knownSections(fmt.Sprintf("resource %q", e.key), e.value, resourceMap)
	unit, counted := sections["unit"]
	items, itemized := sections["items"]
	switch {
	case counted && itemized:
		p.addProblem(
			e.line,
			e.column,
			"resource %q has a unit and items: leave one of them out; items count as whole things",
			e.key,
		)
	case itemized:
		return &quoratev1.Resource{Name: e.key, Unit: quoratev1.Unit_UNIT_ITEMS, Items: p.itemSpec(e.key, items)}
	case counted:
		return p.countedResource(e.key, unit)
	case e.value.kind == kindMap:
		p.addProblem(
			e.line,
			e.column,
			"resource %q has no unit: write {unit: count}, or milli, or bytes, or {items: {names: [a, b]}}",
			e.key,
		)
	}
	return nil
}

func (p *parser) countedResource(name string, unit value) *quoratev1.Resource {
	if known, found := unitOf(unit); found && known != quoratev1.Unit_UNIT_ITEMS {
		return &quoratev1.Resource{Name: name, Unit: known}
	}
	p.addProblem(
		unit.line,
		unit.column,
		"the unit of %q must be one of count, milli, bytes; named items are written {items: {names: [a, b]}}",
		name,
	)
	return nil
}

// knownSections requires that all keys are allowed.
func (p *parser) knownSections(what string, m value, kind mapKind) map[string]value {
	allowed := mapKeys[kind]
	if m.kind != kindMap {
		p.addProblem(m.line, m.column, "%s is a map of %s, not %s", what, strings.Join(allowed, ", "),
			m.describeValue())
		return nil
	}
	found := make(map[string]value, len(m.entries))
	for _, e := range m.entries {
		switch {
		case slices.Contains(allowed, e.key):
			found[e.key] = e.value
		case insteadOfKeys[e.key] != "":
			p.addProblem(e.line, e.column, "%s has no key %q; %s", what, e.key, insteadOfKeys[e.key])
		default:
			p.addProblem(e.line, e.column, "%s has no key %q; allowed are %s", what, e.key, strings.Join(allowed, ", "))
		}
	}
	return found
}

// mapEntries requires that the keys are names; none if the map is absent.
func (p *parser) mapEntries(what string, m value, most int) []entry {
	switch {
	case m.line == 0: // absent
		return nil
	case m.kind != kindMap:
		p.addProblem(m.line, m.column, "%s is a map of names, not %s", what, m.describeValue())
		return nil
	case len(m.entries) > most:
		p.addProblem(m.line, m.column, "%s has %d entries; %d are allowed", what, len(m.entries), most)
		return nil
	}
	for _, e := range m.entries {
		if !e.quoted {
			p.warnIfDisputed(e.line, e.column, e.key)
		}
	}
	return m.entries
}

// listItems returns none if the list is absent.
func (p *parser) listItems(what string, list value, most int) []value {
	switch {
	case list.line == 0: // absent
		return nil
	case list.kind != kindList:
		p.addProblem(list.line, list.column, "%s is a list, not %s: write it in brackets, or in lines with a dash",
			what, list.describeValue())
		return nil
	case len(list.items) > most:
		p.addProblem(list.line, list.column, "%s has %d entries; %d are allowed", what, len(list.items), most)
		return nil
	}
	return list.items
}

func (p *parser) failName(e entry, kind, marks string) {
	p.addProblem(
		e.line,
		e.column,
		"%q is not a valid %s name: use 1 to 63 letters, digits and %s, beginning with a letter, digit or _",
		e.key,
		kind,
		marks,
	)
}

func (p *parser) addProblem(line, column int, format string, args ...any) {
	p.problems = append(p.problems, &Error{p.file, line, column, fmt.Sprintf(format, args...)})
}
