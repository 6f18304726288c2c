package yamldoc

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// locate finds the first of the usual mistakes in a text that the library refused; nil if there is none. It follows the
// columns of maps and lists, and brackets and quotes, and no other part of YAML, so it can mistake an unusual text for
// a wrong one. It is therefore used only to find the position of a mistake, never to decide whether there is one.
func locate(lines []string) *Error {
	l := &locator{lines: lines}
	for l.line < len(l.lines) {
		if err := l.blockLine(); err != nil {
			return err
		}
	}
	return nil
}

type locator struct {
	lines  []string
	line   int // from 0
	at     int // byte of the line
	levels []level
	open   []bracket
}

// level is a map or a list whose keys or dashes begin in one column.
type level struct {
	column int
	list   bool
	filled bool // the last key or dash has a value, so deeper lines are a mistake
}

// blockLine reads a line outside of brackets, and the further lines of a value that begins on it.
func (l *locator) blockLine() *Error {
	l.at = indentation(l.lines[l.line])
	rest := l.rest()
	switch {
	case isEmpty(rest):
		l.nextLine()
		return nil
	case rest[0] == '\t':
		return l.fail("a tab is not indentation: use blanks")
	case l.at == 0 && (rest[0] == '%' || IsMarker(rest, "---") || IsMarker(rest, "...")):
		l.levels = nil
		l.nextLine()
		return nil
	}
	for l.isIndicator('-') {
		if err := l.enter(true); err != nil {
			return err
		}
		l.at++
		if l.skipBlanks() {
			l.nextLine()
			return nil
		}
	}
	return l.keyOrValue()
}

// keyOrValue reads what begins a line or follows a dash.
func (l *locator) keyOrValue() *Error {
	line, start := l.line, l.at
	word := l.word()
	if l.isIndicator(':') {
		return l.fail("%q cannot begin a key: a key is a name, a colon and a space", ":")
	}
	block, err := l.value()
	if err != nil || block {
		return err
	}
	l.skipBlanks()
	if l.line == line && l.isIndicator(':') {
		end := l.at
		l.at = start
		if err := l.enter(false); err != nil {
			return err
		}
		l.at = end + 1
		return l.keyValue()
	}
	if fault := l.checkBareValue(start); fault != "" {
		l.line, l.at = line, start
		return l.fail(fault, word)
	}
	return l.endValue()
}

// isEmpty is true for a line with nothing but blanks and a comment.
func isEmpty(line string) bool {
	line = strings.TrimLeft(line, " \t")
	return line == "" || line[0] == '#'
}

// checkBareValue returns the mistake of a value in the place of a key or a dash.
func (l *locator) checkBareValue(column int) string {
	n := len(l.levels)
	for n > 0 && l.levels[n-1].column > column {
		n--
	}
	switch {
	case n == 0 || l.levels[n-1].column < column:
		return ""
	case l.levels[n-1].list && (n == 1 || l.levels[n-2].column < column):
		return "%q is indented like a list, and no dash precedes it"
	default:
		return "%q has no value: a key is followed by a colon and a space"
	}
}

func (l *locator) keyValue() *Error {
	if l.skipBlanks() {
		l.nextLine()
		return nil
	}
	start, word := l.at, l.word()
	switch {
	case l.isIndicator('-'):
		return l.fail("a list begins on the line after its key, indented, or in brackets: [a, b]")
	case l.isIndicator(':'), strings.ContainsRune(",]}", rune(word[0])):
		return l.fail("%q cannot begin a value: put it in quotes", word[:1])
	}
	block, err := l.value()
	if err != nil || block {
		return err
	}
	l.skipBlanks()
	if l.isIndicator(':') && l.at > start {
		name := strings.TrimSpace(l.lines[l.line][start:l.at])
		l.at = start
		return l.fail("one key on a line: put %q on the next one, indented", clip(name))
	}
	return l.endValue()
}

func (l *locator) endValue() *Error {
	if n := len(l.levels); n > 0 {
		l.levels[n-1].filled = true
	}
	if !l.skipBlanks() {
		return l.fail("%q is too much on this line: a value must be on one line, or a quote is missing", l.word())
	}
	l.nextLine()
	return nil
}

// value reads a quoted text, a map or list in brackets, a plain text, or, which the result says, a text in a block.
func (l *locator) value() (bool, *Error) {
	for l.isProperty() {
		l.at += len(l.word())
		if l.skipBlanks() {
			return false, nil
		}
	}
	switch c := l.lines[l.line][l.at]; c {
	case '"', '\'':
		return false, l.quoted()
	case '{', '[':
		return false, l.flow()
	case '@', '`', '%', '*', '&':
		return false, l.fail("%q cannot begin a value: put it in quotes", string(c))
	case '|', '>':
		l.blockText()
		return true, nil
	default:
		l.plain("")
		return false, nil
	}
}

