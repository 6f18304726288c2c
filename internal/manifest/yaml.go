package manifest

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/quorate/quorate/internal/yamldoc"
)

// maxNesting bounds how deep maps and lists may be inside each other. The deepest legal node needs 38.
const maxNesting = 64

// kind is the kind of a value.
type kind uint8

const (
	kindText kind = iota
	kindMap
	kindList
)

// value is what stands after a key or a dash: a map, a list, or a text exactly as it is written.
type value struct {
	line, column int
	kind         kind
	text         string
	quoted       bool // in the text that was read
	plain        bool // for Format: never in quotes
	entries      []entry
	items        []value
}

// describeValue is how an error names a value that is not what it should be.
func (v value) describeValue() string {
	switch v.kind {
	case kindMap:
		return "a map"
	case kindList:
		return "a list"
	case kindText:
	}
	return strconv.Quote(v.text)
}

// entry is one key of a map with its value.
type entry struct {
	line, column int
	key          string
	quoted       bool // the key, in the text that was read
	value        value
}

func readText(file string, text []byte) (value, error) {
	if len(text) > MaxSize {
		return value{}, fmt.Errorf("%s: a manifest may have at most %d bytes, this one has %d: split it by trees",
			file, MaxSize, len(text))
	}
	if err := checkMarkers(text); err != nil {
		return value{}, withFile(file, err)
	}
	document, err := yamldoc.Read(text, yamldoc.Rules{Depth: maxNesting})
	if err != nil {
		return value{}, withFile(file, err)
	}
	if document.Root == nil || yamldoc.IsNull(document.Root) && document.Root.Value == "" {
		return value{}, &Error{file, 1, 1, "the manifest is empty: it begins with version: 1 and trees:"}
	}
	root, err := (&converter{document}).convertNode(document.Root, entry{})
	if err == nil && root.kind != kindMap {
		err = yamldoc.ErrorAt(
			document.Root,
			"a manifest is a map and begins with version: 1 and trees:, not with %.40s",
			root.describeValue(),
		)
	}
	if err != nil {
		return value{}, withFile(file, err)
	}
	return root, nil
}

func withFile(file string, err error) error {
	var at *yamldoc.Error
	if errors.As(err, &at) {
		return &Error{file, max(at.Line, 1), max(at.Column, 1), at.Message}
	}
	return fmt.Errorf("%s: %w", file, err)
}

// checkMarkers refuses directives and further documents. It examines lines, because the library hides both. It may do
// so because a string in a manifest never spans several lines.
func checkMarkers(text []byte) error {
	begun := false
	number := 0
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) {
		number++
		line = strings.TrimRight(line, "\r\n")
		marker := yamldoc.IsMarker(line, "---") || yamldoc.IsMarker(line, "...")
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(strings.TrimSpace(line), "#"):
			continue
		case !begun && strings.HasPrefix(line, "%"):
			return &yamldoc.Error{
				Line: number, Column: 1,
				Message: "directives (%) are not supported: remove the line",
			}
		case marker && (begun || line[0] == '.'):
			return &yamldoc.Error{
				Line: number, Column: 1, Message: "a file holds one document: put all trees under one trees:",
			}
		}
		begun = true
	}
	return nil
}

// converter makes values of the nodes of one document and refuses the parts of YAML that a manifest does without.
type converter struct {
	*yamldoc.Document
}

// convertNode converts a node that belongs to a key or a dash. Nodes must be passed in the order of the text.
func (c *converter) convertNode(n *yaml.Node, owner entry) (value, error) {
	v := value{line: n.Line, column: n.Column}
	switch {
	case n.Anchor != "":
		return v, yamldoc.ErrorAt(n, "anchors (&) and aliases (*) are not supported: write the value out")
	case c.Begins(n, "!"):
		return v, yamldoc.ErrorAt(n, "tags (!) are not supported: put the value in quotes if it begins with !")
	case n.Kind == yaml.MappingNode:
		return c.convertMap(v, n)
	case n.Kind == yaml.SequenceNode:
		return c.convertList(v, n)
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return v, yamldoc.ErrorAt(n, `texts over several lines are not supported: write "one\ntwo"`)
	case yamldoc.IsNull(n):
		return v, c.failNull(n, owner)
	case !c.IsOneLine(n):
		return v, yamldoc.ErrorAt(
			n, "a value must be on one line: the next line is indented too deep, or a quote is missing")
	}
	v.text, v.quoted = n.Value, isQuoted(n)
	return v, checkPlainValue(n, v)
}

func isQuoted(n *yaml.Node) bool { return n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 }

// checkPlainValue refuses a value that other YAML tools read as something that no key of a manifest takes. Numbers
// pass: they may be quantities. checkPlain looks at those that are not.
func checkPlainValue(n *yaml.Node, v value) error {
	t := yamldoc.TypeOf(v.text)
	if !v.quoted && (t == yamldoc.Timestamp && strings.Contains(v.text, ":") || v.text == "<<" ||
		t == yamldoc.Float && !strings.ContainsAny(v.text, "0123456789")) {
		return failPlain(n, v.text)
	}
	return nil
}

