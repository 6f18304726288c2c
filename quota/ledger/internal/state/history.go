package state

import (
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// History keeps the newest changes of the configuration, each with the record that undoes it.
type History struct {
	*Environment
	Revision  uint64                     // counts changes
	Revisions []*quota.Revision          // oldest first
	Requests  map[string]*quota.Revision // the newest of each request id
	nodes     int                        // nodes that count against Bounds.HistoryNodes
	bytes     int64                      // size of the revisions, see quota.Sizes
}

// FindRequest returns the revision that a request made; nil if it is not remembered. In a guarded ledger request ids
// belong to their actor: an id tells nothing of requests of others.
func (h *History) FindRequest(m quota.ChangeMeta) *quota.Revision {
	newest := h.Requests[m.RequestID]
	if newest == nil || newest.Actor == m.Actor || h.Book.Mode() != access.Guarded {
		return newest
	}
	for _, r := range slices.Backward(h.Revisions) {
		if r.RequestID == m.RequestID && r.Actor == m.Actor {
			return r
		}
	}
	return nil
}

// CloneExactly copies undo records into lists without spare capacity.
func CloneExactly(undo []quota.TreeUndo) []quota.TreeUndo {
	undo = slices.Clone(undo)
	for i := range undo {
		u := &undo[i]
		u.Nodes, u.AddedPaths, u.Moves = slices.Clone(u.Nodes), slices.Clone(u.AddedPaths), slices.Clone(u.Moves)
	}
	return undo
}

// AddRevision stores a revision, drops the oldest beyond the bound of revisions, and the undo records of the oldest
// beyond the bound of nodes (docs/adr/0023).
func (h *History) AddRevision(r *quota.Revision) {
	h.Revisions = append(h.Revisions, r)
	h.nodes += undoNodes(r)
	h.bytes += RevisionSize(r)
	if r.RequestID != "" {
		h.Requests[r.RequestID] = r
	}
	if len(h.Revisions) > h.Bounds.Revisions {
		h.forgetRevision()
	}
	for i := 0; h.nodes > h.Bounds.HistoryNodes; i++ {
		h.forgetUndo(i)
	}
	if h.BoundsBytes() {
		h.shortenHistory()
	}
}

// shortenHistory keeps the history within its bound in bytes: it first drops the oldest undo records, then the oldest
// revisions. The newest revision is always kept, with its undo record unless that exceeds the bound by itself.
func (h *History) shortenHistory() {
	for i := 0; i < len(h.Revisions)-1 && h.bytes > h.Bounds.HistoryBytes; i++ {
		h.forgetUndo(i)
	}
	for len(h.Revisions) > 1 && h.bytes > h.Bounds.HistoryBytes {
		h.forgetRevision()
	}
	if h.bytes > h.Bounds.HistoryBytes {
		h.forgetUndo(0)
	}
}

func (h *History) forgetRevision() {
	oldest := h.Revisions[0]
	h.Revisions[0] = nil
	h.Revisions = h.Revisions[1:]
	h.nodes -= undoNodes(oldest)
	h.bytes -= RevisionSize(oldest)
	if h.Requests[oldest.RequestID] == oldest {
		delete(h.Requests, oldest.RequestID)
	}
}

// forgetUndo replaces a revision by one that cannot be undone; snapshots keep the former record.
func (h *History) forgetUndo(i int) {
	r := h.Revisions[i]
	if !r.Undoable {
		return
	}
	h.nodes -= undoNodes(r)
	short := *r
	short.Undo, short.UndoPolicies, short.UndoAccess, short.Undoable = nil, nil, nil, false
	h.bytes += RevisionSize(&short) - RevisionSize(r)
	h.Revisions[i] = &short
	if h.Requests[r.RequestID] == r {
		h.Requests[r.RequestID] = &short
	}
}

// undoNodes is the revision's share of Bounds.HistoryNodes: every node, path, move and name of an item that it keeps,
// and one for each tree and policy.
func undoNodes(r *quota.Revision) int {
	size := len(r.UndoPolicies)
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

// OldestReachable is the oldest revision after which every change can still be undone.
func (h *History) OldestReachable() uint64 {
	oldest := h.Revision
	for _, r := range slices.Backward(h.Revisions) {
		if !r.Undoable {
			break
		}
		oldest = r.Number - 1
	}
	return oldest
}
