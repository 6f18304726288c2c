package plain

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
)

type page struct {
	Title string
	// Source says which node answered, and how old that is; Problem why the page may be wrong. Both may be empty.
	Source, Problem string
	Sections        []section
}

// section has rows whose first column names what the others are about.
type section struct {
	Title string
	// Note is a sentence below the heading, or empty.
	Note string
	Head []string
	Rows [][]string
}

func messagePage(text string) page { return page{Title: "Quorate", Problem: text} }

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

func writeHTML(w io.Writer, p page) error { return pageTemplate.Execute(w, p) }

// writeText aligns columns with spaces.
func writeText(w io.Writer, p page) error {
	var text strings.Builder
	for _, line := range []string{p.Title, p.Source, p.Problem} {
		if line != "" {
			fmt.Fprintln(&text, printable(line))
		}
	}
	for _, s := range p.Sections {
		fmt.Fprintf(&text, "\n%s\n", printable(s.Title))
		if s.Note != "" {
			fmt.Fprintln(&text, printable(s.Note))
		}
		table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
		for _, row := range append([][]string{upper(s.Head)}, s.Rows...) {
			if len(row) > 0 {
				_, _ = fmt.Fprintln(table, printable(strings.Join(row, "\t"))) // a builder takes everything
			}
		}
		_ = table.Flush()
	}
	for line := range strings.Lines(text.String()) {
		if _, err := io.WriteString(w, strings.TrimRight(line, " \n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

func upper(head []string) []string {
	row := make([]string, len(head))
	for i, name := range head {
		row[i] = strings.ToUpper(name)
	}
	return row
}

// printable replaces what would move the cursor of a terminal; a tab separates columns.
func printable(line string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, line)
}
