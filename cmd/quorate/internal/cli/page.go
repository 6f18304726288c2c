package cli

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Page is the text of a table output.
type Page struct {
	bytes.Buffer
	// tables are the rows of all tables, for -o csv.
	tables [][][]string
	// colours is true for a terminal that shows them.
	colours bool
	// chosen are the columns to show, in this order; all if there are none.
	chosen []string
}

// Linef adds a line, with unprintable characters in its arguments escaped.
func (p *Page) Linef(format string, args ...any) {
	fmt.Fprintf(&p.Buffer, format+"\n", printableArgs(args, Printable)...)
}

// Differencef is Linef for a line that begins with the sign of a difference, which decides its colour.
func (p *Page) Differencef(format string, args ...any) {
	line := fmt.Sprintf(format, printableArgs(args, Printable)...)
	if p.colours {
		line = paintDifference(line)
	}
	p.WriteString(line + "\n")
}

// columnGap separates the columns of a table.
const columnGap = "  "

// Table adds rows of columns, with unprintable characters escaped; the first row is the heading. Columns are aligned by
// the cells that a terminal uses, which are two for most East Asian characters.
func (p *Page) Table(rows [][]string) error {
	p.tables = append(p.tables, rows)
	if len(p.chosen) > 0 {
		rows = chooseColumns(rows, p.chosen)
	}
	shown := make([][]string, len(rows))
	var widths []int
	for i, row := range rows {
		for column, cell := range row {
			shown[i] = append(shown[i], Printable(cell))
			if column == len(widths) {
				widths = append(widths, 0)
			}
			widths[column] = max(widths[column], ansi.StringWidth(shown[i][column]))
		}
	}
	for i, row := range shown {
		for column, cell := range row {
			padding := strings.Repeat(" ", widths[column]-ansi.StringWidth(cell))
			if p.colours && i > 0 && column < len(rows[0]) {
				cell = paintCell(rows[0][column], cell)
			}
			if column == len(row)-1 {
				p.WriteString(cell)
				break
			}
			p.WriteString(cell + padding + columnGap)
		}
		p.WriteString("\n")
	}
	return nil
}

var errNoTable = errors.New("this answer has no table: use -o json")

// csv follows RFC 4180, with an empty line between tables. Unprintable characters are escaped as in tables, because
// such files are shown on terminals too; -o json has the exact values.
func (p *Page) csv() ([]byte, error) {
	if len(p.tables) == 0 {
		return nil, errNoTable
	}
	var text bytes.Buffer
	for i, rows := range p.tables {
		if i > 0 {
			text.WriteByte('\n')
		}
		writer := csv.NewWriter(&text)
		for _, row := range rows {
			cells := make([]string, max(len(row), len(rows[0]))) // a table leaves out cells at the end of a row
			for column, cell := range row {
				cells[column] = Printable(cell)
			}
			if err := writer.Write(cells); err != nil {
				return nil, err
			}
		}
		writer.Flush()
		if err := writer.Error(); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

// TrimLines removes the blanks that columns leave at the ends of lines.
func TrimLines(text []byte) []byte {
	lines := bytes.Split(text, []byte("\n"))
	for i, line := range lines {
		lines[i] = bytes.TrimRight(line, " ")
	}
	return bytes.Join(lines, []byte("\n"))
}
