package top

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// snapshotMsg is what a server has answered, linkMsg why one does not.
type (
	snapshotMsg snapshot
	linkMsg     string
)

type model struct {
	snapshot
	width, height int
	hasColors     bool
	// problem says why no server answers; empty while one does. isLoaded is true once one has.
	problem  string
	isLoaded bool
	// active is the pane with the selection; selected is the row of each.
	active   int
	selected [paneCount]int
	// tree is the opened tree; empty for all.
	tree string
	// filter limits the rows; isTyping is true while it is typed.
	filter             string
	isTyping, showHelp bool
}

func newModel(hasColors bool) *model { return &model{width: 80, height: 24, hasColors: hasColors} }

// Init waits for messages.
func (m *model) Init() tea.Cmd { return nil }

// Update takes a message.
func (m *model) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch message := message.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = message.Width, message.Height
	case snapshotMsg:
		m.snapshot, m.problem, m.isLoaded = snapshot(message), "", true
	case linkMsg:
		m.problem = string(message)
	case tea.KeyPressMsg:
		return m, m.press(message)
	}
	m.clampSelection()
	return m, nil
}

func (m *model) press(key tea.KeyPressMsg) tea.Cmd {
	defer m.clampSelection()
	name := key.String()
	switch {
	case name == "ctrl+c":
		return tea.Quit
	case m.showHelp:
		m.showHelp = false
	case m.isTyping:
		m.typeFilter(name, key.Key().Text)
	case name == "q":
		return tea.Quit
	default:
		m.navigate(name)
	}
	return nil
}

func (m *model) typeFilter(name, text string) {
	switch name {
	case "enter":
		m.isTyping = false
	case "esc":
		m.isTyping, m.filter = false, ""
	case "backspace":
		runes := []rune(m.filter)
		m.filter = string(runes[:max(0, len(runes)-1)])
	default:
		m.filter += text
	}
}

func (m *model) navigate(name string) {
	switch name {
	case "?":
		m.showHelp = true
	case "/":
		m.isTyping = true
	case "tab":
		m.active = (m.active + 1) % paneCount
	case "shift+tab":
		m.active = (m.active + paneCount - 1) % paneCount
	case "up", "k":
		m.selected[m.active]--
	case "down", "j":
		m.selected[m.active]++
	case "enter":
		if rows := m.rows(m.active); m.active == nodesPane && len(rows) > 0 {
			m.tree = rows[m.selected[m.active]].tree
			m.selected[m.active] = 0
		}
	case "esc":
		if m.filter == "" {
			m.tree = ""
		}
		m.filter = ""
	}
}

// clampSelection keeps the selected rows within the rows that there are.
func (m *model) clampSelection() {
	for i := range m.selected {
		m.selected[i] = max(0, min(m.selected[i], len(m.rows(i))-1))
	}
}

// rows are those of a pane that the opened tree and the filter leave. Of all trees the fullest nodes are shown.
func (m *model) rows(pane int) []row {
	const shownOfEach = 3
	shown := map[string]int{}
	return slices.DeleteFunc(slices.Clone(m.panes[pane].rows), func(r row) bool {
		if m.filter != "" && !strings.Contains(strings.Join(r.cells, " "), m.filter) {
			return true
		}
		if pane != nodesPane {
			return false
		}
		shown[r.tree]++
		return m.tree != "" && r.tree != m.tree || m.tree == "" && m.filter == "" && shown[r.tree] > shownOfEach
	})
}
