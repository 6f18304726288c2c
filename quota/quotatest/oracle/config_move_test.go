package oracle

import (
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/quotatest"
)

// renamed are the identities of nodes by their paths after some moves.
func renamed(ids map[string]int, moves []quota.Move) map[string]int {
	for _, m := range moves {
		if !existsIn(ids, m.From) || existsIn(ids, m.To) {
			continue
		}
		after := map[string]int{}
		for path, id := range ids {
			if quotatest.Below(path, m.From) {
				path = m.To + strings.TrimPrefix(path, m.From)
			}
			after[path] = id
		}
		ids = after
	}
	return ids
}

// existsIn is true if there is a node at a path or below.
func existsIn(ids map[string]int, path string) bool {
	for other := range ids {
		if quotatest.Below(other, path) {
			return true
		}
	}
	return false
}

func (o *oracle) goodMoves(moves []quota.Move) bool {
	return len(moves) <= o.bounds.Moves && !slices.ContainsFunc(moves,
		func(m quota.Move) bool { return !o.goodMove(m) })
}

func (o *oracle) goodMove(m quota.Move) bool {
	return m.From != "" && m.To != "" && o.goodPath(m.From) && o.goodPath(m.To) &&
		(m.From == m.To || !quotatest.Below(m.To, m.From))
}

// moveNode gives a node and all below it another path.
func (o *oracle) moveNode(c quota.MoveNode) (verdict, configuration) {
	spec, known := o.trees[c.Tree]
	switch {
	case !known:
		return refusal(quota.NotFound, ""), configuration{}
	case !o.goodMove(quota.Move{From: c.From, To: c.To}):
		return refusal(quota.Invalid, ""), configuration{}
	case quotatest.FindNode(spec, c.From) == nil:
		return refusal(quota.NotFound, ""), configuration{}
	case slices.Contains(o.nodesOf(c.Tree), c.To):
		return refusal(quota.Invalid, ""), configuration{}
	case quotatest.FindNode(spec, quotatest.Above(c.To)) == nil:
		return refusal(quota.NotFound, ""), configuration{}
	}
	spec.Nodes = slices.Clone(spec.Nodes)
	for i := range spec.Nodes {
		if n := &spec.Nodes[i]; quotatest.Below(n.Path, c.From) {
			n.Path = c.To + strings.TrimPrefix(n.Path, c.From)
		}
	}
	if !o.goodTree(o.configuration, spec) { // too deep, or hard where its new policy has no soft nodes
		return refusal(quota.Invalid, ""), configuration{}
	}
	ids := renamed(o.ids[c.Tree], []quota.Move{{From: c.From, To: c.To}})
	return o.judge(o.replaced(o.configuration, spec, ids), []string{c.Tree})
}

// rollBack looks up what was: every past configuration is kept. Nodes that still exist are the same, wherever they are;
// others continue what is at their path.
func (o *oracle) rollBack(c quota.RollBack) (verdict, configuration) {
	switch {
	case c.Revision > o.revision:
		return refusal(quota.NotFound, ""), configuration{}
	case c.Revision < o.reach:
		return refusal(quota.Invalid, ""), configuration{}
	}
	changed := map[string]bool{}
	for _, r := range o.history {
		for _, change := range r.Changes {
			if r.Number > c.Revision {
				changed[change.Tree] = true
			}
		}
	}
	past, next := o.past[c.Revision], o.clone()
	next.policies = past.policies
	var names []string
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		spec, was := past.trees[name]
		_, is := o.trees[name]
		switch {
		case was:
			next = o.replaced(next, spec, o.continuing(past, name))
		case is:
			next = removed(next, name)
		default:
			continue
		}
		names = append(names, name)
	}
	return o.judge(next, names)
}

// continuing are the identities of the nodes of a past tree that still exist, or of what is at their path now.
func (o *oracle) continuing(past configuration, tree string) map[string]int {
	ids, taken := map[string]int{}, map[int]bool{}
	for path, id := range past.ids[tree] {
		if _, exists := o.pathOf(tree, id); exists {
			ids[path], taken[id] = id, true
		}
	}
	for path := range past.ids[tree] {
		now, exists := o.ids[tree][path]
		if _, known := ids[path]; !known && exists && !taken[now] {
			ids[path] = now
		}
	}
	return ids
}
