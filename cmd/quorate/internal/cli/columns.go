package cli

import (
	"slices"
	"strings"
)

// columnName is how a column is compared: in capitals, and with blanks in place of the characters that need no quotes.
func columnName(text string) string {
	return strings.ToUpper(strings.NewReplacer("-", " ", "_", " ").Replace(strings.TrimSpace(text)))
}

// columnIndex is the place of a column in a heading; -1 if it is not there.
func columnIndex(heading []string, name string) int {
	return slices.IndexFunc(heading, func(column string) bool { return columnName(column) == columnName(name) })
}

// chooseColumns returns the chosen columns of a table, as far as it has them; no rows if it has none.
func chooseColumns(rows [][]string, chosen []string) [][]string {
	var indexes []int
	for _, name := range chosen {
		if at := columnIndex(rows[0], name); at >= 0 {
			indexes = append(indexes, at)
		}
	}
	if len(indexes) == 0 {
		return nil
	}
	shown := make([][]string, len(rows))
	for i, row := range rows {
		for _, at := range indexes {
			cell := ""
			if at < len(row) { // a table leaves out cells at the end of a row
				cell = row[at]
			}
			shown[i] = append(shown[i], cell)
		}
	}
	return shown
}

// checkChosen refuses a chosen column that no table has, and names those that there are. An answer without a table,
// such as that no request waits, is none with other columns.
func (p *Page) checkChosen() error {
	var all []string
	for _, rows := range p.tables {
		for _, column := range rows[0] {
			if column == strings.ToUpper(column) && !slices.Contains(all, column) { // a list of pairs has no headings
				all = append(all, column)
			}
		}
	}
	for _, name := range p.chosen {
		if len(all) > 0 && columnIndex(all, name) < 0 {
			return Usagef("there is no column %q; there are: %s", name, strings.ReplaceAll(strings.Join(all, ","), " ", "-"))
		}
	}
	return nil
}
