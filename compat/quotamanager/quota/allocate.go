package quota

import (
	"context"
	"fmt"
	"slices"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
	"github.com/quorate/quorate/compat"
)

const (
	// longestID is the most bytes of an id of the API.
	longestID = 128
	pageSize  = 1000
)

type target struct {
	tree, forest string
	trees        []*quoratev1.Tree
}

func (m *Manager) treeTarget(treeName string) (target, error) {
	known, err := m.readTrees()
	if err != nil {
		return target{}, err
	}
	tree := known.tree(treeName)
	if tree == nil {
		return target{}, fmt.Errorf("invalid tree name %s", treeName)
	}
	return target{tree: treeName, trees: []*quoratev1.Tree{tree}}, nil
}

func (m *Manager) forestTarget(forestName string) (target, error) {
	known, err := m.readTrees()
	if err != nil {
		return target{}, err
	}
	trees := known.inForest(forestName)
	if len(trees) == 0 && !m.forests[forestName] {
		return target{}, fmt.Errorf("invalid forest name %s", forestName)
	}
	return target{forest: forestName, trees: trees}, nil
}

// String is how the target is called in errors.
func (t target) String() string {
	if t.forest != "" {
		return "forest " + t.forest
	}
	return "tree " + t.tree
}

func (t target) hasTree(tree string) bool {
	return slices.ContainsFunc(t.trees, func(known *quoratev1.Tree) bool { return known.GetName() == tree })
}

func (t target) firstID(consumerID string) string {
	if t.forest != "" {
		return consumerID
	}
	return aloneID(consumerID, t.trees[0].GetName())
}

// Allocate allocates a consumer on one tree, alone. The error names the limits in the way; nothing has changed then. It
// is also an error if the consumer is allocated on the tree already, alone or by its forest.
func (m *Manager) Allocate(treeName, consumerID string) (*AllocationResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, err := m.treeTarget(treeName)
	if err != nil {
		return nil, err
	}
	return m.allocateNow(t, consumerID)
}

// AllocateForest allocates a consumer on those trees of a forest that it names, all or none. The error names the limits
// in the way; nothing has changed then. It is also an error if the consumer names no tree of the forest, or is
// allocated on one of them already.
func (m *Manager) AllocateForest(forestName, consumerID string) (*AllocationResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, err := m.forestTarget(forestName)
	if err != nil {
		return nil, err
	}
	return m.allocateNow(t, consumerID)
}

func (m *Manager) allocateNow(t target, consumerID string) (*AllocationResponse, error) {
	m.keepTrial()
	request, err := m.newRequest(t, consumerID)
	if err != nil {
		return nil, err
	}
	request.Mode = m.requestMode()
	return m.send(request, consumerID)
}

// newRequest makes the request of a consumer that is not allocated on any tree of the target.
func (m *Manager) newRequest(t target, consumerID string) (*quoratev1.AllocateRequest, error) {
	info := m.consumers[consumerID]
	if info == nil {
		return nil, fmt.Errorf("consumer %s does not exist, create and add first", consumerID)
	}
	part := info.on(func(tree string) bool {
		name, err := compat.Name(tree)
		return err == nil && t.hasTree(name)
	})
	if len(part.Trees) == 0 {
		return nil, fmt.Errorf("failure creating consumer %s: its description has no request on %v", consumerID, t)
	}
	request, err := part.Request(t.trees)
	if err != nil {
		return nil, err
	}
	first := t.firstID(consumerID)
	if len(first) > longestID {
		return nil, fmt.Errorf("consumer %s needs the id %q, which is longer than %d bytes: use a shorter id", consumerID,
			first, longestID)
	}
	for _, claim := range request.GetClaims() {
		held, err := m.heldOn(claim.GetTree(), consumerID)
		if err != nil {
			return nil, err
		}
		if held != nil {
			return nil, fmt.Errorf("consumer %s already allocated on %v", consumerID, t)
		}
	}
	return request, m.nameRequest(request, first, consumerID)
}

// send makes a request, and tells the preempted consumers by their ids.
func (m *Manager) send(request *quoratev1.AllocateRequest, consumerID string) (*AllocationResponse, error) {
	answer, err := m.client.Allocations.Allocate(context.Background(), request)
	if err != nil {
		return nil, fmt.Errorf("failed to allocate consumer %s: %w", consumerID, err)
	}
	r := &AllocationResponse{
		consumerID: consumerID, message: answer.GetDecision().GetExplanation(), preempted: map[string]bool{},
		fence: answer.GetAllocation().GetFence(),
	}
	for _, victim := range answer.GetDecision().GetPreempted() {
		r.preempted[m.consumerOf(victim.GetId())] = true
	}
	return r, nil
}

// IsAllocated reports whether a consumer is allocated on a tree, alone or by its forest. If the cluster does not
// answer, it logs why and returns false.
func (m *Manager) IsAllocated(treeName, consumerID string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, err := m.treeTarget(treeName)
	if err != nil {
		m.logf("is %s allocated: %v", consumerID, err)
		return false
	}
	held, err := m.heldOn(t.trees[0].GetName(), consumerID)
	if err != nil {
		m.logf("is %s allocated on %v: %v", consumerID, t, err)
	}
	return held != nil
}

// IsAllocatedForest reports whether a consumer is allocated on the trees of a forest that it names: all those of its
// description or, if the Manager has none, at least one. If the cluster does not answer, it logs why and returns false.
func (m *Manager) IsAllocatedForest(forestName, consumerID string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, err := m.forestTarget(forestName)
	if err != nil {
		m.logf("is %s allocated: %v", consumerID, err)
		return false
	}
	all, some := true, false
	for _, tree := range t.trees {
		held, err := m.heldOn(tree.GetName(), consumerID)
		if err != nil {
			m.logf("is %s allocated on %v: %v", consumerID, t, err)
			return false
		}
		some = some || held != nil
		all = all && (held != nil || !m.requests(consumerID, tree))
	}
	return some && all
}

func (m *Manager) requests(consumerID string, tree *quoratev1.Tree) bool {
	info := m.consumers[consumerID]
	return info != nil && len(info.on(func(name string) bool {
		given, err := compat.Name(name)
		return err == nil && given == tree.GetName()
	}).Trees) > 0
}
