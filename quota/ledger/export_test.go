package ledger

import (
	"cmp"
	"maps"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// Sitting are the ids of the allocations that have a claim at a borrowing node, by seat.
func (r Reader) Sitting(tree, path string) []string {
	list := r.ledger.forest.trees[tree].byPath[path].borrowers.allClaims()
	slices.SortFunc(list, func(a, b indexedClaim) int { return cmp.Compare(a.seq, b.seq) })
	ids := make([]string, len(list))
	for i, s := range list {
		a, _ := r.ledger.allocations.held.Get(s.fence)
		ids[i] = a.id
	}
	return ids
}

// Register adds policies to the presets, and returns a function that removes them again.
func Register(added ...policy.Policy) (remove func()) {
	before := builtIn
	all := slices.Collect(maps.Values(before))
	for i := range added {
		all = append(all, &added[i])
	}
	builtIn = policy.MustRegistry(all...)
	return func() { builtIn = before }
}

// CancelNow does what a Cancel does to what a reservation holds and has displaced.
func (l *Ledger) CancelNow(id string) (restored []string) {
	a := l.allocations.byID.Find(id)
	l.allocations.held.Delete(a.fence)
	for i := range a.claims {
		l.allocations.refundClaim(a, i)
	}
	l.keepEnded(a, ending{state: quota.Cancelled})
	defer func() { // as at the end of each command
		l.announceDrained()
		l.judgeThresholds()
	}()
	return cancellation{l}.restoreDisplaced(a)
}

// ChangesSubtree reports whether a revision counts as a change of a subtree, by its changes and by what takes it back.
func ChangesSubtree(r *quota.Revision, at quota.Subtree) (byChanges, byUndo bool) {
	byChanges, _ = changesSubtree(r, at)
	long := *r
	long.ChangeCount++
	byUndo, _ = changesSubtree(&long, at)
	return byChanges, byUndo
}

// Homes are the paths of the nodes that the claims of a held allocation belong to.
func (r Reader) Homes(fence uint64) []string {
	a, _ := r.ledger.allocations.held.Get(fence)
	var paths []string
	for i := range a.claims {
		paths = append(paths, a.claims[i].home().path)
	}
	return paths
}

// AllUsage is Usage for scripts, whose answers say nothing of what the asker may see.
func (r Reader) AllUsage(q quota.UsageQuery) (quota.UsagePage, *quota.Error) {
	return r.usagePage(q, seesTotals, (*node).usage)
}
