package ledger

import (
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// history keeps the newest changes of the configuration, each with the record that undoes it.
type history struct {
	*environment
	revision  uint64                     // counts changes
	revisions []*quota.Revision          // oldest first
	requests  map[string]*quota.Revision // the newest of each request id
	nodes     int                        // nodes that count against Bounds.HistoryNodes
	bytes     int64                      // size of the revisions, see quota.Sizes
}

// findRequest returns the revision that a request made; nil if it is not remembered. In a guarded ledger request ids
// belong to their actor: an id tells nothing of requests of others.
func (h *history) findRequest(m quota.ChangeMeta) *quota.Revision {
	newest := h.requests[m.RequestID]
	if newest == nil || newest.Actor == m.Actor || h.book.Mode() != access.Guarded {
		return newest
	}
	for _, r := range slices.Backward(h.revisions) {
		if r.RequestID == m.RequestID && r.Actor == m.Actor {
			return r
		}
	}
	return nil
}

// cloneExactly copies undo records into lists without spare capacity.
func cloneExactly(undo []quota.TreeUndo) []quota.TreeUndo {
	undo = slices.Clone(undo)
	for i := range undo {
		u := &undo[i]
		u.Nodes, u.AddedPaths, u.Moves = slices.Clone(u.Nodes), slices.Clone(u.AddedPaths), slices.Clone(u.Moves)
	}
	return undo
}

// addRevision stores a revision, drops the oldest beyond the bound of revisions, and the undo records of the oldest
// beyond the bound of nodes (docs/adr/0023).
func (h *history) addRevision(r *quota.Revision) {
	h.revisions = append(h.revisions, r)
	h.nodes += undoNodes(r)
	h.bytes += revisionSize(r)
	if r.RequestID != "" {
		h.requests[r.RequestID] = r
	}
	if len(h.revisions) > h.bounds.Revisions {
		h.forgetRevision()
	}
	for i := 0; h.nodes > h.bounds.HistoryNodes; i++ {
		h.forgetUndo(i)
	}
	if h.boundsBytes() {
		h.shortenHistory()
	}
}

// shortenHistory keeps the history within its bound in bytes: it first drops the oldest undo records, then the oldest
// revisions. The newest revision is always kept, with its undo record unless that exceeds the bound by itself.
func (h *history) shortenHistory() {
	for i := 0; i < len(h.revisions)-1 && h.bytes > h.bounds.HistoryBytes; i++ {
		h.forgetUndo(i)
	}
	for len(h.revisions) > 1 && h.bytes > h.bounds.HistoryBytes {
		h.forgetRevision()
	}
	if h.bytes > h.bounds.HistoryBytes {
		h.forgetUndo(0)
	}
}

func (h *history) forgetRevision() {
	oldest := h.revisions[0]
	h.revisions[0] = nil
	h.revisions = h.revisions[1:]
	h.nodes -= undoNodes(oldest)
	h.bytes -= revisionSize(oldest)
	if h.requests[oldest.RequestID] == oldest {
		delete(h.requests, oldest.RequestID)
	}
}

// forgetUndo replaces a revision by one that cannot be undone; snapshots keep the former record.
func (h *history) forgetUndo(i int) {
	r := h.revisions[i]
	if !r.Undoable {
		return
	}
	h.nodes -= undoNodes(r)
	short := *r
	short.Undo, short.UndoPolicies, short.UndoAccess, short.Undoable = nil, nil, nil, false
	h.bytes += revisionSize(&short) - revisionSize(r)
	h.revisions[i] = &short
	if h.requests[r.RequestID] == r {
		h.requests[r.RequestID] = &short
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

// oldestReachable is the oldest revision after which every change can still be undone.
func (h *history) oldestReachable() uint64 {
	oldest := h.revision
	for _, r := range slices.Backward(h.revisions) {
		if !r.Undoable {
			break
		}
		oldest = r.Number - 1
	}
	return oldest
}
