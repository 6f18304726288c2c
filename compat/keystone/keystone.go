// Package keystone converts the unified limits of OpenStack's Keystone.
package keystone

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat"
)

// Labels of what comes out, for names that had to change and names that ids hide.
const (
	// ServiceLabel is the label of a tree with the id of its service, where that is not a valid name here.
	ServiceLabel = "keystone/service"
	// IDLabel is the label of a node with its original id, where that is not a valid name here.
	IDLabel = "keystone/id"
	// NameLabel is the label of a node with the name of its project or domain, as far as it is given.
	NameLabel = "keystone/name"
)

const (
	policy    = "capped"
	unlimited = -1
	// maxResourceName is Keystone's bound, in characters.
	maxResourceName = 255
	// twoLevels is how deep the model strict_two_level goes: a domain or project, and projects below it.
	twoLevels = 2
)

// Convert reads JSON documents with the keys registered_limits, limits and projects, as the API answers lists of them:
// all in one document, or several one after the other; and lists of the same as "openstack … list -f json" prints
// them. Each service becomes a tree under the policy "capped".
// Registered limits become resources and the defaults of the root; limits become limits of nodes, -1 unlimited and 0
// nothing.
//
// With projects (id, name, parent_id, domain_id, is_domain), nodes stand below their parents and domains; without, all
// stand directly below the root. A resource of a region is called "region/resource"; a colon in a name becomes a dot.
func Convert(data []byte) (*compat.Conversion, error) {
	if err := compat.CheckSize(data); err != nil {
		return nil, err
	}
	parts, err := compat.Documents(data)
	if err != nil {
		return nil, err
	}
	c := &converter{
		conversion: &compat.Conversion{},
		registered: map[key]string{},
		services:   map[string]*service{},
		places:     map[string]*place{},
	}
	all := c.mergeDocuments(parts)
	registered := decodeEntries[registeredLimit](c, "registered limit", all.Registered)
	for _, r := range registered {
		c.registerResource(
			fmt.Sprintf("registered limit %d (%s, %s)", r.number, r.entry.Service, r.entry.Resource), r.entry)
	}
	c.placeProjects(decodeEntries[project](c, "project", all.Projects))
	limits := decodeEntries[projectLimit](c, "limit", all.Limits)
	seen := map[string]int{}
	for _, l := range limits {
		c.convertLimit(limitName(l), l.number, l.entry, seen)
	}
	for _, l := range limits {
		c.checkLevel(limitName(l), l.entry)
	}
	c.addNotes(registered, limits)
	return c.buildTrees()
}

// limitName is how problems and notes name a limit.
func limitName(l numbered[projectLimit]) string {
	return fmt.Sprintf("limit %d (%s, %s)", l.number, l.entry.Service, l.entry.Resource)
}

type key struct{ service, region, resource string }

// service is a tree in the making.
type service struct {
	tree  *quoratev1.Tree
	names map[string]key // of the resources, so that no two become one
	// limits by id of the project or domain, and by resource
	limits map[string]map[string]*quoratev1.Limit
}

// converter gathers services and places.
type converter struct {
	conversion *compat.Conversion
	problems   compat.Problems
	registered map[key]string // our names of the resources
	services   map[string]*service
	places     map[string]*place
	listed     bool // true if projects are given
	tables     bool // true if a document is a list as the command openstack prints it
}

func (c *converter) mergeDocuments(parts []json.RawMessage) documents {
	var all documents
	for i, part := range parts {
		if part[0] == '[' {
			c.mergeTable(&all, i+1, part)
			continue
		}
		var d documents
		if err := json.Unmarshal(part, &d); err != nil {
			c.problems.Add("document %d: %s", i+1, compat.Unreadable(err))
			continue
		}
		if d.Registered == nil && d.Limits == nil && d.Projects == nil {
			c.problems.Add("document %d has none of the lists registered_limits, limits and projects", i+1)
		}
		if d.Truncated {
			c.problems.Add("document %d is truncated: get the whole list", i+1)
		}
		all.Registered = append(all.Registered, d.Registered...)
		all.Limits = append(all.Limits, d.Limits...)
		all.Projects = append(all.Projects, d.Projects...)
	}
	if len(all.Registered) == 0 && len(c.problems) == 0 && c.tables {
		c.registerNamed(&all)
	}
	if len(all.Registered) == 0 && len(c.problems) == 0 {
		c.problems.Add("registered_limits is missing or empty; every limit refers to an entry in it")
	}
	return all
}

func (c *converter) registerResource(what string, r registeredLimit) {
	k := key{r.Service, textOf(r.Region), r.Resource}
	if _, again := c.registered[k]; again {
		c.problems.Add("%s is listed twice", what)
		return
	}
	name, ok := c.resourceName(what, k)
	if !ok {
		return
	}
	c.registered[k] = name
	limit, err := limitOf(r.Default)
	if err != nil {
		c.problems.Add("%s: %v", what, err)
	}
	s, ok := c.serviceOf(what, r.Service)
	if !ok {
		return
	}
	if other, taken := s.names[name]; taken {
		c.problems.Add("%s would be named %q, but %s already has that name", what, name, other.resource)
		return
	}
	s.names[name] = k
	s.tree.Resources = append(s.tree.Resources, &quoratev1.Resource{Name: name, Unit: quoratev1.Unit_UNIT_COUNT})
	s.tree.Defaults[name] = limit
}

