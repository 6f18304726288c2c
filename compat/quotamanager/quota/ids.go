package quota

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"connectrpc.com/connect"

	"github.com/quorate/quorate/client"
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

const (
	// ConsumerLabel is the label of an allocation with the id of its consumer.
	ConsumerLabel = "quota-manager/consumer"
	// againLabel marks the allocations of consumers that were allocated before.
	againLabel = "quota-manager/again"

	// againMark stands between the first id of an allocation and the fence of the grant before it.
	againMark = "~"
	// treeMark stands between the id of a consumer and the tree that it is allocated on alone.
	treeMark = "@"
)

func aloneID(consumerID, tree string) string { return consumerID + treeMark + tree }

// nameRequest sets the id of a request under whose ids nothing is held.
func (m *Manager) nameRequest(request *quoratev1.AllocateRequest, first, consumerID string) error {
	if _, err := m.lookUp(first); err != nil {
		return err
	}
	request.Id, request.Labels = m.ids[first], map[string]string{ConsumerLabel: consumerID}
	if request.GetId() != first {
		request.Labels[againLabel] = "true"
	}
	return nil
}

// consumerOf is the consumer of an allocation; one that no Manager made is called by its id.
func (m *Manager) consumerOf(id string) string {
	a, err := m.getAllocation(id)
	if err != nil {
		m.logf("read allocation %s: %v", id, err)
	}
	if consumer, labelled := a.GetLabels()[ConsumerLabel]; labelled {
		return consumer
	}
	return id
}

// heldOn returns nil if the consumer holds nothing on the tree.
func (m *Manager) heldOn(tree, consumerID string) (*quoratev1.Allocation, error) {
	alone, err := m.lookUp(aloneID(consumerID, tree))
	if err != nil || alone != nil {
		return alone, err
	}
	joint, err := m.lookUp(consumerID)
	if err != nil || !claims(joint, tree) {
		return nil, err
	}
	return joint, nil
}

func claims(a *quoratev1.Allocation, tree string) bool {
	return slices.ContainsFunc(a.GetClaims(), func(c *quoratev1.HeldClaim) bool { return c.GetTree() == tree })
}

// lookUp finds the allocation that is held under a first id, or one of its successors; nil if none is. Then ids has the
// id for the next one. The successor of an allocation that has ended has the fence of its grant in its id, so that two
// managers that allocate a consumer again at the same time use the same id, and the consumer is counted once.
func (m *Manager) lookUp(first string) (*quoratev1.Allocation, error) {
	if err := m.listSuccessors(); err != nil {
		return nil, err
	}
	if m.ids[first] == "" {
		m.ids[first] = first
	}
	for {
		a, err := m.getAllocation(m.ids[first])
		if err != nil || a == nil {
			return nil, err
		}
		if isLive(a) {
			return a, nil
		}
		m.ids[first] = fmt.Sprint(first, againMark, a.GetFence())
	}
}

func isLive(a *quoratev1.Allocation) bool {
	switch a.GetState() { //nolint:exhaustive // the others have ended
	case quoratev1.AllocationState_ALLOCATION_STATE_HELD, quoratev1.AllocationState_ALLOCATION_STATE_RESERVED,
		quoratev1.AllocationState_ALLOCATION_STATE_WAITING:
		return true
	}
	return false
}

func (m *Manager) getAllocation(id string) (*quoratev1.Allocation, error) {
	answer, err := m.client.Allocations.GetAllocation(context.Background(), &quoratev1.GetAllocationRequest{Id: id})
	if connect.CodeOf(err) == connect.CodeNotFound {
		return nil, nil //nolint:nilnil // no allocation is an answer
	}
	return answer.GetAllocation(), err
}

// listSuccessors reads once which consumers were allocated again by earlier processes: the cluster forgets allocations
// that ended long ago, and with them the way to their successors.
func (m *Manager) listSuccessors() error {
	if m.listed {
		return nil
	}
	found := map[string]string{}
	request := &quoratev1.ListAllocationsRequest{Labels: map[string]string{againLabel: "true"}, PageSize: pageSize}
	for page, err := range client.Pages(context.Background(), m.client.Allocations.ListAllocations, request) {
		if err != nil {
			return err
		}
		for _, a := range page.GetAllocations() {
			if i := strings.LastIndex(a.GetId(), againMark); i >= 0 {
				found[a.GetId()[:i]] = a.GetId()
			}
		}
	}
	maps.Copy(m.ids, found)
	m.listed = true
	return nil
}
