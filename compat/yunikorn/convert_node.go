package yunikorn

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat"
)

func (c *converter) convertNode(n *node, path string) *quoratev1.Node {
	c.noteIgnored(n)
	converted := &quoratev1.Node{
		Path:         path,
		Applications: c.convertCount(n.MaxApplications, n.path+".maxapplications", n.name),
	}
	if n.max.amounts.isZero() {
		c.noteIf(len(n.max.amounts) > 0, n.path+".resources.max", n.name,
			"a max whose values are all 0 is dropped, as in YuniKorn")
	} else {
		converted.Limits = map[string]*quoratev1.Limit{}
		for kind, amount := range c.convertAmounts(n.max, n.path+".resources.max", n.name) {
			converted.Limits[kind] = compat.AtMost(amount)
		}
	}
	c.labelGuarantee(n, converted)
	if len(n.entries) > maxPrincipals {
		c.addProblem(
			n.path+".limits",
			n.name,
			ruleConvertLimit,
			"%d limits; a node may have %d",
			len(n.entries),
			maxPrincipals,
		)
	}
	for _, e := range n.entries {
		converted.Principals = append(converted.Principals, c.convertPrincipal(n, e))
	}
	return converted
}

func (c *converter) noteIgnored(n *node) {
	c.noteIf(n.AdminACL != "", n.path+".adminacl", n.name, "access lists are ignored")
	c.noteIf(n.SubmitACL != "", n.path+".submitacl", n.name, "access lists are ignored")
	c.noteIf(len(n.Properties) > 0, n.path+".properties", n.name, "properties are ignored")
	c.noteIf(n.Parent && n.depth > 0 && len(n.children) == 0 && !c.creating[n], n.path+".parent", n.name,
		"ignored: allocations may be made at every queue")
}

// labelGuarantee keeps what a queue is guaranteed as a label.
func (c *converter) labelGuarantee(n *node, converted *quoratev1.Node) {
	given := c.convertAmounts(n.guaranteed, n.path+".resources.guaranteed", n.name)
	if len(given) == 0 {
		return
	}
	var words []string
	for _, kind := range slices.Sorted(maps.Keys(given)) {
		words = append(words, fmt.Sprintf("%s=%d", kind, given[kind]))
	}
	text := strings.Join(words, " ")
	if len(text) > maxText {
		c.addNote(n.path+".resources.guaranteed", n.name,
			"ignored: guarantees are not enforced, and these are too long for a label")
		return
	}
	converted.Labels = withLabel(nil, LabelGuaranteed, text)
	c.addNote(n.path+".resources.guaranteed", n.name,
		"guarantees are not enforced; they are kept as the label %s", LabelGuaranteed)
}

func withLabel(labels map[string]string, key, value string) map[string]string {
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	return labels
}

func (c *converter) convertPrincipal(n *node, e *entry) *quoratev1.PrincipalLimit {
	for _, k := range []struct {
		kind
		names []string
	}{{users, e.Users}, {groups, e.Groups}} {
		if len(k.names) > maxPrincipals {
			c.addProblem(e.path+"."+k.key, n.name, ruleConvertLimit,
				"%d names; an entry may have %d: make several", len(k.names), maxPrincipals)
		}
		for i, name := range k.names {
			if len(name) > maxHolder {
				c.addProblem(fmt.Sprintf("%s.%s[%d]", e.path, k.key, i), n.name, ruleConvertLimit,
					"the name %q has more than %d bytes", clipText(name), maxHolder)
			}
		}
	}
	c.noteIf(len(e.Limit) > maxText, e.path+".limit", n.name, "the text is cut to %d bytes", maxText)
	return &quoratev1.PrincipalLimit{
		Users: e.Users, Groups: e.Groups,
		Description:  compat.Label(e.Limit), // binary values of YAML need not be text
		Limits:       limitsOf(c.convertAmounts(e.resources, e.path+".maxresources", n.name)),
		Applications: c.convertCount(e.MaxApplications, e.path+".maxapplications", n.name),
	}
}

// resourceNameRule says what a resource may be called.
const resourceNameRule = "1 to 63 letters, digits and _ . / -, beginning with a letter, digit or _"

// convertAmounts registers the types and keeps the amounts within what can be held; nil if there are none.
func (c *converter) convertAmounts(r *reading, path, queue string) map[string]int64 {
	var kept map[string]int64
	for _, kind := range slices.Sorted(maps.Keys(r.amounts)) {
		if kept == nil {
			kept = map[string]int64{}
		}
		if !compat.IsResource(kind) && !c.kinds[kind] {
			c.addProblem(
				path+"."+clipText(kind),
				queue,
				ruleConvertResource,
				"%q is not a name of a resource: %s",
				clipText(kind),
				resourceNameRule,
			)
		}
		c.kinds[kind] = true
		kept[kind] = min(r.amounts[kind], compat.MaxAmount)
		c.noteIf(r.amounts[kind] > compat.MaxAmount, path+"."+clipText(kind), queue,
			"%d is cut to 2^62-1, more than can be held", r.amounts[kind])
	}
	return kept
}

// convertCount takes 0 for no limit, as YuniKorn does.
func (c *converter) convertCount(applications uint64, path, queue string) *quoratev1.Limit {
	if applications == 0 {
		return nil
	}
	c.noteIf(applications > uint64(compat.MaxAmount), path, queue,
		"%d is cut to 2^62-1, more than can run", applications)
	return compat.AtMost(int64(min(applications, uint64(compat.MaxAmount))))
}

// limitsOf is nil for no amounts.
func limitsOf(amounts map[string]int64) map[string]*quoratev1.Limit {
	if amounts == nil {
		return nil
	}
	limits := make(map[string]*quoratev1.Limit, len(amounts))
	for resource, amount := range amounts {
		limits[resource] = compat.AtMost(amount)
	}
	return limits
}