// resourceName makes a valid name here: names of Nova, such as class:VCPU, have a colon that ours may not have.
func (c *converter) resourceName(what string, k key) (string, bool) {
	if n := len([]rune(k.resource)); n == 0 || n > maxResourceName {
		c.problems.Add("%s: resource_name has %d characters; allowed are 1 to %d", what, n, maxResourceName)
		return "", false
	}
	name := strings.ReplaceAll(k.resource, ":", ".")
	if k.region != "" {
		name = k.region + "/" + name
	}
	if !compat.IsResource(name) {
		c.problems.Add("%s: %.80q is not a valid resource name: use 1 to 63 letters, digits and _ . / -", what,
			name)
		return "", false
	}
	if strings.Contains(k.resource, ":") {
		c.conversion.Note("%s is renamed to %q: resource names cannot contain colons", what, name)
	}
	return name, true
}

func (c *converter) serviceOf(what, id string) (*service, bool) {
	if s, found := c.services[id]; found {
		return s, true
	}
	name, err := compat.Name(id)
	if err != nil {
		c.problems.Add("%s: service_id: %v", what, err)
		return nil, false
	}
	s := &service{
		tree:   &quoratev1.Tree{Name: name, Policy: policy, Defaults: map[string]*quoratev1.Limit{}},
		names:  map[string]key{},
		limits: map[string]map[string]*quoratev1.Limit{},
	}
	if name != id {
		s.tree.Labels = map[string]string{ServiceLabel: compat.Label(id)}
	}
	c.services[id] = s
	return s, true
}

func (c *converter) convertLimit(what string, number int, l projectLimit, seen map[string]int) {
	k := key{l.Service, textOf(l.Region), l.Resource}
	name, registered := c.registered[k]
	if !registered {
		c.problems.Add("%s: Unable to create a limit that has no corresponding registered limit.", what)
		return
	}
	id := textOf(l.Project) + textOf(l.Domain)
	if (textOf(l.Project) == "") == (textOf(l.Domain) == "") {
		c.problems.Add("%s: exactly one of project_id and domain_id must be given", what)
		return
	}
	limit, err := limitOf(l.Limit)
	if err != nil {
		c.problems.Add("%s: %v", what, err)
		return
	}
	same := fmt.Sprintf("%q %q", k, id)
	if before, again := seen[same]; again {
		c.problems.Add("%s: limit %d already sets this resource for %q", what, before, id)
		return
	}
	seen[same] = number
	s := c.services[l.Service]
	if !c.ensurePlace(what, id) || s == nil {
		return
	}
	if s.limits[id] == nil {
		s.limits[id] = map[string]*quoratev1.Limit{}
	}
	s.limits[id][name] = limit
}

// buildTrees puts every place into the tree of every service, since a claim needs a node: under "capped" unknown ones
// are refused.
func (c *converter) buildTrees() (*compat.Conversion, error) {
	if err := c.problems.Err(); err != nil {
		return nil, err
	}
	ids := slices.Sorted(maps.Keys(c.places))
	for _, id := range slices.Sorted(maps.Keys(c.services)) {
		s := c.services[id]
		for _, place := range ids {
			n := c.places[place].newNode(place)
			n.Limits = s.limits[place]
			s.tree.Nodes = append(s.tree.Nodes, n)
		}
		c.conversion.Trees = append(c.conversion.Trees, s.tree)
	}
	if err := compat.Bounds(c.conversion.Trees).Err(); err != nil {
		return nil, err
	}
	compat.Sort(c.conversion.Trees)
	return c.conversion, nil
}

// addNotes notes what is lost, and what the choice of projects means.
func (c *converter) addNotes(registered []numbered[registeredLimit], limits []numbered[projectLimit]) {
	described := 0
	for _, r := range registered {
		described += min(1, len(textOf(r.entry.Description)))
	}
	for _, l := range limits {
		described += min(1, len(textOf(l.entry.Description)))
	}
	if described > 0 {
		c.conversion.Note("%d descriptions of limits are not kept", described)
	}
	if !c.listed {
		c.conversion.Note(
			"no projects are given: only those with a limit of their own become nodes, all directly below " +
				"the root; claims of others are refused until they are added")
		return
	}
	c.conversion.Note("a domain or project without a limit of its own is held to the default, with everything below " +
		"it, as in the model strict_two_level; in the flat model, leave the projects out")
	for _, id := range slices.Sorted(maps.Keys(c.places)) {
		if depth := strings.Count(c.places[id].path, "/") + 1; depth > twoLevels {
			c.conversion.Note("project %q is at depth %d; the model strict_two_level allows at most %d", id, depth,
				twoLevels)
		}
	}
}
