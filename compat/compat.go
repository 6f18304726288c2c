// Package compat has the code that the converters of other systems' configurations share, and the front ends that
// answer in their protocols.
//
// Each converter is a package below this one. It reads the configuration of its system and returns trees with notes on
// what differs from the original, or all problems at once.
package compat

import (
	"fmt"
	"strings"

	quoratev1 "github.com/quorate/quorate/client/gen/quorate/v1"
)

// MaxSize is the most bytes of a configuration that a converter reads.
const MaxSize = 4 << 20

// reportedProblems is how many problems an error writes before it only counts the rest.
const reportedProblems = 1000

// Conversion is a converted configuration.
type Conversion struct {
	// Trees are complete, as ApplyTrees takes them: sorted by name, nodes by path, resources by name.
	Trees []*quoratev1.Tree
	// Notes say what was left out, renamed or corrected, one sentence each, in the order of the text. The user should
	// read them once after a conversion.
	Notes []string
}

// Note adds a note.
func (c *Conversion) Note(format string, args ...any) {
	c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
}

// Problems are the reasons why a configuration cannot be converted, in the order of the text.
type Problems []string //nolint:errname // a list of texts

// Error returns the first 1,000 problems, one a line, and the number of the others.
func (p Problems) Error() string {
	shown := []string(p)
	if more := len(p) - reportedProblems; more > 0 {
		shown = append(shown[:reportedProblems:reportedProblems], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(shown, "\n")
}

// Add adds a problem.
func (p *Problems) Add(format string, args ...any) {
	*p = append(*p, fmt.Sprintf(format, args...))
}

// Err returns the problems, or nil if there are none.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

// CheckSize returns an error for a text longer than MaxSize.
func CheckSize(data []byte) error {
	if len(data) > MaxSize {
		return Problems{fmt.Sprintf("the text has %d bytes; up to %d are read: split it", len(data), MaxSize)}
	}
	return nil
}
