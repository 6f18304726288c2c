package ledger

import "github.com/quorate/quorate/quota"

// newSizes are the sizes of the ledger after a change, and by how many bytes it grows.
type newSizes struct {
	trees, nodes, bindings int
	growth                 int64
}

func (n *newSizes) add(s *treeTransition) {
	n.trees += count(s.draft) - count(s.old)
	n.nodes += s.draft.size() - s.old.size()
	n.bindings += countDraftBindings(s.draft) - countDraftBindings(s.old)
	n.growth += s.draft.bytes() - s.old.bytes()
}

// checkSizes refuses a change beyond a bound of the ledger.
func (pl planner) checkSizes(after newSizes, steps []*treeTransition, section accessPlan) *quota.Error {
	switch {
	case after.trees > pl.bounds.Trees:
		return quota.Errorf(quota.Full, "trees", "the ledger would have %d trees; at most %d are allowed", after.trees,
			pl.bounds.Trees)
	case after.nodes > pl.bounds.Nodes:
		return quota.Errorf(quota.Full, "trees", "the ledger would have %d nodes; at most %d are allowed", after.nodes,
			pl.bounds.Nodes)
	}
	if err := pl.checkBindingRoom(after.bindings, section); err != nil {
		return err
	}
	if err := pl.forest.checkItemRoom(steps); err != nil {
		return err
	}
	return pl.checkTreeGrowth(after.growth)
}

func count(t *tree) int {
	if t == nil {
		return 0
	}
	return 1
}

// size is the number of nodes; that of no tree is zero.
func (t *tree) size() int {
	if t == nil {
		return 0
	}
	return len(t.byPath)
}
