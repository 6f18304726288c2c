package activity

import (
	"iter"
	"strings"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// recordEvent counts an event at the nodes of its claims, at all their ancestors, and at the itemized resources that
// the claims request.
func (r *Recorder) recordEvent(n cluster.WatchEvent, now stepNumber) {
	info, change := n.Allocation.Info(), counts{}
	switch n.Kind {
	case ledger.FactGranted:
		change = counts{granted: 1, longest: uint32(waitTime(n))}
	case ledger.FactEnded:
		change = endCounts(info)
	case ledger.FactWaiting, ledger.FactConfirmed, ledger.FactRevoked, ledger.FactRestored, ledger.FactShrunk:
	}
	for _, c := range info.Claims {
		for path := range pathAndAncestors(c.Placed) {
			r.nodes.markActive(Key{Tree: c.Tree, Node: path}, now).stepCounts(now).addChange(change)
		}
		for resource := range pickedResources(c.Picks) {
			r.resources.markActive(Key{Tree: c.Tree, Resource: resource}, now).stepCounts(now).addChange(change)
		}
	}
	r.metrics.observeEvent(n, info)
}

// waitTime returns how long a request that was granted from the queue had waited; 0 for others.
func waitTime(n cluster.WatchEvent) quota.Span {
	if n.Since == 0 {
		return 0
	}
	return quota.Span(n.At - n.Since)
}

// endCounts counts the end of an allocation that was granted.
func endCounts(a quota.AllocationInfo) counts {
	switch {
	case a.Fence == 0: // it was never granted
	case a.State == quota.Released:
		return counts{released: 1}
	case a.State == quota.Expired || a.State == quota.WasPreempted:
		return counts{lost: 1}
	}
	return counts{}
}

// pathAndAncestors yields a path and all its ancestors, the root last.
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
