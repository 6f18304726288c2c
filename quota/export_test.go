package quota

import (
	"cmp"
	"maps"
	"slices"
)

// Sitting are the ids of the allocations that have a claim at a borrowing node, by seat.
func (v View) Sitting(tree, path string) []string {
	type seated struct {
		seat uint64
		id   string
	}
	var list []seated
	for _, r := range v.ledger.trees[tree].byPath[path].bench.rows(func(*row) bool { return true }) {
		for seat, who := range r.sitters.all() {
			a, _ := v.ledger.held.Get(who.fence)
			list = append(list, seated{seat, a.id})
		}
	}
	slices.SortFunc(list, func(a, b seated) int { return cmp.Compare(a.seat, b.seat) })
	ids := make([]string, len(list))
	for i, s := range list {
		ids[i] = s.id
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
