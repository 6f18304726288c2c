package ledger

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// Nodes that are made on demand (CreateUnknown, docs/adr/0025): a claim at a path that does not exist brings its nodes
// along. They sprout, that is, they have a parent and limits but are in no tree yet, until the request is admitted, and
// vanish at the end of the command after which nothing is held at or below them.

// sprout makes the nodes that lack from the nearest known one to a path, sharing those of earlier claims.
func (a *Allocation) sprout(near *node, path string) *node {
	n := near
	rest := strings.TrimPrefix(path[len(near.path):], "/")
	for name := range strings.SplitSeq(rest, "/") {
		n = a.sproutAt(n, quota.ChildPath(n.path, strings.Clone(name)))
	}
	return n
}

func (a *Allocation) sproutAt(parent *node, path string) *node {
	for i := range a.claims {
		for n := a.claims[i].at; n != nil && n.sprouting(); n = n.parent {
			if n.tree == parent.tree && n.path == path {
				return n
			}
		}
	}
	n := parent.tree.blank(&quota.NodeSpec{Path: path})
	n.parent, n.made = parent, true
	n.settle()
	return n
}

// sprouting is true for a node made on demand that is not part of its tree yet.
func (n *node) sprouting() bool { return n.made && n.id == 0 }

// sprouts are the nodes that an allocation brings along, parents before children.
func (a *Allocation) sprouts() []*node {
	var list []*node
	for i := range a.claims {
		var up []*node
		for n := a.claims[i].at; n.sprouting(); n = n.parent {
			if slices.Contains(list, n) {
				break
			}
			up = append(up, n)
		}
		slices.Reverse(up)
		list = append(list, up...)
	}
	return list
}

// roomForSprouts refuses a request that would bring along more nodes than there may be.
func (f *forest) roomForSprouts(a *Allocation) *quota.Error {
	sprouts := a.sprouts()
	if n := f.nodes + len(sprouts); n > f.bounds.Nodes {
		return quota.Errorf(quota.Full, "claims", "with the nodes that the request needs the ledger would have %d; at most %d are allowed: release what is held at nodes made on demand, or claim at one that exists", n, f.bounds.Nodes)
	}
	more := map[*tree]int{}
	for _, s := range sprouts {
		more[s.tree]++
		if n := (len(s.tree.byPath) + more[s.tree]) * len(s.tree.resources); n > f.bounds.Cells {
			return quota.Errorf(quota.Full, "claims", "with the nodes that the request needs tree %s would have %d nodes times resources; at most %d are allowed: release what is held at nodes made on demand, or claim at one that exists", s.treeName, n, f.bounds.Cells)
		}
		if n := len(s.tree.byPath) + more[s.tree]; n > f.bounds.NodesPerTree {
			return quota.Errorf(quota.Full, "claims", "with the nodes that the request needs tree %s would have %d; at most %d are allowed: release what is held at nodes made on demand, or claim at one that exists", s.treeName, n, f.bounds.NodesPerTree)
		}
	}
	return nil
}

// attach makes the nodes that an allocation brings along part of their trees.
func (f *forest) attach(a *Allocation) {
	for _, n := range a.sprouts() {
		n.enter(f)
		n.hang(n.parent)
		f.nodes++
		f.bytes += n.bytes()
	}
}

// attach is the same within a trial.
func (t *staged) attach() {
	sprouts := t.newcomer().sprouts()
	before := t.ledger.forest.nodeID
	t.ledger.forest.attach(t.newcomer())
	t.onUndo(func() {
		for _, n := range slices.Backward(sprouts) {
			t.ledger.forest.detach(n)
			n.id = 0
		}
		t.ledger.forest.nodeID = before
	})
}

func (f *forest) detach(n *node) {
	siblings := n.parent.children
	n.parent.children = slices.Delete(siblings, slices.Index(siblings, n), slices.Index(siblings, n)+1)
	delete(n.tree.byPath, n.path)
	f.nodes--
	f.bytes -= n.bytes()
}

// vacate remembers that a claim has left a node that was made on demand.
func (f *forest) vacate(n *node) {
	if n.made {
		f.vacated = append(f.vacated, n)
	}
}

// sweep lets nodes made on demand vanish where nothing is held any more. It runs at the end of a command, when nothing can
// be taken back. It answers whether any did.
func (f *forest) sweep() (any bool) {
	for _, n := range f.vacated {
		for n.made && n.idle() && n.tree.byPath[n.path] == n {
			f.detach(n)
			n, any = n.parent, true
		}
	}
	f.vacated = nil
	return any
}

// idle is true if no claim is counted at the node or belongs there, nobody waits for room there, and nothing is below.
func (n *node) idle() bool { return n.claims+n.homes+len(n.lines)+len(n.children) == 0 }
