package quotatest_test

import (
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// configuration is all that is configured at some revision. Every configured node has an identity, by tree and path.
type configuration struct {
	trees map[string]quota.TreeSpec
	ids   map[string]map[string]int
	// named are the trees that the change names that made it, in order.
	named []string
}

func (c configuration) clone() configuration {
	return configuration{trees: maps.Clone(c.trees), ids: maps.Clone(c.ids)}
}

// pathOf is where a node of a tree stands, if it does.
func (c configuration) pathOf(tree string, id int) (string, bool) {
	for path, there := range c.ids[tree] {
		if there == id {
			return path, true
		}
	}
	return "", false
}

// configure carries out a change of configuration that plan answers: what it should do, and the configuration
// afterwards.
func (o *oracle) configure(m quota.ChangeMeta, plan func() (verdict, configuration)) verdict {
	if len(m.Actor) > quota.MaxActor || len(m.Reason) > quota.MaxReason || m.RequestID != "" && !idPattern.MatchString(m.RequestID) {
		return refusal(quota.Invalid, "")
	}
	for _, r := range o.history {
		switch {
		case m.RequestID == "" || r.RequestID != m.RequestID:
		case r.Fingerprint != m.Fingerprint:
			return refusal(quota.IDTaken, "")
		default:
			return verdict{configured: true, repeated: true, revision: r.Number, changes: r.Changes}
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
	if kind := o.forbids(m, after.named, v.changes); kind != 0 {
		return refusal(kind, "")
	}
	if len(v.changes) > 0 {
		o.become(after)
		o.revision++
		o.history = append(o.history, quota.Revision{
			Number: o.revision, Actor: m.Actor, Reason: m.Reason, RequestID: m.RequestID, Fingerprint: m.Fingerprint,
			Wall: o.now.Wall, Changes: v.changes, ChangeCount: len(v.changes),
		})
		o.history = o.history[max(0, len(o.history)-o.bounds.Revisions):]
		o.past[o.revision] = after
	}
	v.revision = o.revision
	return v
}

// become takes over a configuration; what is held goes where its nodes are.
func (o *oracle) become(after configuration) {
	for _, g := range o.held() {
		for i, c := range g.request.Claims {
			g.placed[i], _ = o.moved(after, c.Tree, g.placed[i])
		}
	}
	o.configuration = after
}

// moved is where a place is in another configuration: that of its nearest configured node, and what was made on demand
// below that. It is nowhere if the node is gone, or if another node of before stands in the way.
func (o *oracle) moved(after configuration, tree, path string) (string, bool) {
	anchor := path
	for nodeOf(o.trees[tree], anchor) == nil {
		anchor = above(anchor)
	}
	to, there := after.pathOf(tree, o.ids[tree][anchor])
	made := strings.TrimPrefix(strings.TrimPrefix(path, anchor), "/")
	for _, name := range strings.FieldsFunc(made, func(r rune) bool { return r == '/' }) {
		to = strings.TrimPrefix(to+"/"+name, "/")
		if id, taken := after.ids[tree][to]; taken {
			if _, old := o.pathOf(tree, id); old {
				return "", false
			}
		}
	}
	return to, there
}

// after is the oracle as it would be with another configuration.
func (o *oracle) after(next configuration) *oracle {
	is := *o
	is.grants = nil
	for _, g := range o.grants {
		copied := *g
		copied.placed = slices.Clone(g.placed)
		is.grants = append(is.grants, &copied)
	}
	is.become(next)
	return &is
}
