package quota

import (
	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// GetMode returns the mode of this Manager.
func (m *Manager) GetMode() Mode {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mode
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

// SetMode sets the mode of this Manager; every value but Normal acts as Maintenance. It returns true.
func (m *Manager) SetMode(mode Mode) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keepTrial()
	m.mode = mode
	return true
}

// requestMode is the mode of requests outside of tries.
func (m *Manager) requestMode() quoratev1.Mode {
	if m.mode == Normal {
		return quoratev1.Mode_MODE_REJECT
	}
	return quoratev1.Mode_MODE_FORCE
}
