package yamldoc

import "strings"

type bracket struct {
	line, at int
	mark     byte
	colon    int  // the line, from 1, of the colon of the entry, 0 if it has none
	begun    bool // the entry has a key or a value
	ended    bool // the last key or value is in quotes or brackets, so a comma, a colon or the closing bracket follows
	endLine  int  // of the last key or value
}

// openOrComma is the mistake if the next line goes on like a line outside of brackets.
const openOrComma = "this %c is not closed, or a comma is missing further down"

// flow skips a map or a list in brackets, which may end on a further line.
func (l *locator) flow() *Error {
	l.openBracket()
	for {
		if l.skipBlanks() {
			if l.line+1 == len(l.lines) {
				return l.failOpen("this %c is never closed")
			}
			l.nextLine()
			continue
		}
		if err := l.flowToken(); err != nil || len(l.open) == 0 {
			return err
		}
	}
}

// flowToken skips one mark or text in brackets.
func (l *locator) flowToken() *Error {
	b := &l.open[len(l.open)-1]
	switch c := l.rest()[0]; {
	case c == '}' || c == ']':
		return l.closeBracket(c)
	case c == ',':
		if !b.begun {
			return l.fail("a name or a value is missing before this comma")
		}
		b.begun, b.ended, b.colon = false, false, 0
		l.at++
	case c == ':' && (b.ended || l.isIndicator(':')):
		if b.colon > 0 && b.colon <= l.line {
			return l.failOpen(openOrComma)
		}
		if b.colon > 0 {
			return l.fail("a comma is missing before this key")
		}
		b.begun, b.ended, b.colon = true, false, l.line+1
		l.at++
	case b.ended && b.endLine < l.line:
		return l.failOpen(openOrComma)
	case b.ended:
		return l.fail("a comma is missing before %q", strings.Trim(l.word(), `"'`))
	default:
		return l.flowValue(b, c)
	}
	return nil
}

// flowValue skips a text, or enters a bracket.
func (l *locator) flowValue(b *bracket, first byte) *Error {
	b.begun = true
	b.endLine = l.line
	if l.isProperty() {
		l.at += len(l.word())
		return nil
	}
	switch first {
	case '{', '[':
		b.ended = true
		l.openBracket()
	case '"', '\'':
		b.ended = true
		err := l.quoted()
		b.endLine = l.line
		return err
	case '@', '`', '%', '*', '&':
		return l.fail("%q cannot begin a value: put it in quotes", string(first))
	default:
		start := l.at
		l.plain(",[]{}")
		if rest := l.rest(); rest != "" && strings.IndexByte("[{", rest[0]) >= 0 {
			if l.lines[l.line][l.at-1] == ':' {
				return l.fail("a space is missing after the colon")
			}
			return l.fail("a comma is missing before %q", l.word())
		}
		if l.at == start {
			l.at++ // a mark that plain stops at and that means nothing here
		}
	}
	return nil
}

func (l *locator) openBracket() {
	l.open = append(l.open, bracket{line: l.line, at: l.at, mark: l.rest()[0]})
	l.at++
}

func (l *locator) closeBracket(mark byte) *Error {
	last := l.open[len(l.open)-1]
	if last.mark == '{' && mark != '}' || last.mark == '[' && mark != ']' {
		return l.fail("%q does not close the %q of line %d", string(mark), string(last.mark), last.line+1)
	}
	l.open = l.open[:len(l.open)-1]
	l.at++
	if n := len(l.open); n > 0 {
		l.open[n-1].endLine = l.line
	}
	return nil
}

// failOpen complains at the innermost bracket that is open.
func (l *locator) failOpen(format string) *Error {
	last := l.open[len(l.open)-1]
	l.line, l.at = last.line, last.at
	return l.fail(format, last.mark)
}
