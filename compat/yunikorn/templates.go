package yunikorn

import (
	"maps"
	"slices"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat"
)

// Policies of nodes: below a queue where placement rules make queues, claims make nodes.
const (
	policyFixed   = "capped"
	policyDynamic = "project"
)

func (c *converter) policyOf(n *node) string {
	if c.creating[n] {
		return policyDynamic
	}
	return policyFixed
}

// queuesThatCreate are the queues directly below which a placement rule can make queues.
func queuesThatCreate(rules []placementRule, root *node) map[*node]bool {
	creating := map[*node]bool{}
	for i := range rules {
		t, legal := fixedTarget(&rules[i])
		if !rules[i].Create || !legal {
			continue
		}
		n, whole := root.lowestOf(t.path)
		if n.isLeaf() || whole && !t.dynamic {
			continue
		}
		creating[n] = true
		if whole && dynamicLevels(&rules[i]) > 1 {
			n.markParents(creating)
		}
	}
	return creating
}

// dynamicLevels counts the levels that a rule names by the application. The rule provided takes a path of any length.
func dynamicLevels(rule *placementRule) int {
	levels := 0
	for r := rule; r != nil; r = r.Parent {
		switch r.Name {
		case "fixed":
		case "provided":
			levels += 2
		default:
			levels++
		}
	}
	return levels
}

// lowestOf follows a path from root as far as there are queues; true if to its end.
func (n *node) lowestOf(path string) (*node, bool) {
	parts := strings.Split(strings.ToLower(path), ".")
	for _, part := range parts[1:] {
		at := slices.IndexFunc(n.children, func(child *node) bool { return strings.EqualFold(child.Name, part) })
		if at < 0 {
			return n, false
		}
		n = n.children[at]
	}
	return n, true
}

func (n *node) isLeaf() bool { return n.depth > 0 && !n.Parent && len(n.children) == 0 }

// markParents marks the queues below that are not leaves.
func (n *node) markParents(marked map[*node]bool) {
	for _, child := range n.children {
		if !child.isLeaf() {
			marked[child] = true
			child.markParents(marked)
		}
	}
}

// surroundings are what a queue has from the levels above it.
type surroundings struct {
	policy string
	// template is the maximum of queues that are made at run time, and path its place in the file; nil if there is none.
	template     *reading
	templatePath string
	// defaults are what unset limits mean.
	defaults map[string]*quoratev1.Limit
	// most are the smallest maxima.
	most amounts
}

// applySurroundings sets the policy of a node, its defaults, and limits that keep the defaults above it away from a
// configured queue, for which templates do not count. It returns the surroundings of the queues below.
func (c *converter) applySurroundings(n *node, converted *quoratev1.Node, above surroundings) surroundings {
	below := surroundings{
		policy: c.policyOf(n), template: above.template, templatePath: above.templatePath,
		defaults: maps.Clone(above.defaults), most: maps.Clone(above.most),
	}
	if below.policy != above.policy {
		converted.Policy = below.policy
	}
	for kind, bound := range above.defaults {
		if converted.GetLimits()[kind] == nil && !bound.GetUnlimited() {
			setLimit(&converted.Limits, kind, limitOf(above.most, kind))
		}
	}
	if !n.max.amounts.isZero() {
		for kind, amount := range n.max.amounts {
			if most, limited := below.most[kind]; !limited || amount < most {
				below.most[kind] = min(amount, compat.MaxAmount)
			}
		}
	}
	if n.isLeaf() {
		c.noteIf(n.ChildTemplate.isGiven(), n.path+".childtemplate", n.name,
			"the template of a leaf is ignored, as in YuniKorn")
		return below
	}
	c.readTemplate(n, &below)
	wanted := map[string]*quoratev1.Limit{}
	if below.template != nil && c.creating[n] {
		for kind, amount := range c.convertAmounts(below.template, below.templatePath, n.name) {
			wanted[kind] = compat.AtMost(amount)
		}
	}
	for kind, bound := range above.defaults {
		if wanted[kind] == nil && !bound.GetUnlimited() {
			wanted[kind] = compat.NoLimit()
		}
	}
	for kind, limit := range wanted {
		if inherited := above.defaults[kind]; inherited == nil || inherited.GetUnlimited() ||
			inherited.GetAmount() != limit.GetAmount() {
			setLimit(&converted.Defaults, kind, limit)
			below.defaults[kind] = limit
		}
	}
	return below
}

func (t childTemplate) isGiven() bool {
	return t.MaxApplications > 0 || len(t.Properties)+len(t.Resources.Max)+len(t.Resources.Guaranteed) > 0
}

// readTemplate takes over the template of a queue, if it has one. Parts that have no meaning here are notes.
func (c *converter) readTemplate(n *node, below *surroundings) {
	t, path := n.ChildTemplate, n.path+".childtemplate"
	if !t.isGiven() {
		return
	}
	below.templatePath = path + ".resources.max"
	below.template = readAmounts(t.Resources.Max, below.templatePath, n.name)
	if below.template.amounts.isZero() && len(below.template.wrong) == 0 {
		below.template = nil // as in YuniKorn
	}
	if len(c.creating) == 0 {
		c.addNote(path, n.name, "the template is ignored: no placement rule makes queues (create: true)")
		below.template = nil
		return
	}
	if below.template != nil {
		c.reportUnread(below.template)
	}
	c.noteIf(t.MaxApplications > 0, path+".maxapplications", n.name,
		"ignored: a node that a request makes has no maximum of applications")
	c.noteIf(len(t.Properties) > 0, path+".properties", n.name, "properties are ignored")
	c.noteIf(len(t.Resources.Guaranteed) > 0, path+".resources.guaranteed", n.name, "guarantees are not enforced")
}

func setLimit(limits *map[string]*quoratev1.Limit, kind string, limit *quoratev1.Limit) {
	if *limits == nil {
		*limits = map[string]*quoratev1.Limit{}
	}
	(*limits)[kind] = limit
}

func limitOf(most amounts, kind string) *quoratev1.Limit {
	if amount, limited := most[kind]; limited {
		return compat.AtMost(amount)
	}
	return compat.NoLimit()
}
