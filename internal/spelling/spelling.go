// Package spelling finds the name that was meant by one that does not exist.
package spelling

import "strings"

// mostEdits is how many letters a name may differ by from one that is suggested.
const mostEdits = 2

// Nearest is the first of the names that are spelled most similarly to what was typed, in upper or lower case, or that
// begin with it; empty if there is none.
func Nearest(typed string, names []string) string {
	if typed == "" {
		return ""
	}
	typed = strings.ToLower(typed)
	nearest, fewest := "", min(mostEdits, len(typed)/2)+1
	for _, name := range names {
		lower := strings.ToLower(name)
		if edits, near := EditsWithin(typed, lower, fewest-1); near {
			nearest, fewest = name, edits
		}
	}
	if nearest != "" {
		return nearest
	}
	for _, name := range names {
		if strings.HasPrefix(strings.ToLower(name), typed) {
			return name
		}
	}
	return ""
}

// EditsWithin is the number of letters to insert, delete or replace that make one word of another; false if they are
// more than most. Most pairs of names differ at once, so a search among many ends early with nearly all of them.
func EditsWithin(a, b string, most int) (edits int, within bool) {
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return 0, false
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		least := row[0]
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
			least = min(least, row[j+1])
		}
		if least > most {
			return 0, false
		}
	}
	return row[len(b)], row[len(b)] <= most
}
