package ledger

import (
	"cmp"
	"maps"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/configure"
	"github.com/quorate/quorate/quota/ledger/internal/read"
	"github.com/quorate/quorate/quota/ledger/internal/state"
	"github.com/quorate/quorate/quota/policy"
)

// Sitting are the ids of the allocations that have a claim at a borrowing node, by arrival.
func Sitting(r read.Reader, tree, path string) []string {
	list := read.StateOf(r).Forest.Trees[tree].ByPath[path].Borrowers.AllClaims()
	slices.SortFunc(list, func(a, b state.IndexedClaim) int { return cmp.Compare(a.Seq, b.Seq) })
	ids := make([]string, len(list))
	for i, s := range list {
		a, _ := read.StateOf(r).Allocations.Held.Get(s.Fence)
		ids[i] = a.ID()
	}
	return ids
}

// Register adds policies to the presets, and returns a function that removes them again.
func Register(added ...policy.Policy) (remove func()) {
	before := state.BuiltIn
	all := slices.Collect(maps.Values(before))
	for i := range added {
		all = append(all, &added[i])
	}
	state.BuiltIn = policy.MustRegistry(all...)
	return func() { state.BuiltIn = before }
}

// CancelNow does what a Cancel does to what a reservation holds and has displaced.
func (l *Ledger) CancelNow(id string) (restored []string) {
	s := l.state
	a := s.Allocations.ByID.Find(id)
	s.Allocations.Held.Delete(a.Fence())
	for i := range a.Claims {
		s.Allocations.RefundClaim(a, i)
	}
	admit.KeepEnded(s, a, state.Ending{State: quota.Cancelled})
	defer func() { // as at the end of each command
		admit.AnnounceDrained(s)
		s.JudgeThresholds()
	}()
	return admit.RestoreDisplaced(s, a)
}

// ChangesSubtree reports whether a revision counts as a change of a subtree, by its changes and by what takes it back.
func ChangesSubtree(r *quota.Revision, at quota.Subtree) (byChanges, byUndo bool) {
	byChanges, _ = configure.ChangesSubtree(r, at)
	long := *r
	long.ChangeCount++
	byUndo, _ = configure.ChangesSubtree(&long, at)
	return byChanges, byUndo
}

// Homes are the paths of the nodes that the claims of a held allocation belong to.
func Homes(r read.Reader, fence uint64) []string {
	a, _ := read.StateOf(r).Allocations.Held.Get(fence)
	var paths []string
	for i := range a.Claims {
		paths = append(paths, a.Claims[i].Home().Path)
	}
	return paths
}
