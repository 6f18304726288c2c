// Package zuul converts the tenant limits of a Nodepool configuration.
package zuul

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat"
)

const (
	// TreeName is the name of the tree that comes out.
	TreeName = "tenants"
	// TenantLabel is the label of a node with its tenant's name, where that is not a valid name here.
	TenantLabel = "zuul/tenant"

	policy     = "open"
	section    = "tenant-resource-limits"
	tenantName = "tenant-name"
	mebibyte   = 1 << 20
)

// known are Nodepool's own keys. Volume space stays a number of GB: that is how labels and requests state it, and
// Nodepool does not say whether it means 10^9 or 2^30 bytes.
var known = map[string]struct {
	resource string
	unit     quoratev1.Unit
	factor   int64
}{
	"max-servers":   {"servers", quoratev1.Unit_UNIT_COUNT, 1},
	"max-cores":     {"cores", quoratev1.Unit_UNIT_COUNT, 1},
	"max-ram":       {"ram", quoratev1.Unit_UNIT_BYTES, mebibyte},
	"max-volumes":   {"volumes", quoratev1.Unit_UNIT_COUNT, 1},
	"max-volume-gb": {"volume-gb", quoratev1.Unit_UNIT_COUNT, 1},
}

// envelope is where configurations lie in ConfigMaps.
var envelope = compat.Envelope{Keys: []string{"nodepool.yaml"}, Top: []string{section, "providers"}}

// Convert reads nodepool.yaml, also as the text in a ConfigMap: the list tenant-resource-limits becomes the tree
// "tenants" under the policy "open", with a node for each tenant. Everything else in the file is ignored with one note.
//
// Any key that is not Nodepool's own limits a resource of a provider, as in Nodepool; since a typo looks the same, each
// is noted. A tenant that is listed twice, or a key, is a problem; Nodepool silently takes the last.
func Convert(data []byte) (*compat.Conversion, error) {
	data, note, err := envelope.Open(data)
	if err != nil {
		return nil, err
	}
	root, err := compat.YAML(data)
	if err != nil {
		return nil, err
	}
	c := &converter{
		conversion: &compat.Conversion{},
		tree:       &quoratev1.Tree{Name: TreeName, Policy: policy},
		lines:      map[string]int{},
		foreign:    map[string]bool{},
	}
	if note != "" {
		c.conversion.Note("%s", note)
	}
	found := false
	var ignored []string
	if root != nil {
		for _, p := range c.problems.Pairs("the configuration", root) {
			if p.Key != section {
				ignored = append(ignored, p.Key)
				continue
			}
			found = true
			for _, item := range c.problems.Items(section, p.Value) {
				c.convertTenant(item)
			}
		}
	}
	if !found {
		c.refuseMissing(ignored)
	}
	if found && len(ignored) > 0 {
		c.conversion.Note("these parts of the file are not limits of tenants and are ignored: %s",
			strings.Join(ignored, ", "))
	}
	return c.buildTree()
}

// refuseMissing refuses a configuration without the section. Nodepool takes it as one that limits no tenant, and so
// would a failed download or a misspelled key, which delete every tenant here.
func (c *converter) refuseMissing(keys []string) {
	content := "the file is empty"
	if len(keys) > 0 {
		content = "the file has " + strings.Join(keys, ", ")
	}
	c.problems.Add("%s is missing: %s; to limit no tenant, write %s: []", section, content, section)
}

type converter struct {
	conversion *compat.Conversion
	problems   compat.Problems
	tree       *quoratev1.Tree
	lines      map[string]int  // of the tenants
	foreign    map[string]bool // the keys that are not Nodepool's own
}

// buildTree registers Nodepool's own resources even if no tenant limits them, so that requests can name them.
func (c *converter) buildTree() (*compat.Conversion, error) {
	for _, key := range slices.Sorted(maps.Keys(known)) {
		k := known[key]
		c.tree.Resources = append(c.tree.Resources, &quoratev1.Resource{Name: k.resource, Unit: k.unit})
	}
	for _, key := range slices.Sorted(maps.Keys(c.foreign)) {
		r := &quoratev1.Resource{Name: key, Unit: quoratev1.Unit_UNIT_COUNT}
		c.tree.Resources = append(c.tree.Resources, r)
	}
	c.conversion.Trees = []*quoratev1.Tree{c.tree}
	c.problems = append(c.problems, compat.Bounds(c.conversion.Trees)...)
	if err := c.problems.Err(); err != nil {
		return nil, err
	}
	compat.Sort(c.conversion.Trees)
	return c.conversion, nil
}

func (c *converter) convertTenant(item *yaml.Node) {
	pairs := c.problems.Pairs("an entry of "+section, item)
	at := slices.IndexFunc(pairs, func(p compat.Pair) bool { return p.Key == tenantName })
	if at < 0 {
		c.problems.Add("line %d: an entry of %s has no %s", item.Line, section, tenantName)
		return
	}
	tenant := c.problems.Text(tenantName, pairs[at].Value)
	if tenant == "" {
		return
	}
	if before, again := c.lines[tenant]; again {
		c.problems.Add("line %d: tenant %q is given twice; the first is in line %d", pairs[at].Line, tenant, before)
		return
	}
	c.lines[tenant] = pairs[at].Line
	path, err := compat.Name(tenant)
	if err != nil {
		c.problems.Add("line %d: tenant: %v", pairs[at].Line, err)
		return
	}
	node := &quoratev1.Node{Path: path, Limits: map[string]*quoratev1.Limit{}}
	if path != tenant {
		node.Labels = map[string]string{TenantLabel: compat.Label(tenant)}
	}
	c.tree.Nodes = append(c.tree.Nodes, node)
	for _, p := range slices.Delete(pairs, at, at+1) {
		c.convertLimit(node, tenant, p)
	}
}

func (c *converter) convertLimit(node *quoratev1.Node, tenant string, p compat.Pair) {
	what := fmt.Sprintf("%s of tenant %q", p.Key, tenant)
	k, own := known[p.Key]
	if !own {
		if !c.registerProvider(tenant, p) {
			return
		}
		k.resource, k.factor = p.Key, 1
	}
	amount := c.problems.Count(what, p.Value)
	if amount > compat.MaxAmount/k.factor {
		c.problems.Add("line %d: %s is too large: the maximum is %d", p.Line, what, compat.MaxAmount/k.factor)
		return
	}
	node.Limits[k.resource] = compat.AtMost(amount * k.factor)
}

// registerProvider registers a key as a resource of a provider, unless it is the name of one of Nodepool's own.
func (c *converter) registerProvider(tenant string, p compat.Pair) bool {
	for key, k := range known {
		if k.resource == p.Key {
			c.problems.Add("line %d: %q of tenant %q: write %s", p.Line, p.Key, tenant, key)
			return false
		}
	}
	if !compat.IsResource(p.Key) {
		c.problems.Add("line %d: %q of tenant %q is not a valid resource name: use 1 to 63 letters, digits and _ . / -",
			p.Line, p.Key, tenant)
		return false
	}
	if !c.foreign[p.Key] {
		c.conversion.Note("line %d: %q is not one of %s: it is converted as a resource of a provider; check for a typo",
			p.Line, p.Key, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
	}
	c.foreign[p.Key] = true
	return true
}