func failPlain(n *yaml.Node, text string) error {
	return yamldoc.ErrorAt(n, "%q without quotes is %s for other YAML tools: put it in quotes", text, yamldoc.TypeOf(text))
}

// plainNumber matches the numbers that every tool writes as it has read them.
var plainNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-?(?:0|[1-9][0-9]{0,14})$`) })

// isKept reports whether a YAML tool that reads the text without quotes may write the same text again. The letters y
// and n are booleans in the text of YAML 1.1, but for no tool in use.
func isKept(text string) bool {
	return yamldoc.TypeOf(text) == yamldoc.Text || plainNumber().MatchString(text) || isDisputed(text) ||
		len(text) == 1 && strings.Contains("yYnN", text)
}

// isDisputed reports whether the text is a text for YAML 1.1 or for YAML 1.2, but not for both. It is read, because
// tools of that version write it without quotes, and is a warning.
func isDisputed(text string) bool {
	switch yamldoc.TypeOf(text) {
	case yamldoc.Boolean:
		return len(text) > 1 && !strings.EqualFold(text, trueWord) && !strings.EqualFold(text, falseWord)
	case yamldoc.Integer:
		return strings.ContainsAny(text, ":o") || strings.HasPrefix(text, "0") && !strings.ContainsAny(text, "xb_") &&
			strings.ContainsAny(text, "89")
	case yamldoc.Float: // an exponent of YAML 1.1 has a point before it and a sign
		at := strings.IndexAny(text, "eE")
		return strings.Contains(text, ":") ||
			at >= 0 && (!strings.Contains(text, ".") || !strings.ContainsAny(text[at:], "+-"))
	case yamldoc.Special:
		return text == "="
	case yamldoc.Text, yamldoc.Null, yamldoc.Timestamp:
	}
	return false
}

// checkPlain requires that a text that people choose is in quotes if YAML tools would write another one: 16 for 0x10.
func (p *parser) checkPlain(what string, v value) {
	switch {
	case v.line == 0 || v.kind != kindText || v.quoted:
	case !isKept(v.text):
		p.addProblem(v.line, v.column, "%s: %q without quotes is %s for other YAML tools: put it in quotes", what, v.text,
			yamldoc.TypeOf(v.text))
	default:
		p.warnIfDisputed(v.line, v.column, v.text)
	}
}

func (p *parser) warnIfDisputed(line, column int, text string) {
	if isDisputed(text) {
		p.disputed = append(p.disputed, Warning{p.file, line, column, fmt.Sprintf("%q without quotes is %s for some YAML "+
			"tools: put it in quotes", text, yamldoc.TypeOf(text))})
	}
}

func (c *converter) failNull(n *yaml.Node, owner entry) error {
	at, key := n, owner.key
	if owner.line > 0 {
		at = &yaml.Node{Line: owner.line, Column: owner.column}
	} else {
		key = n.Value
	}
	return yamldoc.ErrorAt(at, "%q has nothing after it: write {} if it is meant to be empty", key)
}

func (c *converter) convertMap(v value, n *yaml.Node) (value, error) {
	v.kind = kindMap
	inBraces := n.Style&yaml.FlowStyle != 0
	if inBraces && !c.Begins(n, "{") {
		return v, yamldoc.ErrorAt(n, "a key in brackets has braces of its own: [{name: value}]")
	}
	var problems []*yamldoc.Error
	entries := yamldoc.Entries(n, func(err *yamldoc.Error) { problems = append(problems, err) })
	if len(problems) > 0 {
		return v, problems[0]
	}
	for _, pair := range entries {
		key := pair.Key
		switch {
		case key.Anchor != "" || c.Begins(key, "!"):
			return v, yamldoc.ErrorAt(
				key, "anchors (&) and tags (!) are not supported: put the name in quotes if it begins so")
		case !inBraces && key.Column != n.Column:
			return v, &yamldoc.Error{
				Line: key.Line, Column: n.Column,
				Message: "keys with ? are not supported: write name: value",
			}
		case !isQuoted(key) && !isKept(key.Value):
			return v, failPlain(key, key.Value)
		}
		e := entry{line: key.Line, column: key.Column, key: key.Value, quoted: isQuoted(key)}
		var err error
		if e.value, err = c.convertNode(pair.Value, e); err != nil {
			return v, err
		}
		v.entries = append(v.entries, e)
	}
	return v, nil
}

func (c *converter) convertList(v value, n *yaml.Node) (value, error) {
	v.kind = kindList
	for _, item := range n.Content {
		var owner entry
		if n.Style&yaml.FlowStyle == 0 {
			owner = entry{line: item.Line, column: n.Column, key: "-"}
		}
		converted, err := c.convertNode(item, owner)
		if err != nil {
			return v, err
		}
		v.items = append(v.items, converted)
	}
	return v, nil
}
