package manifest

import (
	"strconv"
	"strings"

	"github.com/quorate/quorate/internal/access"
)

// addRefusal reports a refusal of package access at the innermost value that its field names. The field is a path from
// the value of the entry, such as "groups[0].ref"; a part that the text does not have is ignored.
func (p *parser) addRefusal(what string, at entry, err *access.Error) {
	if end := strings.IndexAny(err.Field+".", ".["); end > 0 {
		what += ", " + err.Field[:end]
	}
	at = at.findField(err.Field)
	plain := *err
	plain.Field = ""
	p.addProblem(at.line, at.column, "%s: %v", what, &plain)
}

// ofElement returns a refusal of the only element of a list with the path within the element; err may be nil.
func ofElement(err *access.Error) *access.Error {
	if err == nil {
		return nil
	}
	inner := *err
	_, inner.Field, _ = strings.Cut(err.Field, "].")
	return &inner
}

// findField returns the last part that the text has.
func (e entry) findField(path string) entry {
	for path != "" {
		next, rest, found := e.value.firstPart(path)
		if !found {
			break
		}
		e, path = next, strings.TrimPrefix(rest, ".")
	}
	return e
}

// firstPart returns what the first part of a path names, a position or a key, and the rest of the path. A key may have
// dots itself, so that the longest one counts.
func (v value) firstPart(path string) (part entry, rest string, found bool) {
	if inner, indexed := strings.CutPrefix(path, "["); indexed {
		number, after, _ := strings.Cut(inner, "]")
		switch i, err := strconv.Atoi(number); {
		case err != nil || i < 0:
		case i < len(v.items):
			return v.items[i].asEntry(), after, true
		case i < len(v.entries):
			return v.entries[i], after, true
		}
		return entry{}, "", false
	}
	longest := -1
	for i, e := range v.entries {
		after, isPrefix := strings.CutPrefix(path, e.key)
		if isPrefix && (after == "" || after[0] == '.' || after[0] == '[') && len(e.key) > longest {
			part, rest, found, longest = v.entries[i].value.asEntry(), after, true, len(e.key)
		}
	}
	return part, rest, found
}

// asEntry is the value at its own position.
func (v value) asEntry() entry { return entry{line: v.line, column: v.column, value: v} }
