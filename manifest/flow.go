package manifest

import "github.com/goccy/go-yaml/token"

// inline reads a text, {…} or […], which belongs to a key or a dash.
func (r *reader) inline(e entry, depth int) (value, error) {
	tk := r.peek()
	switch {
	case tk.Type == token.MappingStartType:
		return r.flowMap(depth + 1)
	case tk.Type == token.SequenceStartType:
		return r.flowList(depth + 1)
	case !isScalar(tk):
		return value{}, r.fail(tk, "%q cannot begin a value: put it in quotes", tk.Value)
	default:
		return r.scalar(e)
	}
}

// flowMap reads {name: value, …}.
func (r *reader) flowMap(depth int) (value, error) {
	m := value{kind: kindMap}
	seen := map[string]int{}
	return r.enclosed(m, token.MappingEndType, depth, func(m *value) (string, error) {
		e, err := r.key(seen)
		if err != nil {
			return "", err
		}
		if r.ends(token.MappingEndType) {
			return "", r.nothing(e)
		}
		e.value, err = r.inline(e, depth)
		m.entries = append(m.entries, e)
		return e.key, err
	})
}

// flowList reads [value, …].
func (r *reader) flowList(depth int) (value, error) {
	list := value{kind: kindList}
	return r.enclosed(list, token.SequenceEndType, depth, func(list *value) (string, error) {
		tk := r.peek()
		if r.isKey() {
			return "", r.fail(tk, "a key in brackets has braces of its own: [{name: value}]")
		}
		e := entry{line: tk.Position.Line, column: tk.Position.Column, key: tk.Value}
		item, err := r.inline(e, depth)
		list.items = append(list.items, item)
		return tk.Value, err
	})
}

// enclosed reads parts with commas between them up to the closing mark. A part says the word that it began with.
func (r *reader) enclosed(v value, end token.Type, depth int, part func(*value) (string, error)) (value, error) {
	open := r.take()
	if err := r.deeper(open, depth); err != nil {
		return value{}, err
	}
	v.line, v.column = open.Position.Line, open.Position.Column
	for {
		if r.peek() == nil {
			return value{}, r.fail(open, "this %s is never closed", open.Value)
		}
		if r.peek().Type == end {
			r.take()
			return v, nil
		}
		word, err := part(&v)
		if err != nil {
			return value{}, err
		}
		tk := r.peek()
		switch {
		case tk == nil:
			return value{}, r.fail(open, "this %s is never closed", open.Value)
		case tk.Type == token.CollectEntryType:
			r.take()
		case tk.Type != end:
			return value{}, r.fail(tk, "a comma must stand between %q and %q", word, tk.Value)
		}
	}
}

// ends tells whether a value that should come now does not.
func (r *reader) ends(end token.Type) bool {
	tk := r.peek()
	return tk == nil || tk.Type == token.CollectEntryType || tk.Type == end
}
