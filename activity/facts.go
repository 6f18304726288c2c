package activity

import (
	"iter"
	"strings"

	"github.com/quorate/quorate/cluster"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// take counts a fact at the nodes of its claims, all their ancestors, and the itemized resources that they ask for.
func (r *Recorder) take(n cluster.Event, now number) {
	info, change := n.Allocation.Info(), counts{}
	switch n.Kind {
	case ledger.FactGranted:
		change = counts{granted: 1, longest: uint32(waited(n))}
	case ledger.FactEnded:
		change = ended(info)
	case ledger.FactWaiting, ledger.FactConfirmed, ledger.FactRevoked, ledger.FactRestored, ledger.FactShrunk:
	}
	for _, c := range info.Claims {
		for path := range upwards(c.Placed) {
			r.nodes.touch(Key{Tree: c.Tree, Node: path}, now).at(now).add(change)
		}
		for resource := range picked(c.Picks) {
			r.resources.touch(Key{Tree: c.Tree, Resource: resource}, now).at(now).add(change)
		}
	}
	r.metrics.observe(n, info)
}

// waited is how long a request waited that was granted from the queue; 0 for others.
func waited(n cluster.Event) quota.Span {
	if n.Since == 0 {
		return 0
	}
	return quota.Span(n.At - n.Since)
}

// ended counts the end of an allocation that held something.
func ended(a quota.AllocationInfo) counts {
	switch {
	case a.Fence == 0: // it only waited
	case a.State == quota.Released:
		return counts{released: 1}
	case a.State == quota.Expired || a.State == quota.WasPreempted:
		return counts{lost: 1}
	}
	return counts{}
}

// upwards yields a path and all its ancestors, the root last.
func upwards(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for yield(path) && path != "" {
			path = path[:max(0, strings.LastIndexByte(path, '/'))]
		}
	}
}

// picked yields each resource once.
func picked(picks []quota.Pick) iter.Seq[string] {
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
