package configure

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// checkExpected refuses a change that expects another revision. A change of one subtree expects only that no later
// revision has changed that subtree, so that administrators of different subtrees do not refuse each other.
func checkExpected(h *state.History, expected uint64, at *quota.Subtree) *quota.Error {
	if at == nil || expected > h.Revision {
		if expected == h.Revision {
			return nil
		}
		return quota.Errorf(quota.RevisionMismatch, "expected_revision",
			"the configuration is at revision %d, not %d; read it again and decide anew", h.Revision, expected)
	}
	place := quota.Place(at.Tree, quota.Clip(at.Node))
	switch change, known := changeAfter(h, expected, *at); {
	case !known:
		return quota.Errorf(quota.RevisionMismatch, "expected_revision",
			"the history does not say whether revision %d changed %s after revision %d; read it again and decide anew",
			change, place, expected)
	case change != 0:
		return quota.Errorf(quota.RevisionMismatch, "expected_revision",
			"revision %d changed %s after revision %d; read it again and decide anew", change, place, expected)
	}
	return nil
}

// changeAfter returns the newest revision after another one that changed a subtree, 0 if there is none. It is false,
// with a revision, if the history does not have what that revision changed.
func changeAfter(h *state.History, revision uint64, at quota.Subtree) (change uint64, known bool) {
	next := h.Revision
	for _, r := range slices.Backward(h.Revisions) {
		if next <= revision {
			return 0, true
		}
		if r.Number != next {
			break // a backup replaced the state
		}
		changed, known := ChangesSubtree(r, at)
		if changed || !known {
			return r.Number, known
		}
		next--
	}
	if next <= revision {
		return 0, true
	}
	return next, false
}

// ChangesSubtree reports whether a revision changed something in a subtree, or gave its node another path. Settings of
// the tree and configuration of the nodes above do not count: the text of the subtree has nothing of them, and the
// change is checked against those in force.
func ChangesSubtree(r *quota.Revision, at quota.Subtree) (changed, known bool) {
	switch {
	case r.ChangeCount == len(r.Changes):
		return slices.ContainsFunc(r.Changes, func(c quota.Change) bool { return changeIsIn(c, at) }), true
	case r.Undoable:
		return slices.ContainsFunc(r.Undo, func(u quota.TreeUndo) bool { return undoIsIn(u, at) }), true
	}
	return false, false
}

// changeIsIn reports whether one difference counts for a subtree.
func changeIsIn(c quota.Change, at quota.Subtree) bool {
	if c.Tree != at.Tree {
		return false
	}
	switch c.Field {
	case "tree":
		return true
	case "path":
		return onOnePath(c.Before, at.Node) || onOnePath(c.Node, at.Node)
	}
	return quota.IsWithin(c.Node, at.Node)
}

// undoIsIn is changeIsIn for all changes of a tree, by what takes them back: the nodes as they were, the paths of new
// nodes, and moves in the other direction.
func undoIsIn(u quota.TreeUndo, at quota.Subtree) bool {
	switch {
	case u.Name != at.Tree:
		return false
	case u.Added || u.Removed || at.Node == "":
		return true
	}
	return slices.ContainsFunc(u.Nodes, func(n quota.NodeSpec) bool { return quota.IsWithin(n.Path, at.Node) }) ||
		slices.ContainsFunc(u.AddedPaths, func(path string) bool { return quota.IsWithin(path, at.Node) }) ||
		slices.ContainsFunc(u.Moves, func(m quota.Move) bool {
			return onOnePath(m.From, at.Node) || onOnePath(m.To, at.Node)
		})
}

func onOnePath(a, b string) bool { return quota.IsWithin(a, b) || quota.IsWithin(b, a) }
