package yamldoc

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/quorate/quorate/internal/verify"
)

func TestReadNamesThePlaceOfEveryMistake(t *testing.T) {
	for text, want := range map[string]string{
		"a: {b: c":                              `line 1, column 4: this { is never closed`,
		"a: [b,\n  c: d\ne: f\n":                `line 1, column 4: this [ is not closed, or a comma is missing further down`,
		"a: [\"b\"\n  'c'\n":                    `line 1, column 4: this [ is not closed, or a comma is missing further down`,
		"a: {b]":                                `line 1, column 6: "]" does not close the "{" of line 1`,
		"a: {b: 1 c: 2}":                        `line 1, column 11: a comma is missing before this key`,
		"a: ['b' 'c']":                          `line 1, column 9: a comma is missing before "c"`,
		"a: [b, c {}]":                          `line 1, column 10: a comma is missing before "{"`,
		"a: [,]":                                `line 1, column 5: a name or a value is missing before this comma`,
		"a: {b:{c: d}}":                         `line 1, column 7: a space is missing after the colon`,
		"a: [b, @c]":                            `line 1, column 8: "@" cannot begin a value: put it in quotes`,
		"a: [*]":                                `line 1, column 5: "*" cannot begin a value: put it in quotes`,
		"a: `b`":                                "line 1, column 4: \"`\" cannot begin a value: put it in quotes",
		"a: 'b\nc: d\n":                         `line 1, column 4: this ' is never closed`,
		"a: \"b\\\"\n":                          `line 1, column 4: this " is never closed`,
		"a: \"b\" c\n":                          `line 1, column 8: "c" is too much on this line`,
		"é: \"ü\" c\n":                          `line 1, column 8: "c" is too much on this line`,
		"a: b: c\n":                             `line 1, column 4: one key on a line: put "b" on the next one, indented`,
		"a: - b\n":                              `line 1, column 4: a list begins on the line after its key`,
		"a: :\n":                                `line 1, column 4: ":" cannot begin a value`,
		"a: ]\n":                                `line 1, column 4: "]" cannot begin a value`,
		"a:\n  : b\n  c\n":                      `line 2, column 3: ":" cannot begin a key`,
		"a:\n  - b\n  c\n":                      `line 3, column 3: "c" is indented like a list, and no dash precedes it`,
		"a:\n- b\nc\n":                          `line 3, column 1: "c" has no value: a key is followed by a colon`,
		"a: b\nc\n":                             `line 2, column 1: "c" has no value: a key is followed by a colon`,
		"a: b\n- c\n":                           `line 2, column 1: "-" cannot begin a key`,
		"a: b\n  c: d\n":                        `line 2, column 3: the indentation fits no line above`,
		"a:\n    b: c\n  d: e\n":                `line 3, column 3: the indentation fits no line above`,
		"a:\n  - b: c\n   d: e\n":               `line 3, column 4: the indentation fits no line above`,
		"a: |\n  b: [\n\n  c\nd: [\n":           `line 5, column 4: this [ is never closed`,
		"- |\n  [\n- a: >-\n    '\n  b: [\n":    `line 5, column 6: this [ is never closed`,
		"a: &b c\nd: !!str e\nf: *b\ng: [\n":    `line 4, column 4: this [ is never closed`,
		"a: b # [\n'c # d': e #[\nf: [g, # h\n": `line 3, column 4: this [ is never closed`,
		"a:\n\tb: c\n":                          `line 2, column 1: a tab is not indentation: use blanks`,
		"a: \"\\q\"\n":                          `line 1, column 1: found unknown escape character`,
		"a: *b\n":                               `line 1, column 4: there is no anchor &b above`,
		"a: &a [*a]\n":                          `line 1, column 8: the anchor "a" contains itself`,
		"a: b\n---\nc: d\n":                     `line 2, column 1: a second document begins; a file holds one`,
		"a: \x00\n":                             `line 1, column 4: the character U+0000 is not text`,
		"a: b\nc: \xff\n":                       `line 2, column 1: the line is not UTF-8 text`,
		"\xff\xfea\x00:\x00":                    `line 1, column 1: the line is not UTF-8 text`,
	} {
		_, err := Read([]byte(text), Rules{})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v; want %s", text, err, want)
		}
	}
}

func TestReadHoldsTextsAgainstTheRules(t *testing.T) {
	tests := map[string]struct {
		text  string
		rules Rules
		want  string
	}{
		"size":   {"a: b", Rules{Bytes: 3}, "the text has more than 3 bytes"},
		"depth":  {"a:\n  - [b]\n", Rules{Depth: 2}, "line 2, column 5: nested deeper than 2 levels"},
		"keys":   {"a: {b: 1, c: 2}", Rules{Keys: 1}, "line 1, column 4: a map may have 1 keys, and this one has 2"},
		"values": {"[a, b, c]", Rules{Values: 3}, "line 1, column 1: the text has more than 3 values"},
		"values by aliases": {
			"a: &a [x, x, x]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]\nd: [*c, *c, *c]\n",
			Rules{Values: 100},
			"line 1, column 1: the text has more than 100 values",
		},
		"aliases": {"a: &a b\nc: [*a, *a]\n", Rules{Aliases: 1}, "line 2, column 9: the text has more than 1 aliases"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Read([]byte(test.text), test.rules)
			if bound := (*Error)(nil); !errors.As(err, &bound) || !bound.Bound ||
				!strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("%v; want %s", err, test.want)
			}
		})
	}
}

