package state

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// CountIn counts the requests that wait at or below each node of a tree: each once, at whatever nodes it has claims.
// Almost all have claims at one node. These are counted there first, and then once for each node above, so that the
// cost for a request does not grow with the depth of the tree.
func (q *WaitQueue) CountIn(t *Tree) map[*Node]quota.WaitingCount {
	counts, atOne := map[*Node]quota.WaitingCount{}, map[*Node]quota.WaitingCount{}
	for _, w := range q.ByArrival { // a count and the least of instants do not depend on the order
		since := w.Record.More.Waiting.Since.At
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
		for ; n != nil; n = n.Parent {
			addWaiting(counts, n, count)
		}
	}
	return counts
}

func addWaiting(counts map[*Node]quota.WaitingCount, n *Node, more quota.WaitingCount) {
	count := counts[n]
	count.AddAll(more)
	counts[n] = count
}

// nodesIn are the nodes of a tree at which the request has claims in any of its alternatives, each once.
func (w *Waiter) nodesIn(t *Tree) []*Node {
	var nodes []*Node
	for _, alt := range w.Alternatives {
		for i := range alt.Claims {
			if at := alt.Claims[i].At; at.Tree == t && !slices.Contains(nodes, at) {
				nodes = append(nodes, at)
			}
		}
	}
	return nodes
}

// withAncestors are the nodes and all above them, each once.
func withAncestors(nodes []*Node) []*Node {
	var all []*Node
	for _, n := range nodes {
		for ; n != nil && !slices.Contains(all, n); n = n.Parent {
			all = append(all, n)
		}
	}
	return all
}

// Trees are the names of the trees in which the request has claims in any of its alternatives, each once.
func (w *Waiter) Trees() []string {
	var names []string
	for _, alt := range w.Alternatives {
		for i := range alt.Claims {
			if name := alt.Claims[i].At.TreeName; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}
