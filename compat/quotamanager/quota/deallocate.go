package quota

import (
	"context"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// DeAllocate ends the allocation of a consumer on one tree. It returns false, and logs why, if the consumer is not
// allocated on the tree, or the cluster does not answer.
//
// A consumer that is allocated on several trees of a forest holds them all or none: it cannot give up one of them, so
// DeAllocate returns false and changes nothing. DeAllocateForest ends it on all of them.
func (m *Manager) DeAllocate(treeName, consumerID string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keepTrial()
	t, err := m.treeTarget(treeName)
	if err != nil {
		m.logf("deallocate %s: %v", consumerID, err)
		return false
	}
	held, err := m.heldOn(t.trees[0].GetName(), consumerID)
	switch {
	case err != nil:
		m.logf("deallocate %s on %v: %v", consumerID, t, err)
		return false
	case held == nil:
		m.logf("deallocate %s on %v: it is not allocated", consumerID, t)
		return false
	case len(held.GetClaims()) > 1:
		m.logf("deallocate %s on %v: it is allocated on %d trees together: call DeAllocateForest", consumerID, t,
			len(held.GetClaims()))
		return false
	}
	return m.release(held)
}

// DeAllocateForest ends the allocations of a consumer on the trees of a forest: that of the forest, and those on single
// trees of it. An allocation of the forest ends as a whole, also on trees that were taken out of the forest since. It
// returns true if the consumer was allocated on a tree of the forest and is not any more, and logs what failed.
func (m *Manager) DeAllocateForest(forestName, consumerID string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keepTrial()
	t, err := m.forestTarget(forestName)
	if err != nil {
		m.logf("deallocate %s: %v", consumerID, err)
		return false
	}
	released := 0
	for _, tree := range t.trees {
		held, err := m.heldOn(tree.GetName(), consumerID)
		if err != nil {
			m.logf("deallocate %s on %v: %v", consumerID, t, err)
			return false
		}
		if held == nil {
			continue
		}
		if !m.release(held) {
			return false
		}
		released++
	}
	return released > 0
}

func (m *Manager) release(held *quoratev1.Allocation) bool {
	_, err := m.client.Allocations.Release(context.Background(), &quoratev1.ReleaseRequest{Id: held.GetId()})
	if err != nil {
		m.logf("release %s: %v", held.GetId(), err)
	}
	return err == nil
}
