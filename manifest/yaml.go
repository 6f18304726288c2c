package manifest

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// maxNesting bounds how deep maps and lists may be inside each other. The deepest legal node needs 38.
const maxNesting = 64

// kind tells what a value is.
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
	plain        bool // for Format: never in quotes
	entries      []entry
	items        []value
}

// shown is how an error names a value that is not what it should be.
func (v value) shown() string {
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
	value        value
}

// unused says why the parts of YAML that a manifest does without are refused.
var unused = map[token.Type]string{
	token.AnchorType:         "anchors (&) and aliases (*) are not used here: write the value out",
	token.AliasType:          "anchors (&) and aliases (*) are not used here: write the value out",
	token.MergeKeyType:       "merging (<<) is not used here: write the keys out",
	token.TagType:            "tags (!) are not used here: put the value in quotes if it begins with !",
	token.DirectiveType:      "directives (%) are not used here: leave the line out",
	token.MappingKeyType:     "keys with ? are not used here: write name: value",
	token.LiteralType:        "texts over several lines are not used here: write \"one\\ntwo\"",
	token.FoldedType:         "texts over several lines are not used here: write \"one two\"",
	token.DocumentHeaderType: "a file holds one document: put all trees under one trees:",
	token.DocumentEndType:    "a file holds one document: put all trees under one trees:",
}

// reader makes maps and lists of tokens.
//
// The YAML library finds the tokens; its parser is not used, because it takes time and stack in the square of the size
// (4 MiB of short keys keep it busy for minutes), and because the maps and lists that a manifest is made of need little
// more than a look at columns.
type reader struct {
	file   string
	tokens token.Tokens
	next   int
}

// read makes a map of a whole text.
func read(file string, text []byte) (value, error) {
	if len(text) > MaxSize {
		return value{}, fmt.Errorf("%s: a manifest may have %d bytes, this one has %d: split it by trees",
			file, MaxSize, len(text))
	}
	if err := checkText(file, text); err != nil {
		return value{}, err
	}
	r := &reader{file: file}
	begun := false // the first --- may stand, but only before everything else
	for _, tk := range lexer.Tokenize(string(bytes.TrimPrefix(text, []byte("\ufeff")))) {
		if tk.Type == token.CommentType {
			continue
		}
		header := tk.Type == token.DocumentHeaderType && !begun
		begun = true
		if header {
			continue
		}
		if err := r.checkToken(tk); err != nil {
			return value{}, err
		}
		r.tokens = append(r.tokens, tk)
	}
	if r.peek() == nil {
		return value{}, &Error{file, 1, 1, "the manifest is empty: it begins with trees:"}
	}
	return r.document()
}

// checkText refuses what no editor writes, before anything looks closer.
func checkText(file string, text []byte) error {
	for line, content := range bytes.Split(text, []byte("\n")) {
		if !utf8.Valid(content) {
			return &Error{file, line + 1, 1, "the line is not UTF-8 text"}
		}
		if before, _, found := bytes.Cut(content, []byte{0}); found {
			return &Error{file, line + 1, utf8.RuneCount(before) + 1, "a zero byte is not text"}
		}
	}
	return nil
}

func (r *reader) checkToken(tk *token.Token) error {
	if tk.Type == token.InvalidType {
		return r.fail(tk, "%s", tk.Error)
	}
	if why, found := unused[tk.Type]; found {
		return r.fail(tk, "%s", why)
	}
	if isScalar(tk) && strings.Contains(strings.TrimSpace(tk.Origin), "\n") {
		return r.fail(tk, "a value ends on its line: the next line is indented too deep, or a quote is missing")
	}
	return nil
}

// document is the one map of a file, and nothing after it.
func (r *reader) document() (value, error) {
	first := r.peek()
	if first.Type == token.MappingStartType {
		root, err := r.flowMap(1)
		if err != nil {
			return value{}, err
		}
		if tk := r.peek(); tk != nil {
			return value{}, r.fail(tk, "nothing may follow the closing }")
		}
		return root, nil
	}
	root, err := r.blockMap(1)
	if err != nil {
		return value{}, err
	}
	if tk := r.peek(); tk != nil {
		return value{}, r.fail(tk, "the indentation fits no line above")
	}
	return root, nil
}

// key reads a name and its colon.
func (r *reader) key(seen map[string]int) (entry, error) {
	tk := r.peek()
	if !isScalar(tk) {
		return entry{}, r.fail(tk, "%q cannot begin a key: a key is a name, a colon and a space", tk.Value)
	}
	if !r.isKey() {
		return entry{}, r.fail(tk, "%q has no value: a key is followed by a colon and a space", tk.Value)
	}
	if line, again := seen[tk.Value]; again {
		return entry{}, r.fail(tk, "%q is here twice: it is already in line %d", tk.Value, line)
	}
	seen[tk.Value] = tk.Position.Line
	r.next += 2
	return entry{line: tk.Position.Line, column: tk.Position.Column, key: tk.Value}, nil
}

func (r *reader) scalar(e entry) (value, error) {
	tk := r.take()
	if tk.Type == token.NullType {
		return value{}, r.nothing(e)
	}
	return value{line: tk.Position.Line, column: tk.Position.Column, text: tk.Value}, nil
}

// isKey tells whether the next token is followed by its colon.
func (r *reader) isKey() bool {
	if r.next+1 >= len(r.tokens) {
		return false
	}
	name, colon := r.tokens[r.next], r.tokens[r.next+1]
	return colon.Type == token.MappingValueType && colon.Position.Line == name.Position.Line
}

func (r *reader) nothing(e entry) error {
	return &Error{r.file, e.line, e.column, fmt.Sprintf("%q has nothing after it: write {} if it is meant to be empty", e.key)}
}

// deeper refuses maps and lists inside each other without end.
func (r *reader) deeper(tk *token.Token, depth int) error {
	if depth > maxNesting {
		return r.fail(tk, "nested deeper than %d levels; a node may be %d deep", maxNesting, maxDepth)
	}
	return nil
}

func (r *reader) peek() *token.Token {
	if r.next == len(r.tokens) {
		return nil
	}
	return r.tokens[r.next]
}

// last is the token that was taken last.
func (r *reader) last() *token.Token { return r.tokens[r.next-1] }

func (r *reader) take() *token.Token {
	tk := r.tokens[r.next]
	r.next++
	return tk
}

func (r *reader) fail(tk *token.Token, format string, args ...any) error {
	return &Error{r.file, tk.Position.Line, tk.Position.Column, fmt.Sprintf(format, args...)}
}

func isScalar(tk *token.Token) bool {
	switch tk.Type { //nolint:exhaustive // all other tokens are punctuation
	case token.StringType, token.SingleQuoteType, token.DoubleQuoteType, token.NullType, token.BoolType,
		token.IntegerType, token.BinaryIntegerType, token.OctetIntegerType, token.HexIntegerType,
		token.FloatType, token.InfinityType, token.NanType:
		return true
	default:
		return false
	}
}
