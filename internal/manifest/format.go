package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/client/quantity"
	"github.com/quorate/quorate/internal/access"
)

// Format formats a manifest: its version, the access section and bindings in the canonical form of package access,
// policies and trees sorted by name, nodes under their parents. Equal configurations give the same text for any order
// of their parts; only principals keep their order. Moves are left out, because they are made once.
//
// What Parse could not read back is an error, for example if the parent of a node is missing.
func Format(m *Manifest) ([]byte, error) {
	if m.At != nil && m.At.Node != "" {
		sections, err := subtreeEntries(m)
		if err != nil {
			return nil, fmt.Errorf("subtree: %w", err)
		}
		return writeManifest(sections)
	}
	var sections []entry
	if m.Access != nil {
		v, err := sectionValue(m.Access)
		if err != nil {
			return nil, fmt.Errorf("access: %w", err)
		}
		sections = append(sections, entry{key: "access", value: v})
	}
	if len(m.Policies) > 0 {
		sections = append(sections, entry{key: "policies", value: policiesValue(m.Policies)})
	}
	all := value{kind: kindMap}
	for _, t := range m.Trees {
		v, err := treeValue(t)
		if err != nil {
			return nil, fmt.Errorf("tree %q: %w", t.GetName(), err)
		}
		all.entries = append(all.entries, entry{key: t.GetName(), value: v})
	}
	slices.SortFunc(all.entries, func(a, b entry) int { return cmp.Compare(a.key, b.key) })

	if len(sections) == 0 || len(m.Trees) > 0 {
		sections = append(sections, entry{key: "trees", value: all})
	}
	return writeManifest(sections)
}

// writeManifest checks that Parse can read back what it writes.
func writeManifest(sections []entry) ([]byte, error) {
	var text strings.Builder
	text.WriteString("version: " + version + "\n")
	writeEntries(&text, 0, sections)
	if _, err := Parse("formatted", []byte(text.String())); err != nil {
		return nil, fmt.Errorf("this configuration cannot be written as a manifest: %w", err)
	}
	return []byte(text.String()), nil
}

func treeValue(t *quoratev1.Tree) (value, error) {
	units := map[string]quoratev1.Unit{}
	for _, r := range t.GetResources() {
		units[r.GetName()] = r.GetUnit()
	}
	if len(units) < len(t.GetResources()) {
		return value{}, errors.New("a resource is registered twice")
	}
	families, err := familiesOf(t.GetNodes(), "")
	if err != nil {
		return value{}, err
	}
	v := value{kind: kindMap}
	v.addText("policy", t.GetPolicy())
	v.addText("forest", t.GetForest())
	v.addFlag("require-reason", t.GetRequireReason())
	v.addFlag("require-principal", t.GetRequirePrincipal())
	if see := t.GetTenantsSee(); see > quoratev1.TenantsSee_TENANTS_SEE_TOTALS { // totals are what is without the key
		v.addText("tenants-see", tenantsSee[see])
	}
	v.addFilled("labels", textsValue(t.GetLabels()))
	v.addFilled("leases", leasesValue(t.GetLeases()))
	v.addText("queueing", queueings[t.GetQueueing()])
	v.addSpan("overtake", t.GetOvertakeMs())
	v.addCount("approvals", int64(t.GetApprovals()))
	resources, err := resourcesValue(t.GetResources())
	if err != nil {
		return value{}, err
	}
	v.addEntry("resources", resources)
	f := formatter{units: units, families: families}
	root := &quoratev1.Node{
		Limits:       t.GetLimits(),
		Defaults:     t.GetDefaults(),
		Applications: t.GetApplications(),
		Bindings:     t.GetBindings(),
		AutoApprove:  t.GetAutoApprove(),
		Thresholds:   t.GetThresholds(),
		Principals:   t.GetPrincipals(),
	}
	return v, f.addShared(&v, root)
}

func resourcesValue(resources []*quoratev1.Resource) (value, error) {
	v := value{kind: kindMap}
	byName := func(a, b *quoratev1.Resource) int { return cmp.Compare(a.GetName(), b.GetName()) }
	for _, r := range slices.SortedFunc(slices.Values(resources), byName) {
		what := value{kind: kindMap}
		switch itemized := r.GetUnit() == quoratev1.Unit_UNIT_ITEMS; {
		case itemized != (r.GetItems() != nil):
			return value{}, fmt.Errorf(
				"resource %q has the unit %s, and items: %v",
				r.GetName(),
				quantity.UnitName(r.GetUnit()),
				r.GetItems() != nil,
			)
		case itemized:
			what.addEntry("items", itemsValue(r.GetItems()))
		default:
			what.addText("unit", quantity.UnitName(r.GetUnit()))
		}
		v.addEntry(r.GetName(), what)
	}
	return v, nil
}

