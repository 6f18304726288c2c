package read

import (
	"slices"
	"strings"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// What may have changed since a log index is found from marks: each node knows the index of the last entry that
// changed it, and each tree lists its nodes by that index, the newest first. A change of a node costs one comparison,
// and for the first of an entry moving the node to the front; a question costs the nodes that it finds. Marks are not
// part of the state. Dry runs, which have no index, make none, and what an undone step leaves does no harm: a node that
// is named needlessly is read once more. ADR 0105 has the reasons.

// MarkHolders notes the nodes of allocations that the present command has changed without charging or refunding a
// claim.
func MarkHolders(s *state.State) {
	for i := range s.Journal.Facts {
		fact := &s.Journal.Facts[i]
		if fact.Kind != state.FactConfirmed && fact.Kind != state.FactRevoked && fact.Kind != state.FactShrunk {
			continue
		}
		for _, c := range fact.Allocation.Claims {
			if c.At.Tree.ByPath[c.At.Path] == c.At {
				s.Forest.MarkNode(c.At)
			}
		}
	}
}

// Changes is what may have changed since the entry at an index, as far as the caller may read usage; a node above one
// where it may is named if the caller sees its totals. Items need the right at the root.
func (r Reader) Changes(q quota.ChangesQuery) quota.Changes {
	f := &r.state.Forest
	if q.After < f.Forgotten {
		return quota.Changes{Everything: true}
	}
	list := changeList{reader: r, after: q.After, room: quota.MaxChangedNames}
	for _, t := range changedTrees(f, q) {
		if list.addTree(t); len(list.trees) > quota.MaxChangedTrees {
			return quota.Changes{Everything: true}
		}
	}
	return quota.Changes{
		Configuration: f.Configured > q.After, LimitRequests: r.limitRequestsChanged(q.After), Trees: list.trees,
	}
}

// limitRequestsChanged is true if an entry after an index has changed a request for limits that the caller sees.
func (r Reader) limitRequestsChanged(index uint64) bool {
	s := &r.state.Requests
	return s.Newest > index && slices.ContainsFunc(s.All, func(request *quota.LimitRequest) bool {
		return s.Changed[request.Number] > index && r.seesRequest(request)
	})
}

// changedTrees are ordered by name.
func changedTrees(f *state.Forest, q quota.ChangesQuery) []*state.Tree {
	var list []*state.Tree
	for name, t := range f.Trees {
		if t.ChangedAfter(q.After) && (len(q.Trees) == 0 || slices.Contains(q.Trees, name)) {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b *state.Tree) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// maxVisitedMarks bounds the nodes of one tree that are looked at for a caller who does not see them.
const maxVisitedMarks = 10_000

type changeList struct {
	reader Reader
	after  uint64
	// room is how many names may be added.
	room  int
	trees []quota.TreeChanges
}

// addTree adds nothing if nothing in the tree has changed.
func (l *changeList) addTree(t *state.Tree) {
	c := quota.TreeChanges{Tree: t.Name}
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

func (l *changeList) addNodes(t *state.Tree, c *quota.TreeChanges) {
	if t.Marks.Many > l.after {
		c.Many = l.reader.seesBelow(t.Root)
		c.Queue = c.Many && t.Marks.Queued > l.after
		return
	}
	named, visited := map[*state.Node]bool{}, 0
	for n := t.Marks.Newest; n != nil && n.Mark.Changed > l.after; n = n.Mark.Older {
		c.Queue = c.Queue || n.Mark.Queued > l.after && l.reader.MayAt(access.UsageRead, n)
		for at := n; at != nil && !named[at]; at = at.Parent {
			named[at] = true
			if l.reader.seesUsage(at) == quota.SeeTotals {
				c.Nodes = append(c.Nodes, at.Path)
			}
		}
		if visited++; len(c.Nodes) > quota.MaxChangedNodes || visited > maxVisitedMarks {
			c.Many = len(c.Nodes) > 0 || l.reader.seesBelow(t.Root)
			c.Queue = c.Many && t.Marks.Queued > l.after
			return
		}
	}
}

func (l *changeList) addItems(t *state.Tree, c *quota.TreeChanges) {
	for _, r := range t.Resources {
		if r.Stock != nil && r.Stock.Changed > l.after && l.reader.MayAt(access.UsageRead, t.Root) {
			c.Items = append(c.Items, r.Name)
		}
	}
}
