package quotamanager

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat"
)

func (c *converter) readTree(document json.RawMessage) {
	var d treeDocument
	var named struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(document, &named) // only for messages; errors are reported below
	what := fmt.Sprintf("tree %q", named.Metadata.Name)
	if !c.decodeDocument(what, document, &d) {
		return
	}
	name, err := compat.Name(d.Metadata.Name)
	if err != nil {
		c.problems.Add("%s: metadata.name: %v", what, err)
		return
	}
	if c.byName[d.Metadata.Name] != nil {
		c.problems.Add("%s is listed twice", what)
		return
	}
	if name != d.Metadata.Name {
		c.conversion.Note("%s is renamed to %q", what, name)
	}
	b := treeBuilder{converter: c, what: what, nodes: d.Spec.Nodes, tree: &quoratev1.Tree{Name: name, Policy: policy}}
	b.addResources(d.Spec.ResourceNames)
	b.buildTree()
	c.byName[d.Metadata.Name] = b.tree
	c.conversion.Trees = append(c.conversion.Trees, b.tree)
}

type treeBuilder struct {
	*converter
	what  string
	names []string // of the resources
	nodes map[string]*nodeDocument
	tree  *quoratev1.Tree
}

func (b *treeBuilder) addResources(names []string) {
	seen := map[string]bool{}
	for _, name := range names {
		switch {
		case name == "":
			b.addFault("it is ignored", "%s: a resource has an empty name", b.what)
		case seen[name]:
			b.addFault("it counts once", "%s: resource %q is listed twice", b.what, name)
		case !compat.IsResource(name):
			b.problems.Add("%s: %q is not a valid resource name: use 1 to 63 letters, digits and _ . / -", b.what, name)
		default:
			b.names = append(b.names, name)
		}
		seen[name] = true
	}
	if len(names) == 0 {
		b.names = defaultResources
		b.conversion.Note("%s lists no resources: it has cpu, memory and nvidia.com/gpu, as in the original", b.what)
	}
	for _, name := range b.names {
		r := &quoratev1.Resource{Name: name, Unit: quoratev1.Unit_UNIT_COUNT}
		b.tree.Resources = append(b.tree.Resources, r)
	}
}

// buildTree adds the nodes from the root down. Nodes that it does not reach are faults.
func (b *treeBuilder) buildTree() {
	children := map[string][]string{}
	root := ""
	found := false
	for _, name := range slices.Sorted(maps.Keys(b.nodes)) {
		n := b.nodes[name]
		b.noteMisfits(name, n)
		switch {
		case n == nil || n.Quota == nil:
			b.problems.Add("%s: node %q has no quota: write \"quota\": {\"cpu\": \"10\"}", b.what, name)
		case n.Parent.wrong != "": // it stands nowhere
		case n.Parent.value != "" && n.Parent.value != noParent:
			children[n.Parent.value] = append(children[n.Parent.value], name)
		case found:
			b.addFault("it and what is below it are left out", "%s has the roots %q and %q", b.what, root, name)
		default:
			root, found = name, true
		}
	}
	if !found {
		b.tree.Limits = b.parseLimits("", nil)
		b.addFault("nothing fits in it", "%s has no root: one node has \"parent\": %q", b.what, noParent)
		return
	}
	b.tree.Limits = b.parseLimits(root, b.nodes[root])
	b.tree.Labels = map[string]string{RootLabel: compat.Label(root)}
	if b.isHard(root) {
		b.conversion.Note("%s: the root %q is hard, which means nothing: no node is above it", b.what, root)
	}
	reached := map[string]bool{root: true}
	b.addChildren(children, root, "", 1, reached)
	b.leftOver(reached)
}

// noteMisfits reports values of a node that are not texts: its quotas, hard, and its parent.
func (b *treeBuilder) noteMisfits(name string, n *nodeDocument) {
	if n == nil {
		return
	}
	b.noteMisfit(name, "parent", n.Parent)
	b.noteMisfit(name, "hard", n.Hard)
	for _, resource := range slices.Sorted(maps.Keys(n.Quota)) {
		b.noteMisfit(name, "the quota of "+resource, n.Quota[resource])
	}
}

func (b *treeBuilder) noteMisfit(name, what string, t text) {
	if t.wrong != "" {
		b.problems.Add(
			"error parsing tree: %s: node %q: %s is %.40s; it must be a string in quotes",
			b.what,
			name,
			what,
			t.wrong,
		)
	}
}

