package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// remember puts a change into the history. It copies what it keeps: a list that was grown for all changes of a large tree
// would stay in memory behind the few that are shown.
func (l *Ledger) remember(m quota.ChangeMeta, p plan) {
	l.revision++
	l.addRevision(&quota.Revision{
		Number: l.revision, Actor: m.Actor, Reason: m.Reason, RequestID: m.RequestID, Fingerprint: m.Fingerprint,
		Wall: l.now.Wall, Changes: slices.Clone(p.changes[:min(len(p.changes), quota.MaxRevisionChanges)]), ChangeCount: len(p.changes),
		Undo: exactly(p.undo), Undoable: true,
	})
}

// exactly copies what it takes to undo a change into lists without spare places.
func exactly(undo []quota.TreeUndo) []quota.TreeUndo {
	undo = slices.Clone(undo)
	for i := range undo {
		u := &undo[i]
		u.Nodes, u.AddedPaths, u.Moves = slices.Clone(u.Nodes), slices.Clone(u.AddedPaths), slices.Clone(u.Moves)
	}
	return undo
}

// addRevision files a change, forgets the oldest beyond the bound, and how to undo the oldest beyond the other bound
// (docs/adr/0023).
func (l *Ledger) addRevision(r *quota.Revision) {
	l.revisions = append(l.revisions, r)
	l.historyNodes += undoNodes(r)
	l.historyBytes += revisionSize(r)
	if r.RequestID != "" {
		l.requests[r.RequestID] = r
	}
	if len(l.revisions) > l.bounds.Revisions {
		l.forgetRevision()
	}
	for i := 0; l.historyNodes > l.bounds.HistoryNodes; i++ {
		l.forgetUndo(i)
	}
	if l.boundsBytes() {
		l.shortenHistory()
	}
}

// shortenHistory keeps the history within its bound in bytes: first the oldest changes cannot be undone any more, then they
// go. The newest always stays, and can be undone unless it passes the bound alone.
func (l *Ledger) shortenHistory() {
	for i := 0; i < len(l.revisions)-1 && l.historyBytes > l.bounds.HistoryBytes; i++ {
		l.forgetUndo(i)
	}
	for len(l.revisions) > 1 && l.historyBytes > l.bounds.HistoryBytes {
		l.forgetRevision()
	}
	if l.historyBytes > l.bounds.HistoryBytes {
		l.forgetUndo(0)
	}
}

// forgetRevision forgets the oldest.
func (l *Ledger) forgetRevision() {
	oldest := l.revisions[0]
	l.revisions[0] = nil
	l.revisions = l.revisions[1:]
	l.historyNodes -= undoNodes(oldest)
	l.historyBytes -= revisionSize(oldest)
	if l.requests[oldest.RequestID] == oldest {
		delete(l.requests, oldest.RequestID)
	}
}

// forgetUndo makes the record of a revision one that cannot be undone; images keep the one that they have.
func (l *Ledger) forgetUndo(i int) {
	r := l.revisions[i]
	if !r.Undoable {
		return
	}
	l.historyNodes -= undoNodes(r)
	short := *r
	short.Undo, short.Undoable = nil, false
	l.historyBytes += revisionSize(&short) - revisionSize(r)
	l.revisions[i] = &short
	if l.requests[r.RequestID] == r {
		l.requests[r.RequestID] = &short
	}
}

// undoNodes is what a revision takes of Bounds.HistoryNodes: every node, path, move and name of an item that it keeps, and
// one for a tree.
func undoNodes(r *quota.Revision) int {
	size := 0
	for i := range r.Undo {
		u := &r.Undo[i]
		size += 1 + len(u.Nodes) + len(u.AddedPaths) + len(u.Moves)
		for _, r := range u.Resources {
			if r.Items != nil {
				size += len(r.Items.Names)
			}
		}
	}
	return size
}
