package ledger

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// What may have changed since a log index is found from marks: each node knows the index of the last entry that
// changed it, and each tree lists its nodes by that index, the newest first. A change of a node costs one comparison,
// and for the first of an entry moving the node to the front; a question costs the nodes that it finds. Marks are not
// part of the state. Dry runs, which have no index, make none, and what an undone step leaves does no harm: a node that
// is named needlessly is read once more. ADR 0105 has the reasons.

// changedAfter is true if an entry after an index has changed a node.
func (m *treeMarks) changedAfter(index uint64) bool {
	return m.many > index || m.newest != nil && m.newest.mark.changed > index
}

// markHolders notes the nodes of allocations that the present command has changed without charging or refunding a
// claim.
func (l *Ledger) markHolders() {
	for i := range l.journal.facts {
		fact := &l.journal.facts[i]
		if fact.Kind != FactConfirmed && fact.Kind != FactRevoked && fact.Kind != FactShrunk {
			continue
		}
		for _, c := range fact.Allocation.claims {
			if c.at.tree.byPath[c.at.path] == c.at {
				l.forest.markNode(c.at)
			}
		}
	}
}

// BeginChanges makes a ledger that was restored from a snapshot remember changes from a log index on.
func (l *Ledger) BeginChanges(index uint64) { l.forest.forgotten = index }

// Changes is what may have changed since the entry at an index, as far as the caller may read usage; a node above one
// where it may is named if the caller sees its totals. Items need the right at the root.
func (r Reader) Changes(q quota.ChangesQuery) quota.Changes {
	f := &r.ledger.forest
	if q.After < f.forgotten {
		return quota.Changes{Everything: true}
	}
	list := changeList{reader: r, after: q.After, room: quota.MaxChangedNames}
	for _, t := range f.changedTrees(q) {
		if list.addTree(t); len(list.trees) > quota.MaxChangedTrees {
			return quota.Changes{Everything: true}
		}
	}
	return quota.Changes{
		Configuration: f.configured > q.After, LimitRequests: r.limitRequestsChanged(q.After), Trees: list.trees,
	}
}

// limitRequestsChanged is true if an entry after an index has changed a request for limits that the caller sees.
func (r Reader) limitRequestsChanged(index uint64) bool {
	s := &r.ledger.requests
	return s.newest > index && slices.ContainsFunc(s.all, func(request *quota.LimitRequest) bool {
		return s.changed[request.Number] > index && r.seesRequest(request)
	})
}

// changedTrees are the wanted trees with a change, by name.
func (f *forest) changedTrees(q quota.ChangesQuery) []*tree {
	var list []*tree
	for name, t := range f.trees {
		if t.changedAfter(q.After) && (len(q.Trees) == 0 || slices.Contains(q.Trees, name)) {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b *tree) int { return strings.Compare(a.name, b.name) })
	return list
}

// changedAfter is true if an entry after an index has changed a node or an item of the tree.
func (t *tree) changedAfter(index uint64) bool {
	return t.marks.changedAfter(index) || slices.ContainsFunc(t.resources, func(r *resource) bool {
		return r.stock != nil && r.stock.changed > index
	})
}

// maxVisitedMarks bounds the nodes of one tree that are looked at for a caller who does not see them.
const maxVisitedMarks = 10_000

// changeList collects changes of trees.
type changeList struct {
	reader Reader
	after  uint64
	// room is how many names may be added.
	room  int
	trees []quota.TreeChanges
}

// addTree adds what has changed in a tree, if anything has.
func (l *changeList) addTree(t *tree) {
	c := quota.TreeChanges{Tree: t.name}
	l.addNodes(t, &c)
	l.addItems(t, &c)
	if l.room -= len(c.Nodes) + len(c.Items); l.room < 0 {
		l.room, c.Many = 0, true
	}
	if c.Many {
		c.Nodes, c.Items = nil, nil
	}
	if !c.IsEmpty() {
		slices.Sort(c.Nodes)
		l.trees = append(l.trees, c)
	}
}

// addNodes adds the changed nodes of a tree.
func (l *changeList) addNodes(t *tree, c *quota.TreeChanges) {
	if t.marks.many > l.after {
		c.Many = l.reader.seesBelow(t.root)
		c.Queue = c.Many && t.marks.queued > l.after
		return
	}
	named, visited := map[*node]bool{}, 0
	for n := t.marks.newest; n != nil && n.mark.changed > l.after; n = n.mark.older {
		c.Queue = c.Queue || n.mark.queued > l.after && l.reader.mayAt(access.UsageRead, n)
		for at := n; at != nil && !named[at]; at = at.parent {
			named[at] = true
			if l.reader.seesUsage(at) == quota.SeeTotals {
				c.Nodes = append(c.Nodes, at.path)
			}
		}
		if visited++; len(c.Nodes) > quota.MaxChangedNodes || visited > maxVisitedMarks {
			c.Many = len(c.Nodes) > 0 || l.reader.seesBelow(t.root)
			c.Queue = c.Many && t.marks.queued > l.after
			return
		}
	}
}

// addItems adds the itemized resources of a tree with a changed item.
func (l *changeList) addItems(t *tree, c *quota.TreeChanges) {
	for _, r := range t.resources {
		if r.stock != nil && r.stock.changed > l.after && l.reader.mayAt(access.UsageRead, t.root) {
			c.Items = append(c.Items, r.Name)
		}
	}
}