// addChildren adds the nodes below a parent. A name has one parent, so no node is reached twice.
func (b *treeBuilder) addChildren(
	children map[string][]string,
	parent, path string,
	depth int,
	reached map[string]bool,
) {
	for _, name := range children[parent] {
		reached[name] = true
		part, err := compat.Name(name)
		if err != nil {
			b.problems.Add("%s: node %q: %v", b.what, name, err)
			continue
		}
		n := &quoratev1.Node{Path: path + part, Hard: b.isHard(name), Limits: b.parseLimits(name, b.nodes[name])}
		if part != name {
			n.Labels = map[string]string{NodeLabel: compat.Label(name)}
		}
		b.tree.Nodes = append(b.tree.Nodes, n)
		if depth > maxDescent {
			b.problems.Add("%s: node %q is too deep: at most 16 levels are allowed below a root", b.what, name)
			continue
		}
		b.addChildren(children, name, n.GetPath()+"/", depth+1, reached)
	}
}

// maxDescent ends the way down where compat.Bounds complains anyway.
const maxDescent = 16

func (b *treeBuilder) leftOver(reached map[string]bool) {
	names := slices.Sorted(maps.Keys(b.nodes))
	cyclic := b.nodesInCycles(names)
	for _, name := range names {
		n := b.nodes[name]
		if reached[name] || n == nil || n.Quota == nil || n.Parent.value == "" || n.Parent.value == noParent {
			continue
		}
		switch _, known := b.nodes[n.Parent.value]; {
		case !known:
			b.addFault("it is left out", "%s: node %q has the unknown parent %q", b.what, name, n.Parent.value)
		case cyclic[name]:
			b.addFault("it is left out", "%s: node %q is its own ancestor", b.what, name)
		case b.Lenient:
			b.conversion.Note("%s: node %q hangs below a node that is left out, and is left out too", b.what, name)
		}
	}
}

func (b *treeBuilder) nodesInCycles(names []string) map[string]bool {
	cyclic := map[string]bool{}
	walks := map[string]int{} // the walk up on which a node was met first
	for walk, name := range names {
		for at := name; b.nodes[at] != nil; at = b.nodes[at].Parent.value {
			if first, met := walks[at]; met {
				for ; first == walk && !cyclic[at]; at = b.nodes[at].Parent.value {
					cyclic[at] = true
				}
				break
			}
			walks[at] = walk
		}
	}
	return cyclic
}

func (b *treeBuilder) isHard(name string) bool {
	text := b.nodes[name].Hard.value
	hard, err := strconv.ParseBool(text)
	if err != nil && text != "" {
		b.addFault("it is soft", "%s: node %q: hard is %q, which is not true or false", b.what, name, text)
	}
	return hard
}

// parseLimits gives every resource of the tree a limit.
func (b *treeBuilder) parseLimits(name string, n *nodeDocument) map[string]*quoratev1.Limit {
	limits := map[string]*quoratev1.Limit{}
	if n == nil {
		n = &nodeDocument{}
	}
	missing := 0
	for _, resource := range b.names {
		amount := int64(0)
		if text, found := n.Quota[resource]; !found {
			missing++
		} else if text.wrong == "" {
			amount = b.parseAmount(name, resource, text.value)
		}
		limits[resource] = compat.AtMost(amount)
	}
	if missing > 0 && n.Quota != nil {
		b.conversion.Note("%s: node %q has no quota of %d of its %d resources: they are 0, as in the original",
			b.what, name, missing, len(b.names))
	}
	for _, resource := range slices.Sorted(maps.Keys(n.Quota)) {
		if !slices.Contains(b.names, resource) {
			b.addFault("it is ignored", "%s: node %q has a quota of %q, which is not a resource of the tree",
				b.what, name, resource)
		}
	}
	return limits
}

func (b *treeBuilder) parseAmount(name, resource, text string) int64 {
	amount, err := strconv.ParseInt(text, 10, 64)
	switch what := fmt.Sprintf("%s: node %q: the quota of %s is %q", b.what, name, resource, text); {
	case amount < 0:
		b.addFault("it is 0", "%s, which is negative", what)
		return 0
	case errors.Is(err, strconv.ErrRange) || amount > compat.MaxAmount:
		b.addFault("it is the largest amount", "%s, which is more than %d", what, compat.MaxAmount)
		return compat.MaxAmount
	case err != nil:
		b.addFault("it is 0", "%s, which is not a whole number", what)
		return 0
	}
	return amount
}
