package quota

import (
	"context"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// DeAllocate ends the allocation of a consumer on one tree; what it holds on other trees stays. It returns false, and
// logs why, if the consumer is not allocated on the tree, or the cluster does not answer.
//
// A consumer that is allocated on several trees of a forest gives one of them up by a resize.
func (m *Manager) DeAllocate(treeName, consumerID string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keepTrial()
	t, err := m.treeTarget(treeName)
	if err != nil {
		m.logf("deallocate %s: %v", consumerID, err)
		return false
	}
	tree := t.trees[0].GetName()
	held, err := m.heldOn(tree, consumerID)
	switch {
	case err != nil:
		m.logf("deallocate %s on %v: %v", consumerID, t, err)
		return false
	case held == nil:
		m.logf("deallocate %s on %v: it is not allocated", consumerID, t)
		return false
	case len(held.GetClaims()) > 1:
		return m.giveUp(held, tree)
	}
	return m.release(held)
}

// giveUp removes the claim of one tree from an allocation of several.
func (m *Manager) giveUp(held *quoratev1.Allocation, tree string) bool {
	request := &quoratev1.ResizeRequest{Namespace: held.GetNamespace(), Id: held.GetId(), Fence: held.GetFence()}
	for _, claim := range held.GetClaims() {
		if claim.GetTree() != tree {
			continue
		}
		nothing := &quoratev1.ClaimChange{Tree: tree, Node: claim.GetNode(), Amounts: map[string]int64{}}
		for resource := range claim.GetAmounts() {
			nothing.Amounts[resource] = 0
		}
		request.Claims = append(request.Claims, nothing)
	}
	_, err := m.client.Allocations.Resize(context.Background(), request)
	if err != nil {
		m.logf("release %s on tree %s: %v", held.GetId(), tree, err)
	}
	return err == nil
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
	_, err := m.client.Allocations.Release(context.Background(),
		&quoratev1.ReleaseRequest{Namespace: held.GetNamespace(), Id: held.GetId(), Fence: held.GetFence()})
	if err != nil {
		m.logf("release %s: %v", held.GetId(), err)
	}
	return err == nil
}
