package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// countIn counts the requests that wait at or below each node of a tree: each once, at whatever nodes it has claims.
// Almost all have claims at one node. These are counted there first, and then once for each node above, so that the
// cost for a request does not grow with the depth of the tree.
func (q *waitQueue) countIn(t *tree) map[*node]quota.WaitingCount {
	counts, atOne := map[*node]quota.WaitingCount{}, map[*node]quota.WaitingCount{}
	for _, w := range q.byArrival { // a count and the least of instants do not depend on the order
		since := w.record.more.waiting.since.At
		switch nodes := w.nodesIn(t); len(nodes) {
		case 0:
		case 1:
			addWaiting(atOne, nodes[0], quota.WaitingCount{Requests: 1, Since: since})
		default:
			for _, n := range withAncestors(nodes) {
				addWaiting(counts, n, quota.WaitingCount{Requests: 1, Since: since})
			}
		}
	}
	for n, count := range atOne {
		for ; n != nil; n = n.parent {
			addWaiting(counts, n, count)
		}
	}
	return counts
}

func addWaiting(counts map[*node]quota.WaitingCount, n *node, more quota.WaitingCount) {
	count := counts[n]
	count.AddAll(more)
	counts[n] = count
}

// nodesIn are the nodes of a tree at which the request has claims in any of its alternatives, each once.
func (w *waiter) nodesIn(t *tree) []*node {
	var nodes []*node
	for _, alt := range w.alternatives {
		for i := range alt.claims {
			if at := alt.claims[i].at; at.tree == t && !slices.Contains(nodes, at) {
				nodes = append(nodes, at)
			}
		}
	}
	return nodes
}

// withAncestors are the nodes and all above them, each once.
func withAncestors(nodes []*node) []*node {
	var all []*node
	for _, n := range nodes {
		for ; n != nil && !slices.Contains(all, n); n = n.parent {
			all = append(all, n)
		}
	}
	return all
}

// trees are the names of the trees in which the request has claims in any of its alternatives, each once.
func (w *waiter) trees() []string {
	var names []string
	for _, alt := range w.alternatives {
		for i := range alt.claims {
			if name := alt.claims[i].at.treeName; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}
