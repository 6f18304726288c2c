package keystone

import (
	"cmp"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat"
)

// maxPath bounds the way up; deeper trees are refused anyway.
const maxPath = 1024

type place struct {
	path, name string
	parent     string // its id; empty for those directly below the root
}

func (p *place) newNode(id string) *quoratev1.Node {
	n := &quoratev1.Node{Path: p.path}
	if p.name != "" {
		n.Labels = map[string]string{NameLabel: compat.Label(p.name)}
	}
	if part := p.path[strings.LastIndexByte(p.path, '/')+1:]; part != id {
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		n.Labels[IDLabel] = compat.Label(id)
	}
	return n
}

// placeProjects finds the place of every project below its parent. Domains that only projects name get places too.
func (c *converter) placeProjects(projects []numbered[project]) {
	c.listed = len(projects) > 0
	listed := map[string]*project{}
	for i := range projects {
		switch p := &projects[i].entry; {
		case p.ID == "":
			c.problems.Add("project %d has no id", projects[i].number)
		case listed[p.ID] != nil:
			c.problems.Add("project %q is listed twice", p.ID)
		default:
			listed[p.ID] = p
		}
	}
	for _, p := range projects {
		if domain := textOf(p.entry.Domain); domain != "" && listed[domain] == nil {
			listed[domain] = &project{ID: domain, IsDomain: true}
			c.conversion.Note("domain %q is not listed itself; it has no name", domain)
			c.findPath(domain, listed, nil)
		}
	}
	for _, p := range projects {
		if p.entry.ID != "" {
			c.findPath(p.entry.ID, listed, nil)
		}
	}
}

// findPath finds the path of a project from that of its parent; below are the projects whose path needs it.
func (c *converter) findPath(id string, listed map[string]*project, below map[string]bool) string {
	if known := c.places[id]; known != nil {
		return known.path
	}
	p := listed[id]
	name, err := compat.Name(id)
	if err != nil {
		c.problems.Add("project %.80q: %v", id, err)
	}
	found := &place{path: name, name: p.Name}
	parent := cmp.Or(textOf(p.Parent), textOf(p.Domain))
	switch {
	case p.IsDomain || parent == "":
	case listed[parent] == nil:
		c.problems.Add("project %q has the parent %q, which is not listed", id, parent)
	case below[parent] || parent == id:
		c.problems.Add("project %q is its own ancestor", id)
	default:
		if below == nil {
			below = map[string]bool{}
		}
		below[id] = true
		if len(below) > maxPath {
			c.problems.Add("project %q is too deep", id)
			break
		}
		found.path, found.parent = c.findPath(parent, listed, below)+"/"+name, parent
	}
	c.places[id] = found
	return found.path
}

// ensurePlace puts a project or domain with a limit directly below the root if its parent is unknown.
func (c *converter) ensurePlace(what, id string) bool {
	if c.places[id] != nil {
		return true
	}
	name, err := compat.Name(id)
	if err != nil {
		c.problems.Add("%s: %v", what, err)
		return false
	}
	if c.listed {
		c.conversion.Note("%s: %q is not among the projects; it stands directly below the root", what, id)
	}
	c.places[id] = &place{path: name}
	return true
}
