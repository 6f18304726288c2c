package top

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// Styles of the terminal. Nothing is told by a colour alone.
const (
	styleBold    = "\x1b[1m"
	styleReverse = "\x1b[7m"
	styleRed     = "\x1b[31m"
	styleYellow  = "\x1b[33m"
	styleReset   = "\x1b[0m"
)

const (
	// barWidth is that of the bar of a node, nearlyFull the percentage from which it is emphasised.
	barWidth   = 20
	nearlyFull = 90
	// leastWidth and leastHeight are what the screen needs.
	leastWidth, leastHeight = 40, 12
)

var paneTitles = [paneCount]string{"FULLEST NODES", "WAITING, OLDEST FIRST", "LEASES, FIRST TO END"}

const helpText = `quorate top

  Tab, Shift-Tab   go to the next or previous pane
  Up, Down         select a row
  Enter            open the tree of the selected node
  Esc              show all rows again; then all trees
  /                show only rows with a text
  q, Ctrl-C        quit

Any key closes this page.`

// View draws the screen.
func (m *model) View() tea.View {
	v := tea.NewView(m.draw())
	v.AltScreen = true
	return v
}

func (m *model) draw() string {
	if m.width < leastWidth || m.height < leastHeight {
		return ansi.Truncate(fmt.Sprintf("top needs a terminal of %dx%d or more", leastWidth, leastHeight), m.width, "…")
	}
	if m.showHelp {
		return m.fit(strings.Split(helpText, "\n"))
	}
	lines := []string{m.styled(styleBold, m.cut(m.headline()))}
	heights := m.paneHeights()
	for i := range paneCount {
		lines = append(lines, m.drawPane(i, heights[i])...)
	}
	return m.fit(append(lines, m.cut(m.footer())))
}

// headline is the cluster, or why no server answers.
func (m *model) headline() string {
	switch {
	case m.problem != "":
		return "NO ANSWER, trying again; what is shown may be old: " + m.problem
	case !m.isLoaded:
		return "waiting for a server"
	}
	return m.cluster
}

func (m *model) footer() string {
	switch {
	case m.isTyping:
		return "/" + m.filter + "_"
	case m.filter != "":
		return "only rows with " + m.filter + "  Esc all  q quit"
	case m.tree != "":
		return "tree " + m.tree + "  Esc all trees  / filter  ? help  q quit"
	}
	return "Tab pane  Enter open tree  / filter  ? help  q quit"
}

// paneHeights divides the lines between the headline and the footer: half of them are for nodes.
func (m *model) paneHeights() [paneCount]int {
	all := m.height - 2
	rest := all - all/2
	return [paneCount]int{all / 2, rest / 2, rest - rest/2}
}

// drawPane draws a title and rows around the selected one, with empty lines up to a height.
func (m *model) drawPane(pane, height int) []string {
	rows := m.rows(pane)
	title := fmt.Sprintf("%s (%d)", paneTitles[pane], len(rows))
	if pane == m.active {
		title = "> " + title
	}
	lines := []string{m.styled(styleBold, m.cut(title))}
	if problem := m.panes[pane].problem; problem != "" {
		lines = append(lines, m.cut("  "+problem))
	}
	room := height - len(lines)
	first := max(0, min(m.selected[pane]-room+1, len(rows)-room))
	widths := columnWidths(rows)
	for i := first; i < min(len(rows), first+room); i++ {
		lines = append(lines, m.drawRow(rows[i], widths, pane == m.active && i == m.selected[pane]))
	}
	for len(lines) < height {
		lines = append(lines, "")
	}
	return lines[:height]
}

// columnWidths are those of the widest cells, within a bound for all but the last column.
func columnWidths(rows []row) []int {
	const most = 34
	var widths []int
	for _, r := range rows {
		for i, cell := range r.cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], min(most, ansi.StringWidth(cell)))
		}
	}
	return widths
}

func (m *model) drawRow(r row, widths []int, isSelected bool) string {
	var line strings.Builder
	line.WriteString(map[bool]string{true: "> ", false: "  "}[isSelected])
	for i, cell := range r.cells {
		if i == 1 && r.tree != "" {
			line.WriteString(bar(r.percent) + "  ")
		}
		if i == len(r.cells)-1 {
			line.WriteString(cell)
			break
		}
		cell = ansi.Truncate(cell, widths[i], "…")
		line.WriteString(cell + strings.Repeat(" ", widths[i]-ansi.StringWidth(cell)+2))
	}
	text := m.cut(strings.TrimRight(line.String(), " "))
	switch {
	case isSelected:
		return m.styled(styleReverse, text)
	case r.tree != "" && r.percent >= 100:
		return m.styled(styleRed, text)
	case r.tree != "" && r.percent >= nearlyFull:
		return m.styled(styleYellow, text)
	}
	return text
}

// bar is the share of a limit, such as "[#####-----]  50%".
func bar(percent int) string {
	if percent < 0 {
		return "[" + strings.Repeat(" ", barWidth) + "]  any"
	}
	filled := min(barWidth, percent*barWidth/100)
	return fmt.Sprintf("[%s%s] %3d%%", strings.Repeat("#", filled), strings.Repeat("-", barWidth-filled), percent)
}

func (m *model) cut(text string) string { return ansi.Truncate(text, m.width, "…") }

// styled gives a line a style, if colours are wanted; without them the marks and numbers say the same.
func (m *model) styled(style, text string) string {
	if !m.hasColors || text == "" {
		return text
	}
	return style + text + styleReset
}

func (m *model) fit(lines []string) string {
	for i := range lines {
		lines[i] = ansi.Truncate(lines[i], m.width, "…")
	}
	return strings.Join(lines[:min(len(lines), m.height)], "\n")
}
