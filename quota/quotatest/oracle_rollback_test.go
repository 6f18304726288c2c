package quotatest_test

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/quota"
)

// rollBack looks up what was: every past configuration is kept. Nodes that are still there are the same, wherever they
// stand; others continue what is at their path.
func (o *oracle) rollBack(c quota.RollBack) (verdict, configuration) {
	switch {
	case c.Revision > o.revision:
		return refusal(quota.NotFound, ""), configuration{}
	case c.Revision < o.reach:
		return refusal(quota.Invalid, ""), configuration{}
	}
	touched := map[string]bool{}
	for _, r := range o.history {
		for _, change := range r.Changes {
			if r.Number > c.Revision {
				touched[change.Tree] = true
			}
		}
	}
	past, next := o.past[c.Revision], o.configuration
	var wishes []string
	for _, name := range slices.Sorted(maps.Keys(touched)) {
		spec, was := past.trees[name]
		_, is := o.trees[name]
		switch {
		case was:
			next = o.replaced(next, spec, o.stillThere(past, name))
		case is:
			next = removed(next, name)
		default:
			continue
		}
		wishes = append(wishes, name)
	}
	return o.judge(next, wishes)
}

// stillThere are the identities of the nodes of a past tree that are there, or of what is at their path now.
func (o *oracle) stillThere(past configuration, tree string) map[string]int {
	ids, taken := map[string]int{}, map[int]bool{}
	for path, id := range past.ids[tree] {
		if _, there := o.pathOf(tree, id); there {
			ids[path], taken[id] = id, true
		}
	}
	for path := range past.ids[tree] {
		now, there := o.ids[tree][path]
		if _, known := ids[path]; !known && there && !taken[now] {
			ids[path] = now
		}
	}
	return ids
}
