package quota

import (
	"cmp"
	"maps"
	"slices"
)

// Sitting are the ids of the allocations that have a claim at a borrowing node, by seat.
func (v View) Sitting(tree, path string) []string {
	list := v.ledger.trees[tree].byPath[path].bench.all()
	slices.SortFunc(list, func(a, b seated) int { return cmp.Compare(a.seat, b.seat) })
	ids := make([]string, len(list))
	for i, s := range list {
		a, _ := v.ledger.held.Get(s.fence)
		ids[i] = a.id
	}
	return ids
}

// Register adds policies as the lines of policy.go do, and answers how to take them away again.
func Register(p ...Policy) (remove func()) {
	before := policies
	policies = maps.Clone(before)
	maps.Copy(policies, registry(p...))
	return func() { policies = before }
}

// CancelNow does what a Cancel does to what a reservation holds and has displaced.
func (l *Ledger) CancelNow(id string) (restored []string) {
	a := l.byID[id]
	l.held.Delete(a.fence)
	for i := range a.claims {
		l.unbook(a, i)
	}
	l.bury(a, Cancelled, "")
	return l.putBack(a)
}
