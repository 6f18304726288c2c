package quota

import (
	"context"
	"errors"
	"fmt"
	"time"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// trial is the latest try.
type trial struct {
	consumerID string
	target     string
	id         string // of the reservation; empty if the try was refused
	fence      uint64
	timer      *time.Timer
}

// TryAllocate allocates a consumer on one tree like Allocate, and the next call may take it back with UndoAllocate.
// The consumer is kept when another call changes something, or when the undo window is over (WithUndoWindow). It is
// an error outside of the Normal mode.
func (m *Manager) TryAllocate(treeName, consumerID string) (*AllocationResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, err := m.treeTarget(treeName)
	if err != nil {
		return nil, err
	}
	return m.tryAllocate(t, consumerID)
}

// TryAllocateForest allocates a consumer on a forest like AllocateForest, and the next call may take it back with
// UndoAllocateForest; see TryAllocate.
func (m *Manager) TryAllocateForest(forestName, consumerID string) (*AllocationResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, err := m.forestTarget(forestName)
	if err != nil {
		return nil, err
	}
	return m.tryAllocate(t, consumerID)
}

func (m *Manager) tryAllocate(t target, consumerID string) (*AllocationResponse, error) {
	m.keepTrial()
	if m.mode != Normal {
		return nil, errors.New("manager is not in normal mode")
	}
	request, err := m.newRequest(t, consumerID)
	if err != nil {
		return nil, err
	}
	lasts := m.undoWindow + max(m.undoWindow, confirmPatience)
	request.Mode, request.ReserveMs = quoratev1.Mode_MODE_RESERVE, lasts.Milliseconds()
	response, err := m.send(request, consumerID)
	tried := &trial{consumerID: consumerID, target: t.String()}
	if err == nil {
		tried.id, tried.fence = request.GetId(), response.fence
		tried.timer = time.AfterFunc(m.undoWindow, func() { m.endWindow(tried) })
	}
	m.trial = tried
	return response, err
}

// endWindow keeps the consumer of a try that was not undone.
func (m *Manager) endWindow(tried *trial) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.trial == tried {
		m.keepTrial()
	}
}

func (m *Manager) keepTrial() {
	tried := m.trial
	m.trial = nil
	if tried == nil || tried.id == "" {
		return
	}
	tried.timer.Stop()
	_, err := m.client.Allocations.Confirm(context.Background(),
		&quoratev1.ConfirmRequest{Id: tried.id, Fence: tried.fence})
	if err != nil {
		m.logf("keep %s on %s: %v", tried.consumerID, tried.target, err)
	}
}

// UndoAllocate takes back the latest TryAllocate of a consumer: every consumer that it preempted or moved is where it
// was before. Undoing a try that was refused changes nothing. It is an error if the latest try was another one, was
// undone before, or has been kept.
func (m *Manager) UndoAllocate(treeName, consumerID string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.undo(target{tree: treeName}, consumerID)
}

// UndoAllocateForest takes back the latest TryAllocateForest of a consumer; see UndoAllocate.
func (m *Manager) UndoAllocateForest(forestName, consumerID string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.undo(target{forest: forestName}, consumerID)
}

func (m *Manager) undo(t target, consumerID string) error {
	tried := m.trial
	if tried == nil || tried.consumerID != consumerID || tried.target != t.String() {
		return fmt.Errorf("failed undo allocate on %v: the latest try is not that of consumer %s, or it was kept already: "+
			"call undo right after the try, or deallocate the consumer", t, consumerID)
	}
	m.trial = nil
	if tried.id == "" {
		return nil
	}
	tried.timer.Stop()
	_, err := m.client.Allocations.Cancel(context.Background(), &quoratev1.CancelRequest{Id: tried.id, Fence: tried.fence})
	if err != nil {
		return fmt.Errorf("failed undo allocate on %v: %w", t, err)
	}
	return nil
}
