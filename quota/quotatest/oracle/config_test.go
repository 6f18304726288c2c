package oracle

import (
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// configuration is all that is configured at some revision. Every configured node has an identity, by tree and path.
type configuration struct {
	trees    map[string]quota.TreeSpec
	ids      map[string]map[string]int
	policies map[string]quota.PolicySpec
	// named are the trees that the change names that made it, in order, and then the affected ones: those that it does
	// not name and that get other rules.
	named, affected []string
}

func (c configuration) clone() configuration {
	return configuration{trees: maps.Clone(c.trees), ids: maps.Clone(c.ids), policies: c.policies}
}

// pathOf is the path of a node of a tree, if it exists.
func (c configuration) pathOf(tree string, id int) (string, bool) {
	for path, other := range c.ids[tree] {
		if other == id {
			return path, true
		}
	}
	return "", false
}

// replaced is the configuration with another specification of a tree. ids has the identities of nodes that continue,
// by their paths in it; the others are new.
func (o *oracle) replaced(now configuration, spec quota.TreeSpec, ids map[string]int) configuration {
	next := now.clone()
	spec.Moves = nil
	spec.Nodes = slices.Clone(spec.Nodes)
	slices.SortFunc(spec.Nodes, func(a, b quota.NodeSpec) int { return comparePaths(a.Path, b.Path) })
	next.trees[spec.Name], next.ids[spec.Name] = spec, map[string]int{}
	next.named = []string{spec.Name}
	for _, n := range spec.Nodes {
		id, known := ids[n.Path]
		if !known {
			o.lastID++
			id = o.lastID
		}
		next.ids[spec.Name][n.Path] = id
	}
	return next
}

func removed(now configuration, tree string) configuration {
	next := now.clone()
	delete(next.trees, tree)
	delete(next.ids, tree)
	return next
}

// configure carries out a change of configuration that plan answers: what it should do, and the configuration
// afterwards.
func (o *oracle) configure(m quota.ChangeMeta, plan func() (verdict, configuration)) verdict {
	if len(m.Actor) > quota.MaxActor || len(m.Reason) > quota.MaxReason || m.RequestID != "" &&
		!requestPattern.MatchString(m.RequestID) {
		return refusal(quota.Invalid, "")
	}
	for _, r := range o.history {
		switch {
		case m.RequestID == "" || r.RequestID != m.RequestID:
		case r.Fingerprint != m.Fingerprint:
			return refusal(quota.IDTaken, "")
		default:
			return verdict{configured: true, repeated: true, revision: r.Number, changes: withoutItemTexts(r.Changes)}
		}
	}
	if m.ExpectedRevision != nil && *m.ExpectedRevision != o.revision {
		return refusal(quota.RevisionMismatch, "")
	}
	v, after := plan()
	if v.refused != 0 {
		return v
	}
	v.configured, v.changes = true, changesOf(o.configuration, after)
	if kind := o.permission(m, after, v.changes); kind != 0 {
		return refusal(kind, "")
	}
	if len(v.changes) > 0 {
		o.commit(m, after, v.changes)
	}
	v.revision = o.revision
	return v
}

// commit makes a configuration the present one.
func (o *oracle) commit(m quota.ChangeMeta, after configuration, changes []quota.Change) {
	before := o.trees
	for _, name := range after.named {
		if o.hasOtherRules(after, name) {
			o.markChanged(name)
		}
	}
	o.install(after)
	o.configureItems(before)
	for _, c := range changes {
		o.markChanged(c.Tree)
	}
	o.revision++
	o.history = append(o.history, quota.Revision{
		Number: o.revision, Actor: m.Actor, Reason: m.Reason, RequestID: m.RequestID, Fingerprint: m.Fingerprint,
		Wall: o.now.Wall, Changes: changes, ChangeCount: len(changes),
	})
	o.history = o.history[max(0, len(o.history)-o.bounds.Revisions):]
	o.past[o.revision] = after
}

// install takes over a configuration; what is held follows its nodes, and is counted where it belongs if it cannot
// borrow any more where it did.
func (o *oracle) install(after configuration) {
	wasLeaf := o.leaves()
	for _, a := range o.held() {
		for i, c := range a.request.Claims {
			a.claimed[i], _ = o.movedPath(after, c.Tree, a.claimed[i])
			a.placed[i], _ = o.movedPath(after, c.Tree, a.placed[i])
		}
	}
	o.configuration = after
	for _, name := range after.named {
		o.rehomeClaims(name, wasLeaf)
	}
}

// movedPath is the path of a node in another configuration: that of its nearest configured node, and the dynamic nodes
// below that. There is none if the configured node is gone, or if another node of before is in the way.
func (o *oracle) movedPath(after configuration, tree, path string) (string, bool) {
	anchor := path
	for quotatest.FindNode(o.trees[tree], anchor) == nil {
		anchor = quotatest.Above(anchor)
	}
	to, exists := after.pathOf(tree, o.ids[tree][anchor])
	dynamic := strings.TrimPrefix(strings.TrimPrefix(path, anchor), "/")
	for _, name := range strings.FieldsFunc(dynamic, func(r rune) bool { return r == '/' }) {
		to = strings.TrimPrefix(to+"/"+name, "/")
		if id, taken := after.ids[tree][to]; taken {
			if _, old := o.pathOf(tree, id); old {
				return "", false
			}
		}
	}
	return to, exists
}

// after is the oracle as it would be with another configuration, but for items.
func (o *oracle) after(next configuration) *oracle {
	is := *o
	is.allocations = nil
	for _, a := range o.allocations {
		copied := *a
		copied.claimed, copied.placed = slices.Clone(a.claimed), slices.Clone(a.placed)
		copied.arrivals = slices.Clone(a.arrivals)
		is.allocations = append(is.allocations, &copied)
	}
	is.install(next)
	return &is
}

// configuredLimit is the limit that a node has of its own.
func configuredLimit(spec quota.TreeSpec, path, resource string) quota.Limit {
	if n := quotatest.FindNode(spec, path); n != nil {
		for _, l := range n.Limits {
			if l.Resource == resource {
				return l.Limit
			}
		}
	}
	return quota.Limit{}
}

// effective is the limit that is set, or the nearest default from above, or what the policy makes of none.
func (c configuration) effective(spec quota.TreeSpec, path, resource string) quota.Limit {
	if l := configuredLimit(spec, path, resource); l.Kind != quota.Unset {
		return l
	}
	for _, p := range quotatest.Upwards(path)[1:] {
		if n := quotatest.FindNode(spec, p); n != nil {
			for _, d := range n.Defaults {
				if d.Resource == resource {
					return d.Limit
				}
			}
		}
	}
	if c.rulesAt(spec, path).Unset == "zero" {
		return quota.AtMost(0)
	}
	return quota.NoLimit()
}
