package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// A map of up to flowLevels levels is written on one line, {limits: {cores: 20}}, if that stays below flowWidth bytes.
const (
	flowLevels = 2
	flowWidth  = 100
)

// plainText is what every reader of YAML takes for a text without quotes, except for the words that old ones know.
var (
	plainText = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.@+/-]*$`)
	yamlWords = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|true|false|null)$`)
)

// Format writes trees as Parse reads them: sorted by name, nodes under their parents. The same trees give the same text,
// in whatever order their parts come.
//
// It is an error if Parse could not read the same trees back, for example because a node's parent is missing.
func Format(trees []*quoratev1.Tree) ([]byte, error) {
	all := value{isMap: true}
	for _, t := range trees {
		v, err := treeValue(t)
		if err != nil {
			return nil, fmt.Errorf("tree %q: %w", t.GetName(), err)
		}
		all.entries = append(all.entries, entry{key: t.GetName(), value: v})
	}
	slices.SortFunc(all.entries, func(a, b entry) int { return cmp.Compare(a.key, b.key) })

	var text strings.Builder
	write(&text, 0, []entry{{key: "trees", value: all}})
	if _, err := Parse("formatted", []byte(text.String())); err != nil {
		return nil, fmt.Errorf("these trees make no manifest: %w", err)
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
	families, err := familiesOf(t.GetNodes())
	if err != nil {
		return value{}, err
	}
	root := &quoratev1.Node{Policy: t.GetPolicy(), Limits: t.GetLimits(), Labels: t.GetLabels()}
	v, err := nodeValue(root, families, units)
	if err != nil {
		return value{}, err
	}
	resources := value{isMap: true}
	for _, name := range slices.Sorted(maps.Keys(units)) {
		unit := value{isMap: true, entries: []entry{{key: "unit", value: value{text: UnitName(units[name])}}}}
		resources.entries = append(resources.entries, entry{key: name, value: unit})
	}
	rest := slices.IndexFunc(v.entries, func(e entry) bool { return e.key == "limits" || e.key == "nodes" })
	if rest < 0 {
		rest = len(v.entries)
	}
	v.entries = slices.Insert(v.entries, rest, entry{key: "resources", value: resources})
	return v, nil
}

// familiesOf gives the children of every path, sorted; those of the root have the empty path.
func familiesOf(nodes []*quoratev1.Node) (map[string][]*quoratev1.Node, error) {
	known := map[string]bool{"": true}
	for _, n := range nodes {
		if known[n.GetPath()] {
			return nil, fmt.Errorf("node %q is listed twice", n.GetPath())
		}
		known[n.GetPath()] = true
	}
	families := map[string][]*quoratev1.Node{}
	for _, n := range nodes {
		parent, _ := split(n.GetPath())
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

// split gives a path's parent, empty for the root, and its last name.
func split(path string) (parent, name string) {
	slash := strings.LastIndexByte(path, '/')
	return path[:max(slash, 0)], path[slash+1:]
}

func nodeValue(
	n *quoratev1.Node, families map[string][]*quoratev1.Node, units map[string]quoratev1.Unit,
) (value, error) {
	v := value{isMap: true}
	if n.GetPolicy() != "" {
		v.add("policy", value{text: n.GetPolicy()})
	}
	labels := value{isMap: true}
	for _, name := range slices.Sorted(maps.Keys(n.GetLabels())) {
		labels.add(name, value{text: n.GetLabels()[name]})
	}
	v.addMap("labels", labels)
	limits := value{isMap: true}
	for _, name := range slices.Sorted(maps.Keys(n.GetLimits())) {
		unit, registered := units[name]
		if !registered {
			return value{}, fmt.Errorf("node %q limits %q, which is not registered", n.GetPath(), name)
		}
		limits.add(name, value{text: FormatLimit(n.GetLimits()[name], unit), plain: true})
	}
	v.addMap("limits", limits)
	nodes := value{isMap: true}
	for _, child := range families[n.GetPath()] {
		c, err := nodeValue(child, families, units)
		if err != nil {
			return value{}, err
		}
		_, name := split(child.GetPath())
		nodes.add(name, c)
	}
	v.addMap("nodes", nodes)
	return v, nil
}

func (v *value) add(key string, child value) {
	v.entries = append(v.entries, entry{key: key, value: child})
}

// addMap leaves empty maps out.
func (v *value) addMap(key string, child value) {
	if len(child.entries) > 0 {
		v.add(key, child)
	}
}

// write puts each entry on a line of its own, short maps included.
func write(text *strings.Builder, depth int, entries []entry) {
	for _, e := range entries {
		start := strings.Repeat("  ", depth) + quoted(e.key) + ":"
		text.WriteString(start)
		line, flows := flow(e.value, flowLevels)
		if flows && (len(start)+len(line) < flowWidth || len(e.value.entries) == 0) {
			text.WriteString(" " + line + "\n")
			continue
		}
		text.WriteString("\n")
		write(text, depth+1, e.value.entries)
	}
}

// flow writes a text, or a map of so many levels, for one line.
func flow(v value, levels int) (string, bool) {
	switch {
	case v.plain:
		return v.text, true
	case !v.isMap:
		return quoted(v.text), true
	case levels == 0:
		return "", false
	}
	parts := make([]string, len(v.entries))
	for i, e := range v.entries {
		inner, flows := flow(e.value, levels-1)
		if !flows {
			return "", false
		}
		parts[i] = quoted(e.key) + ": " + inner
	}
	return "{" + strings.Join(parts, ", ") + "}", true
}

func quoted(text string) string {
	if plainText.MatchString(text) && !yamlWords.MatchString(text) || !utf8.ValidString(text) {
		return text // what is not UTF-8 is left for Parse to refuse
	}
	return strconv.Quote(text)
}
