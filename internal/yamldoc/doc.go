// Package yamldoc reads the YAML files that people write: manifests, settings, and the configurations of other systems.
//
// All readers of the repository go through Read, so that one set of bounds holds for every text and every problem
// names its line and column. The YAML library decides what is valid; its parser takes linear time. Because the
// library names only a line, and often the line before the map or list with the mistake, locate looks for the usual
// mistakes in a text that the library refused.
package yamldoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Rules are the bounds of a text. A bound of zero is not checked; the library itself stops at a depth of 10,000.
type Rules struct {
	Bytes   int // of the text
	Depth   int // of maps and lists inside each other; aliases are not followed
	Keys    int // of one map
	Values  int // maps, lists and scalars; those behind an alias count wherever the alias stands
	Aliases int // in the text
	// FirstDocument ignores what follows the first document; otherwise a second document is an error.
	FirstDocument bool
}

// Error is a problem with its place.
type Error struct {
	// Line and Column count from 1, columns in characters. They are 0 if the problem is the text as a whole.
	Line, Column int
	// Message describes the mistake.
	Message string
	// Bound is true if the text may be valid YAML and exceeds one of the Rules.
	Bound bool
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// ErrorAt is a problem at the place of a node.
func ErrorAt(n *yaml.Node, format string, args ...any) *Error {
	return &Error{Line: n.Line, Column: n.Column, Message: fmt.Sprintf(format, args...)}
}

// Document is a text and what it means.
type Document struct {
	// Root is the value of the document, nil if the text has none.
	Root   *yaml.Node
	source cursor
}

// Read parses the document of a text. Errors are of type *Error.
func Read(text []byte, rules Rules) (*Document, error) {
	if rules.Bytes > 0 && len(text) > rules.Bytes {
		return nil, &Error{Bound: true, Message: fmt.Sprintf("the text has more than %d bytes", rules.Bytes)}
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if err := checkEncoding(text); err != nil {
		return nil, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	document := &Document{source: newCursor(text)}
	var first yaml.Node
	if err := decoder.Decode(&first); errors.Is(err, io.EOF) {
		return document, nil
	} else if err != nil {
		return nil, explain(text, err)
	}
	document.Root = first.Content[0]
	if !rules.FirstDocument {
		var second yaml.Node
		if err := decoder.Decode(&second); err == nil {
			return nil, ErrorAt(&second, "a second document begins; a file holds one")
		} else if !errors.Is(err, io.EOF) {
			return nil, explain(text, err)
		}
	}
	if err := rules.check(document.Root); err != nil {
		return nil, err
	}
	return document, nil
}

// checkEncoding refuses texts that are not UTF-8. The library would also read UTF-16, whose places nothing here finds.
func checkEncoding(text []byte) error {
	if utf8.Valid(text) {
		return nil
	}
	for i, line := range splitLines(string(text)) {
		if !utf8.ValidString(line) {
			return &Error{Line: i + 1, Column: 1, Message: "the line is not UTF-8 text"}
		}
	}
	return &Error{Line: 1, Column: 1, Message: "the text is not UTF-8"}
}

// libraryError is how the library words errors of syntax.
var libraryError = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)

func explain(text []byte, refusal error) error {
	lines := splitLines(string(text))
	if err := locateControl(lines); err != nil {
		return err
	}
	if err := locate(lines); err != nil {
		return err
	}
	if err := locateAlias(lines, refusal); err != nil {
		return err
	}
	found := libraryError.FindStringSubmatch(refusal.Error())
	if found == nil {
		return &Error{Line: 1, Column: 1, Message: refusal.Error()}
	}
	line, err := strconv.Atoi(found[1])
	if err != nil {
		line = 1 // the library names no line if it is the first
	} else if strings.HasPrefix(found[2], "did not find expected") {
		line++ // the library counts the lines of these from 0
	}
	line = min(line, len(lines))
	return &Error{Line: line, Column: indentation(lines[line-1]) + 1, Message: found[2]}
}

// locateControl finds the first character that YAML does not allow.
func locateControl(lines []string) *Error {
	for i, line := range lines {
		for at, r := range line {
			if r < ' ' && r != '\t' || r >= 0x7f && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff {
				return &Error{
					Line: i + 1, Column: utf8.RuneCountInString(line[:at]) + 1,
					Message: fmt.Sprintf("the character %U is not text", r),
				}
			}
		}
	}
	return nil
}

// unknownAnchor is how the library words an alias without an anchor, whose place it does not name.
var unknownAnchor = regexp.MustCompile(`^yaml: unknown anchor '(.*)' referenced$`)

func locateAlias(lines []string, refusal error) *Error {
	found := unknownAnchor.FindStringSubmatch(refusal.Error())
	if found == nil {
		return nil
	}
	for i, line := range lines {
		if at := strings.Index(line, "*"+found[1]); at >= 0 {
			return &Error{
				Line: i + 1, Column: utf8.RuneCountInString(line[:at]) + 1,
				Message: fmt.Sprintf("there is no anchor &%s above: put a text that begins with * in quotes", found[1]),
			}
		}
	}
	return nil
}

func (r Rules) check(root *yaml.Node) error {
	m := &measure{rules: r, sizes: map[*yaml.Node]int{}}
	size := m.size(root, 1)
	if m.err == nil && r.Values > 0 && size > r.Values {
		m.refuse(root, "the text has more than %d values, with what aliases stand for written out", r.Values)
	}
	if m.err != nil {
		return m.err
	}
	return nil
}

type measure struct {
	rules   Rules
	aliases int
	sizes   map[*yaml.Node]int // of what aliases stand for, openSize while it is counted
	err     *Error
}

const openSize = -1

// refuse keeps the first problem.
func (m *measure) refuse(n *yaml.Node, format string, args ...any) {
	if m.err == nil {
		m.err = ErrorAt(n, format, args...)
		m.err.Bound = true
	}
}

// size is how many values a node has. It stops counting above the bound, because aliases of aliases multiply.
func (m *measure) size(n *yaml.Node, depth int) int {
	switch {
	case m.err != nil:
		return 0
	case n.Kind == yaml.AliasNode:
		return m.aliasSize(n)
	case n.Kind == yaml.ScalarNode:
		return 1
	case m.rules.Depth > 0 && depth > m.rules.Depth:
		m.refuse(n, "nested deeper than %d levels", m.rules.Depth)
	case n.Kind == yaml.MappingNode && m.rules.Keys > 0 && len(n.Content)/2 > m.rules.Keys:
		m.refuse(n, "a map may have %d keys, and this one has %d", m.rules.Keys, len(n.Content)/2)
	}
	size := 1
	for _, child := range n.Content {
		size += m.size(child, depth+1)
		if m.rules.Values > 0 {
			size = min(size, m.rules.Values+1)
		}
	}
	return size
}

func (m *measure) aliasSize(n *yaml.Node) int {
	m.aliases++
	if most := m.rules.Aliases; most > 0 && m.aliases > most {
		m.refuse(n, "the text has more than %d aliases (*name): write the values out", most)
	}
	size, known := m.sizes[n.Alias]
	if !known {
		m.sizes[n.Alias] = openSize
		size = m.size(n.Alias, 1)
		m.sizes[n.Alias] = size
	}
	if size == openSize && m.err == nil {
		m.err = ErrorAt(n, "the anchor %q contains itself", n.Value)
	}
	return size
}
