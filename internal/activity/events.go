package activity

import (
	"iter"
	"slices"
	"strings"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// recordEvents counts a page of events at the nodes of their claims, at all their ancestors, and at the itemized
// resources that the claims request. Events of equal claims are added up first: a busy node has many of them in a page.
func (r *Recorder) recordEvents(events []cluster.WatchEvent, now stepNumber) {
	known := map[ledger.ClaimsKey]*tally{}
	var inOrder []*tally
	for _, n := range events {
		if n.Allocation == nil {
			continue
		}
		key, comparable := n.Allocation.ClaimsKey()
		t := known[key]
		if !comparable || t == nil {
			t = newTally(n.Allocation.Info().Claims)
			inOrder = append(inOrder, t)
			if comparable {
				known[key] = t
			}
		}
		t.addEvent(n)
		r.metrics.observeSpans(n, t.trees)
	}
	for _, t := range inOrder {
		r.recordTally(t, now)
	}
}

func (r *Recorder) recordTally(t *tally, now stepNumber) {
	for _, c := range t.claims {
		for path := range pathAndAncestors(c.Placed) {
			r.nodes.markActive(Key{Tree: c.Tree, Node: path}, now).stepCounts(now).addChange(t.change)
		}
		for resource := range pickedResources(c.Picks) {
			r.resources.markActive(Key{Tree: c.Tree, Resource: resource}, now).stepCounts(now).addChange(t.change)
		}
	}
	r.metrics.observeTally(t)
}

// tally adds up the events of allocations with the same claims.
type tally struct {
	claims []quota.ClaimInfo
	// trees are those of the claims, each once.
	trees  []string
	change counts
	// atOnce and queued count grants by where from, ended counts ends by state.
	atOnce, queued int
	ended          [quota.StateCount]int
}

func newTally(claims []quota.ClaimInfo) *tally {
	t := &tally{claims: claims}
	for _, c := range claims {
		if !slices.Contains(t.trees, c.Tree) {
			t.trees = append(t.trees, c.Tree)
		}
	}
	return t
}

func (t *tally) addEvent(n cluster.WatchEvent) {
	switch n.Kind {
	case ledger.FactGranted:
		t.change.addChange(counts{granted: 1, longest: uint32(waitTime(n))})
		if n.Since != 0 {
			t.queued++
		} else {
			t.atOnce++
		}
	case ledger.FactEnded:
		state := n.Allocation.State()
		t.change.addChange(endCounts(n.Allocation.Fence(), state))
		t.ended[state]++
	case ledger.FactWaiting, ledger.FactConfirmed, ledger.FactRevoked, ledger.FactRestored, ledger.FactShrunk,
		ledger.FactResized, ledger.FactResizeWaits, ledger.FactResizeDropped, ledger.FactCrossed, ledger.FactCleared,
		ledger.FactConfigured, ledger.FactNode:
	}
}

// waitTime is 0 for allocations that were not granted from the queue.
func waitTime(n cluster.WatchEvent) quota.Span {
	if n.Since == 0 {
		return 0
	}
	return quota.Span(n.At - n.Since)
}

// endCounts counts the end of an allocation that was granted.
func endCounts(fence uint64, state quota.State) counts {
	switch {
	case fence == 0: // it was never granted
	case state == quota.Released:
		return counts{released: 1}
	case state == quota.Expired || state == quota.WasPreempted:
		return counts{lost: 1}
	}
	return counts{}
}

// pathAndAncestors yields the root last.
func pathAndAncestors(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for yield(path) && path != "" {
			path = path[:max(0, strings.LastIndexByte(path, '/'))]
		}
	}
}

// pickedResources yields each resource once.
func pickedResources(picks []quota.Pick) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i, p := range picks {
			again := false
			for _, before := range picks[:i] {
				again = again || before.Resource == p.Resource
			}
			if !again && !yield(p.Resource) {
				return
			}
		}
	}
}
