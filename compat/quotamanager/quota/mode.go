package quota

import (
	"context"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// GetMode returns the mode. With WithSharedMode it is Maintenance if any of the trees is in maintenance.
func (m *Manager) GetMode() Mode {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.currentMode()
}

// GetModeString returns the mode as a text.
func (m *Manager) GetModeString() string {
	return modeText(m.GetMode())
}

func modeText(mode Mode) string {
	switch mode {
	case Normal:
		return "mode set to Normal"
	case Maintenance:
		return "mode set to Maintenance"
	}
	return "mode set to Unknown"
}

// SetMode sets the mode; every value but Normal acts as Maintenance. It returns false, and logs why, if the cluster
// refuses the mode, which happens only with WithSharedMode. Trees are then changed one after the other, and those
// before the refused one keep the new mode.
func (m *Manager) SetMode(mode Mode) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keepTrial()
	if m.sharedMode {
		if err := m.setMaintenance(mode != Normal); err != nil {
			m.logf("set the mode: %v", err)
			return false
		}
	}
	m.mode = mode
	return true
}

func (m *Manager) setMaintenance(on bool) error {
	trees, err := m.readTrees()
	if err != nil {
		return err
	}
	for _, t := range trees.list {
		if trees.maintained[t.GetName()] == on {
			continue
		}
		request := &quoratev1.SetMaintenanceRequest{Tree: t.GetName(), On: on}
		if _, err := m.client.Trees.SetMaintenance(context.Background(), request); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manager) currentMode() Mode {
	if !m.sharedMode {
		return m.mode
	}
	trees, err := m.readTrees()
	if err != nil {
		m.logf("read the mode: %v", err)
		return m.mode
	}
	for _, t := range trees.list {
		if trees.maintained[t.GetName()] {
			return Maintenance
		}
	}
	if len(trees.list) > 0 {
		return Normal
	}
	return m.mode
}

// requestMode is the mode of requests outside of tries. In the shared mode the trees themselves force.
func (m *Manager) requestMode() quoratev1.Mode {
	if m.sharedMode || m.mode == Normal {
		return quoratev1.Mode_MODE_REJECT
	}
	return quoratev1.Mode_MODE_FORCE
}
