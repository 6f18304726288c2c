package yamldoc

import (
	"iter"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Entry is a key of a map with its value, both behind aliases.
type Entry struct {
	Key, Value *yaml.Node
}

// Entries lists the keys of a map in their order. Keys that are not words, that merge other maps, or that are there
// twice are reported instead.
func Entries(m *yaml.Node, report func(*Error)) []Entry {
	var entries []Entry
	lines := map[string]int{}
	for i := 0; i+1 < len(m.Content); i += 2 {
		key, value := Target(m.Content[i]), Target(m.Content[i+1])
		line, again := lines[key.Value]
		switch {
		case key.Tag == "!!merge":
			report(ErrorAt(key, "merging (<<) is not read: write the keys out"))
		case key.Kind != yaml.ScalarNode:
			report(ErrorAt(key, "a key is a word, not a map or a list"))
		case again:
			report(ErrorAt(key, "%q is given twice; the first is in line %d", key.Value, line))
		default:
			lines[key.Value] = key.Line
			entries = append(entries, Entry{Key: key, Value: value})
		}
	}
	return entries
}

// All are the keys and values of the map that a document is, in their order; none if it is not a map.
func (d *Document) All() iter.Seq2[string, *yaml.Node] {
	return func(yield func(string, *yaml.Node) bool) {
		if d.Root == nil || d.Root.Kind != yaml.MappingNode {
			return
		}
		for _, e := range Entries(d.Root, func(*Error) {}) {
			if !yield(e.Key.Value, e.Value) {
				return
			}
		}
	}
}

// Target follows an alias to what it stands for.
func Target(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// IsNull reports whether nothing, null or ~ stands at a node.
func IsNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// IsOneLine reports whether a scalar without a tag ends on the line on which it begins. All calls for one document
// together take linear time if they come in the order of the text.
func (d *Document) IsOneLine(n *yaml.Node) bool {
	if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return false
	}
	rest := d.source.seek(n.Line, n.Column)
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		return closingQuote(rest, 1, '"') >= 0
	case n.Style&yaml.SingleQuotedStyle != 0:
		return closingQuote(rest, 1, '\'') >= 0
	default:
		return strings.HasPrefix(rest, n.Value) // a break would be a blank in the value
	}
}

// Begins reports whether the text of a node begins with a prefix. It costs as much as IsOneLine.
func (d *Document) Begins(n *yaml.Node, prefix string) bool {
	return strings.HasPrefix(d.source.seek(n.Line, n.Column), prefix)
}

// closingQuote is where, from a byte on, the quoted text ends; -1 if not on this line.
func closingQuote(text string, from int, quote byte) int {
	for i := from; i < len(text); i++ {
		switch {
		case breakLength(text[i:]) > 0:
			return -1
		case quote == '"' && text[i] == '\\':
			i++
			if breakLength(text[i:]) > 0 {
				return -1
			}
		case text[i] == quote && quote == '\'' && strings.HasPrefix(text[i+1:], "'"):
			i++ // two quotes stand for one
		case text[i] == quote:
			return i
		}
	}
	return -1
}

// IsMarker reports whether a line is a marker of documents, --- or ..., perhaps with something behind it.
func IsMarker(line, marker string) bool {
	rest, found := strings.CutPrefix(line, marker)
	return found && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
}

// cursor finds places in a text. It moves on from the last place, so that places in ascending order cost one pass.
type cursor struct {
	text         string
	offset       int
	line, column int
}

func newCursor(text []byte) cursor { return cursor{text: string(text), line: 1, column: 1} }

func (c *cursor) seek(line, column int) string {
	if line < c.line || line == c.line && column < c.column {
		c.offset, c.line, c.column = 0, 1, 1
	}
	for c.offset < len(c.text) && (c.line < line || c.line == line && c.column < column) {
		if n := breakLength(c.text[c.offset:]); n > 0 {
			c.offset += n
			c.line, c.column = c.line+1, 1
			continue
		}
		_, size := utf8.DecodeRuneInString(c.text[c.offset:])
		c.offset += size
		c.column++
	}
	return c.text[c.offset:]
}

// breakLength is how many bytes the line break has with which a text begins; 0 if it begins with another character.
// These are the line breaks of YAML 1.1, by which the library counts lines.
func breakLength(text string) int {
	switch {
	case text == "":
		return 0
	case text[0] == '\r' && strings.HasPrefix(text, "\r\n"):
		return 2
	case text[0] == '\n' || text[0] == '\r':
		return 1
	case strings.HasPrefix(text, "\u0085"):
		return len("\u0085")
	case strings.HasPrefix(text, "\u2028") || strings.HasPrefix(text, "\u2029"):
		return len("\u2028")
	}
	return 0
}

// splitLines cuts a text at its line breaks. There is at least one line.
func splitLines(text string) []string {
	var lines []string
	start := 0
	for i := 0; i < len(text); {
		n := breakLength(text[i:])
		if n == 0 {
			i++
			continue
		}
		lines = append(lines, text[start:i])
		i += n
		start = i
	}
	return append(lines, text[start:])
}

// indentation is how many blanks a line begins with.
func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