// blockText skips the deeper lines of a text that | or > announces.
func (l *locator) blockText() {
	parent := -1
	if n := len(l.levels); n > 0 {
		l.levels[n-1].filled = true
		parent = l.levels[n-1].column
	}
	l.nextLine()
	for l.line < len(l.lines) {
		line := l.lines[l.line]
		if strings.TrimSpace(line) != "" && indentation(line) <= parent {
			return
		}
		l.nextLine()
	}
}

// plain skips a text without quotes: to a colon and a blank, a comment, the end of the line, or one of the marks.
func (l *locator) plain(marks string) {
	line := l.lines[l.line]
	for ; l.at < len(line); l.at++ {
		if strings.IndexByte(marks, line[l.at]) >= 0 || l.isIndicator(':') || line[l.at] == '#' && l.afterBlank() {
			return
		}
	}
}

// quoted skips a text in quotes, which may end on a further line.
func (l *locator) quoted() *Error {
	line, at := l.line, l.at
	quote := l.lines[line][at]
	for from := at + 1; ; from = 0 {
		text := l.lines[l.line]
		if end := closingQuote(text, from, quote); end >= 0 {
			l.at = end + 1
			return nil
		}
		if l.line+1 == len(l.lines) {
			l.line, l.at = line, at
			return l.fail("this %c is never closed", quote)
		}
		l.nextLine()
	}
}

// enter notes a key or dash and compares its column with those above.
func (l *locator) enter(list bool) *Error {
	n := len(l.levels)
	for n > 0 && l.levels[n-1].column > l.at {
		n--
	}
	popped := n < len(l.levels)
	l.levels = l.levels[:n]
	if n == 0 || l.levels[n-1].column < l.at {
		if popped || n > 0 && l.levels[n-1].filled {
			return l.fail("the indentation fits no line above")
		}
		l.levels = append(l.levels, level{column: l.at, list: list})
		return nil
	}
	top := &l.levels[n-1]
	switch {
	case top.list == list:
		top.filled = false
	case list && top.filled:
		return l.fail("%q cannot begin a key: a key is a name, a colon and a space", "-")
	case list:
		l.levels = append(l.levels, level{column: l.at, list: true})
	case n > 1 && l.levels[n-2].column == l.at: // the map that has the list as a value continues
		l.levels = l.levels[:n-1]
		l.levels[n-2].filled = false
	default:
		return l.fail("the indentation fits no line above")
	}
	return nil
}

// isIndicator reports whether a dash or colon stands here and a blank or the end of the line follows.
func (l *locator) isIndicator(mark byte) bool {
	rest := l.rest()
	return rest != "" && rest[0] == mark && (len(rest) == 1 || rest[1] == ' ' || rest[1] == '\t')
}

// isProperty reports whether an anchor, an alias or a tag stands here.
func (l *locator) isProperty() bool {
	rest := l.rest()
	return rest != "" && (rest[0] == '!' || len(rest) > 1 && strings.IndexByte("&*", rest[0]) >= 0 &&
		strings.IndexByte(" \t,[]{}*&", rest[1]) < 0)
}

// skipBlanks moves to the next word and reports whether there is none on this line.
func (l *locator) skipBlanks() bool {
	rest := l.rest()
	l.at += len(rest) - len(strings.TrimLeft(rest, " \t"))
	rest = l.rest()
	return rest == "" || rest[0] == '#' && l.afterBlank()
}

// afterBlank reports whether a # begins a comment here. The library also takes one right behind a quote or a bracket.
func (l *locator) afterBlank() bool {
	return l.at == 0 || strings.IndexByte(" \t'\"]}", l.lines[l.line][l.at-1]) >= 0
}

func (l *locator) nextLine() { l.line, l.at = l.line+1, 0 }

func (l *locator) rest() string {
	if l.line >= len(l.lines) {
		return ""
	}
	return l.lines[l.line][min(l.at, len(l.lines[l.line])):]
}

// word is what stands here up to a blank or a colon, for a message.
func (l *locator) word() string {
	rest := l.rest()
	if len(rest) > maxWord {
		rest = rest[:maxWord]
	}
	if end := strings.IndexAny(rest[min(1, len(rest)):], " \t:,[]{}\"'"); end >= 0 {
		rest = rest[:1+end]
	}
	return rest
}

func (l *locator) fail(format string, args ...any) *Error {
	column := utf8.RuneCountInString(l.lines[l.line][:l.at]) + 1
	return &Error{Line: l.line + 1, Column: column, Message: fmt.Sprintf(format, args...)}
}

// maxWord is how many bytes of the text a message shows.
const maxWord = 40

func clip(text string) string {
	if len(text) > maxWord {
		return text[:maxWord] + "…"
	}
	return text
}
