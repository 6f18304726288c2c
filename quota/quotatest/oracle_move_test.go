package quotatest_test

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// rename gives nodes other paths, move by move.
func rename(ids map[string]int, moves []quota.Move) map[string]int {
	for _, m := range moves {
		if !existsIn(ids, m.From) || existsIn(ids, m.To) {
			continue
		}
		renamed := map[string]int{}
		for path, id := range ids {
			if below(path, m.From) {
				path = m.To + strings.TrimPrefix(path, m.From)
			}
			renamed[path] = id
		}
		ids = renamed
	}
	return ids
}

// existsIn: a node stands there or below.
func existsIn(ids map[string]int, path string) bool {
	for there := range ids {
		if below(there, path) {
			return true
		}
	}
	return false
}

func (o *oracle) goodMoves(moves []quota.Move) bool {
	return len(moves) <= o.bounds.Moves && !slices.ContainsFunc(moves, func(m quota.Move) bool { return !o.goodMove(m) })
}

func (o *oracle) goodMove(m quota.Move) bool {
	return m.From != "" && m.To != "" && o.goodPath(m.From) && o.goodPath(m.To) && (m.From == m.To || !below(m.To, m.From))
}

func (o *oracle) moveNode(c quota.MoveNode) (verdict, configuration) {
	spec, known := o.trees[c.Tree]
	switch {
	case !known:
		return refusal(quota.NotFound, ""), configuration{}
	case !o.goodMove(quota.Move{From: c.From, To: c.To}):
		return refusal(quota.Invalid, ""), configuration{}
	case nodeOf(spec, c.From) == nil:
		return refusal(quota.NotFound, ""), configuration{}
	case slices.Contains(o.nodesOf(c.Tree), c.To):
		return refusal(quota.Invalid, ""), configuration{}
	case nodeOf(spec, above(c.To)) == nil:
		return refusal(quota.NotFound, ""), configuration{}
	}
	spec.Nodes = slices.Clone(spec.Nodes)
	for i := range spec.Nodes {
		if n := &spec.Nodes[i]; below(n.Path, c.From) {
			n.Path = c.To + strings.TrimPrefix(n.Path, c.From)
			if !o.goodPath(n.Path) {
				return refusal(quota.Invalid, ""), configuration{}
			}
		}
	}
	return o.judge(o.replaced(o.configuration, spec, rename(o.ids[c.Tree], []quota.Move{{From: c.From, To: c.To}})), []string{c.Tree})
}
