package manifest

import "github.com/goccy/go-yaml/token"

// blockMap reads the lines that begin in the column of the next token.
func (r *reader) blockMap(depth int) (value, error) {
	first := r.peek()
	if err := r.deeper(first, depth); err != nil {
		return value{}, err
	}
	column := first.Position.Column
	m := value{line: first.Position.Line, column: column, kind: kindMap}
	seen := map[string]int{}
	for line := 0; ; {
		tk := r.peek()
		switch {
		case tk == nil || tk.Position.Line > line && tk.Position.Column < column:
			return m, nil
		case tk.Position.Line == line:
			return value{}, r.fail(tk, "%q is too much on this line: one key and its value", tk.Value)
		case tk.Position.Column > column:
			return value{}, r.fail(tk, "the indentation fits no line above")
		}
		e, err := r.key(seen)
		if err != nil {
			return value{}, err
		}
		if e.value, err = r.blockValue(e, depth); err != nil {
			return value{}, err
		}
		m.entries = append(m.entries, e)
		line = r.last().Position.Line
	}
}

// blockValue reads what stands after a key: on the same line a text, {…} or […], or a map or a list on further lines.
// The lines of a map are deeper than the key; those of a list may begin in its column.
func (r *reader) blockValue(e entry, depth int) (value, error) {
	tk := r.peek()
	if tk == nil || tk.Position.Line > e.line && tk.Position.Column <= e.column {
		if tk != nil && tk.Type == token.SequenceEntryType && tk.Position.Column == e.column {
			return r.blockList(depth + 1)
		}
		return value{}, r.nothing(e)
	}
	if tk.Type == token.SequenceEntryType && tk.Position.Line == e.line {
		return value{}, r.fail(tk, "a list begins on the line after %q, indented, or in brackets: [a, b]", e.key)
	}
	if isScalar(tk) && r.isKey() && tk.Position.Line == e.line {
		return value{}, r.fail(tk, "one key on a line: put %q on the next one, indented", tk.Value)
	}
	return r.blockAny(e, depth)
}

// blockList reads the lines that begin with a dash in the column of the next token.
func (r *reader) blockList(depth int) (value, error) {
	first := r.peek()
	if err := r.deeper(first, depth); err != nil {
		return value{}, err
	}
	column := first.Position.Column
	list := value{line: first.Position.Line, column: column, kind: kindList}
	for line := 0; ; {
		tk := r.peek()
		switch {
		case tk == nil || tk.Position.Line > line && tk.Position.Column < column:
			return list, nil
		case tk.Position.Line == line:
			return value{}, r.fail(tk, "%q is too much on this line: one value after a dash", tk.Value)
		case tk.Position.Column > column:
			return value{}, r.fail(tk, "the indentation fits no line above")
		case tk.Type != token.SequenceEntryType:
			return list, nil // a key in the column of the list: the map above goes on
		}
		item, err := r.item(depth)
		if err != nil {
			return value{}, err
		}
		list.items = append(list.items, item)
		line = r.last().Position.Line
	}
}

// item reads a dash and what stands after it.
func (r *reader) item(depth int) (value, error) {
	dash := r.take()
	e := entry{line: dash.Position.Line, column: dash.Position.Column, key: "-"}
	tk := r.peek()
	if tk == nil || tk.Position.Line > e.line && tk.Position.Column <= e.column {
		return value{}, r.nothing(e)
	}
	return r.blockAny(e, depth)
}

// blockAny reads the value that begins with the next token and belongs to a key or a dash.
func (r *reader) blockAny(e entry, depth int) (value, error) {
	tk := r.peek()
	switch {
	case tk.Type == token.SequenceEntryType:
		return r.blockList(depth + 1)
	case isScalar(tk) && r.isKey():
		return r.blockMap(depth + 1)
	default:
		return r.inline(e, depth)
	}
}