func TestReadAcceptsWhatTheRulesAllow(t *testing.T) {
	for text, rules := range map[string]Rules{
		"":                         {},
		"# nothing\n":              {},
		"\ufeffa: b\n":             {},
		"a: &a [x]\nb: [*a, *a]\n": {Bytes: 24, Depth: 3, Keys: 2, Values: 12, Aliases: 2},
		"a: b\n---\n[":             {FirstDocument: true},
	} {
		if _, err := Read([]byte(text), rules); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestEntries(t *testing.T) {
	document, err := Read([]byte("a: 1\n'a': 2\n[b]: 3\n<<: {c: 4}\n\"<<\": 5\nd: &d 6\ne: *d\n"), Rules{})
	if err != nil {
		t.Fatal(err)
	}
	var problems, keys []string
	for _, e := range Entries(document.Root, func(err *Error) { problems = append(problems, err.Error()) }) {
		keys = append(keys, e.Key.Value+"="+e.Value.Value)
	}
	if got, want := strings.Join(keys, " "), "a=1 <<=5 d=6 e=6"; got != want {
		t.Errorf("keys are %s, want %s", got, want)
	}
	want := `line 2, column 1: "a" is given twice; the first is in line 1
line 3, column 1: a key is a word, not a map or a list
line 4, column 1: merging (<<) is not read: write the keys out`
	if got := strings.Join(problems, "\n"); got != want {
		t.Errorf("problems are\n%s\nwant\n%s", got, want)
	}
}

// TestReadIsLinear reads texts that were made to keep a parser busy. Each takes less than a second; quadratic work
// would take minutes.
func TestReadIsLinear(t *testing.T) {
	size := verify.Scale(1<<16, 1<<21)
	for _, begin := range []string{"", "["} {
		for _, part := range []string{
			"k: v\n", "{a: ", "[", "\"", "'", "a, ", "a: ", "- ", "#\n", "? ", "&a ", "!a ", "*a ", "a\n",
			"a\n\n", "a: # x\n",
			"- x\n  # a\n", "# x\n\n", "\n", "\t", "\\", "a:\n b:\n", "- ? a\n",
			"- 'a\n  b'\n", "%A\n", "[a]: b\n", "[a,# x\n", "\u2028",
		} {
			text := begin + strings.Repeat(part, size/len(part))
			began := time.Now()
			document, err := Read([]byte(text), Rules{Depth: 100, FirstDocument: true})
			if err == nil && document.Root != nil {
				askAll(document, document.Root)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("%q and many times %q took %v", begin, part, took)
			}
		}
	}
}

// askAll asks for the end of every text in order.
func askAll(d *Document, n *yaml.Node) bool {
	simple := n.Anchor == "" && n.Kind != yaml.AliasNode && !d.Begins(n, "!")
	if n.Kind == yaml.ScalarNode {
		return simple && d.IsOneLine(n)
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			simple = simple && child.Kind == yaml.ScalarNode &&
				(n.Style&yaml.FlowStyle != 0 || child.Column == n.Column)
		}
		simple = askAll(d, child) && simple
	}
	return simple
}

// FuzzRead looks for texts that crash the reader, for places outside of the text, and for ordinary texts in which
// locate sees a mistake although the library accepts them.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		"a: {b: [c, \"d\"]}\n", "a:\n- b\n- c: d\n  e: f\ng: |\n  h\n", "- - a\n  - b\n", "a: 'b''c' # d\n",
		"{\"a\":1,\"b\":[{}]}",
		"---\na: b\n", "a: &b c\nd: *b\n", "? a\n: b\n", "a:\n  b\n  c\n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		document, err := Read([]byte(text), Rules{Bytes: 1 << 16, Depth: 100, Values: 1000})
		lines := splitLines(strings.TrimPrefix(text, "\ufeff"))
		if err != nil {
			var at *Error
			if !errors.As(err, &at) {
				t.Fatalf("%v is not an Error", err)
			}
			if at.Line > len(lines) || at.Line > 0 && (at.Column < 1 || at.Column > len(lines[at.Line-1])+1) {
				t.Fatalf("the place of %v is outside of the text", err)
			}
			return
		}
		if document.Root != nil && askAll(document, document.Root) && !strings.ContainsAny(text, "?%") {
			if err := locate(lines); err != nil {
				t.Fatalf("in an ordinary text, locate finds %v", err)
			}
		}
	})
}
