package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	quoratev1 "github.com/quorate/quorate/gen/quorate/v1"
)

// demoPrinter tells the story.
type demoPrinter struct {
	out    io.Writer
	colour bool
}

// newDemoPrinter uses colour only where a person looks and has not said no.
func newDemoPrinter(out io.Writer) *demoPrinter {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return &demoPrinter{out: out}
	}
	info, err := file.Stat()
	return &demoPrinter{out: out, colour: err == nil && info.Mode()&os.ModeCharDevice != 0}
}

// Colours of a terminal.
const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
)

func (p *demoPrinter) paint(colour, text string) string {
	if !p.colour {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (p *demoPrinter) line(text string) { _, _ = fmt.Fprintln(p.out, text) } // a reader who went away needs no story

func (p *demoPrinter) chapter(title string) { p.line("\n" + p.paint(bold, "── "+title)) }

func (p *demoPrinter) fact(format string, args ...any) { p.line("   " + fmt.Sprintf(format, args...)) }

func (p *demoPrinter) step(number int, title string) {
	p.line(p.paint(bold, fmt.Sprintf("%2d. %s", number, title)))
}

// move shows a call, what came of it, and what the server said.
func (p *demoPrinter) move(m demoMove, got result) {
	verdict := p.paint(green, "accepted")
	if len(got.refusedAt) > 0 {
		verdict = p.paint(red, "refused")
	}
	p.line(fmt.Sprintf("    %-44s %s %s", m.text(), verdict, p.paint(dim, "via "+got.via)))
	if got.explanation != "" {
		p.line(p.paint(dim, "      “"+got.explanation+"”"))
	}
	if got.over > 0 {
		p.line(p.paint(dim, fmt.Sprintf("      %s is now %d over its limit; it keeps what it has", m.node, got.over)))
	}
}

// text is a move in a few words.
func (m demoMove) text() string {
	switch m.do {
	case setLimit:
		return fmt.Sprintf("limit of %s := %d", short(m.node), m.amount)
	case claim:
		return fmt.Sprintf("claim %d at %s", m.amount, short(m.node))
	case release:
		return "release " + m.id
	}
	return ""
}

// short leaves out what all nodes have in common.
func short(node string) string { return strings.TrimPrefix(node, atlas+"/") }

// usage shows a tree as `quorate usage` does.
func (p *demoPrinter) usage(nodes []*quoratev1.NodeUsage) error {
	var columns page
	if err := columns.table(usageRows(place{tree: demoTree}, nodes)); err != nil {
		return err
	}
	for line := range strings.Lines(string(trimmed(columns.Bytes()))) {
		p.line("   " + strings.TrimSuffix(line, "\n"))
	}
	return nil
}
