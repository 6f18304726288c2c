package cli

import (
	"os"

	"github.com/charmbracelet/x/ansi"
)

// hasColours reports whether standard output is a terminal that shows colours. NO_COLOR (no-color.org) turns them off,
// CLICOLOR_FORCE turns them on, also for a pipe.
func (c *Env) hasColours() bool {
	if os.Getenv("NO_COLOR") != "" {
		return false
	}
	if forced := os.Getenv("CLICOLOR_FORCE"); forced != "" && forced != "0" {
		return true
	}
	return IsInteractive(c.Out)
}

var (
	good    = ansi.NewStyle().ForegroundColor(ansi.Green)
	careful = ansi.NewStyle().ForegroundColor(ansi.Yellow)
	bad     = ansi.NewStyle().ForegroundColor(ansi.Red)
	noted   = ansi.NewStyle().ForegroundColor(ansi.Cyan)
)

// differenceColours are the colours of lines by their sign.
var differenceColours = map[byte]ansi.Style{
	'+': good, '>': good, '*': good, '~': careful, '-': bad, '<': bad, '!': bad,
}

func paintDifference(line string) string {
	for i := range len(line) {
		if line[i] == ' ' {
			continue
		}
		if style, known := differenceColours[line[i]]; known {
			return line[:i] + style.Styled(line[i:])
		}
		break
	}
	return line
}

// anyText stands for all texts of a column.
const anyText = "*"

// cellColours are the colours of states, by the heading of their column.
var cellColours = map[string]map[string]ansi.Style{
	"STATE": {
		"held": good, "free": good, "waiting": careful, "reserved": careful, "dirty": careful, "leased": noted,
		"ended": bad, "expired": bad, "preempted": bad, "revoked": bad, "cancelled": bad, "denied": bad,
	},
	"HEALTHY":    {"yes": good, "no": bad},
	"ROLE":       {"leader": good, "unknown": bad},
	"PROBLEM":    {anyText: bad},
	"OVER":       {anyText: bad},
	"REVOKED BY": {anyText: bad},
}

func paintCell(heading, cell string) string {
	colours := cellColours[heading]
	style, known := colours[cell]
	if !known {
		style, known = colours[anyText]
	}
	if !known || cell == "" || cell == "-" {
		return cell
	}
	return style.Styled(cell)
}