// familiesOf returns the children of every path from the top down, sorted. The top itself is not listed; the root of a
// tree is the empty path.
func familiesOf(nodes []*quoratev1.Node, top string) (map[string][]*quoratev1.Node, error) {
	known := map[string]bool{top: true}
	for _, n := range nodes {
		if known[n.GetPath()] {
			return nil, fmt.Errorf("node %q is listed twice", n.GetPath())
		}
		known[n.GetPath()] = true
	}
	families := map[string][]*quoratev1.Node{}
	for _, n := range nodes {
		parent, _ := splitPath(n.GetPath())
		if !known[parent] || strings.HasPrefix(n.GetPath(), "/") {
			return nil, fmt.Errorf("node %q has no parent: %q is not listed", n.GetPath(), parent)
		}
		families[parent] = append(families[parent], n)
	}
	for _, family := range families {
		slices.SortFunc(family, func(a, b *quoratev1.Node) int { return cmp.Compare(a.GetPath(), b.GetPath()) })
	}
	return families, nil
}

// splitPath returns an empty parent for the root.
func splitPath(path string) (parent, name string) {
	slash := strings.LastIndexByte(path, '/')
	return path[:max(slash, 0)], path[slash+1:]
}

type formatter struct {
	units    map[string]quoratev1.Unit
	families map[string][]*quoratev1.Node
}

func (f formatter) nodeValue(n *quoratev1.Node) (value, error) {
	v := value{kind: kindMap}
	v.addText("policy", n.GetPolicy())
	v.addFlag("hard", n.GetHard())
	v.addFilled("labels", textsValue(n.GetLabels()))
	v.addText("queueing", queueings[n.GetQueueing()])
	return v, f.addShared(&v, n)
}

// addShared adds the sections that a tree and its nodes have in common, in the same order for all.
func (f formatter) addShared(v *value, n *quoratev1.Node) error {
	for _, section := range []struct {
		key    string
		limits map[string]*quoratev1.Limit
	}{{"limits", n.GetLimits()}, {"defaults", n.GetDefaults()}, {"borrow", n.GetBorrow()}, {"lend", n.GetLend()}} {
		limits, err := f.limitsValue(n, section.limits)
		if err != nil {
			return err
		}
		v.addFilled(section.key, limits)
	}
	if err := addBound(v, "applications", n.GetApplications()); err != nil {
		return fmt.Errorf("node %q: %w", n.GetPath(), err)
	}
	v.addFilled("auto-approve", autoApproveValue(n.GetAutoApprove()))
	addThresholds(v, n.GetThresholds())
	bindings, err := bindingsOf(n.GetBindings())
	if err != nil {
		return fmt.Errorf("node %q: %w", n.GetPath(), err)
	}
	v.addFilled("bindings", bindingsValue(access.CanonicalBindings(bindings)))
	principals := value{kind: kindList}
	for _, principal := range n.GetPrincipals() {
		item, err := f.principalValue(n, principal)
		if err != nil {
			return err
		}
		principals.items = append(principals.items, item)
	}
	v.addFilled("principals", principals)
	nodes := value{kind: kindMap}
	for _, child := range f.families[n.GetPath()] {
		c, err := f.nodeValue(child)
		if err != nil {
			return err
		}
		_, name := splitPath(child.GetPath())
		nodes.addEntry(name, c)
	}
	v.addFilled("nodes", nodes)
	return nil
}

func (f formatter) principalValue(n *quoratev1.Node, principal *quoratev1.PrincipalLimit) (value, error) {
	v := value{kind: kindMap}
	v.addFilled("users", namesValue(principal.GetUsers()))
	v.addFilled("groups", namesValue(principal.GetGroups()))
	limits, err := f.limitsValue(n, principal.GetLimits())
	if err != nil {
		return value{}, err
	}
	for resource, limit := range principal.GetLimits() {
		if !isBound(limit) {
			return value{}, fmt.Errorf("node %q has a limit of %q for users or groups that is neither an amount nor unlimited",
				n.GetPath(), resource)
		}
	}
	v.addFilled("limits", limits)
	if err := addBound(&v, "applications", principal.GetApplications()); err != nil {
		return value{}, fmt.Errorf("node %q: %w", n.GetPath(), err)
	}
	v.addText("description", principal.GetDescription())
	return v, nil
}

// addBound leaves out no limit.
func addBound(v *value, key string, limit *quoratev1.Limit) error {
	if limit == nil {
		return nil
	}
	if !isBound(limit) {
		return fmt.Errorf("%s is neither an amount nor unlimited", key)
	}
	v.addEntry(key, value{text: FormatLimit(limit, quoratev1.Unit_UNIT_COUNT), plain: true})
	return nil
}

func (f formatter) limitsValue(n *quoratev1.Node, limits map[string]*quoratev1.Limit) (value, error) {
	v := value{kind: kindMap}
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		unit, registered := f.units[name]
		if !registered {
			return value{}, fmt.Errorf("node %q limits %q, which is not registered", n.GetPath(), name)
		}
		v.addEntry(name, value{text: FormatLimit(limits[name], unit), plain: true})
	}
	return v, nil
}

func textsValue(texts map[string]string) value {
	v := value{kind: kindMap}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		v.addEntry(name, value{text: texts[name]})
	}
	return v
}

func namesValue(names []string) value {
	v := value{kind: kindList}
	for _, name := range names {
		v.items = append(v.items, value{text: name})
	}
	return v
}
