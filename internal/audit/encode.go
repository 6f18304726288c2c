package audit

import (
	"crypto/sha256"
	"strconv"
	"time"
	"unicode/utf8"
)

// The encoder is our own because its bytes are hashed and compared between members: they must not change with a version
// of a library. They are plain JSON without blanks, members in the order below, and texts with the fewest escapes.

// wallLayout is RFC 3339 with milliseconds, in UTC.
const wallLayout = "2006-01-02T15:04:05.000Z"

// Encode appends a record to its chain: it cuts what exceeds a bound, sets Previous and Hash, and returns the record
// with its line, which has no newline.
func Encode(r Record, previous Hash) (Record, []byte) {
	r = bounded(r)
	content := appendContent(nil, &r)
	r.Previous, r.Hash = previous, chainHash(previous, content)
	line := content[:len(content)-1]
	line = append(line, `,"previous":"`...)
	line = append(line, r.Previous.String()...)
	line = append(line, `","hash":"`...)
	line = append(line, r.Hash.String()...)
	return r, append(line, `"}`...)
}

// chainHash is the hash of a record: of the hash of the record before and the record's JSON without both hashes.
func chainHash(previous Hash, content []byte) Hash {
	h := sha256.New()
	h.Write(previous[:])
	h.Write(content)
	return Hash(h.Sum(nil))
}

// appendContent appends the record without its hashes.
func appendContent(to []byte, r *Record) []byte {
	w := objectWriter{out: append(to, '{')}
	w.text("chain", string(r.Chain))
	w.number("number", r.Number)
	w.number("index", r.Index)
	w.signed("time_ms", r.TimeMs)
	w.name("wall")
	w.out = append(w.out, '"')
	w.out = time.UnixMilli(r.WallMs).UTC().AppendFormat(w.out, wallLayout)
	w.out = append(w.out, '"')
	w.text("server", r.Server)
	w.text("kind", string(r.Kind))
	w.text("action", r.Action)
	w.text("actor_kind", r.Actor.Kind)
	w.text("user", r.Actor.User)
	w.text("credential", r.Actor.Credential)
	w.text("via", r.Actor.Via)
	w.text("address", r.Address)
	w.text("outcome", string(r.Outcome))
	w.text("detail", r.Detail)
	w.text("reason", r.Reason)
	w.text("call", r.Call)
	w.text("request_id", r.RequestID)
	w.number("revision", r.Revision)
	if len(r.Changes) > 0 {
		w.name("changes")
		for i, c := range r.Changes {
			w.out = append(w.out, "[,"[min(i, 1)])
			w.out = appendChange(w.out, c)
		}
		w.out = append(w.out, ']')
	}
	w.number("change_count", r.ChangeCount)
	w.number("count", r.Count)
	w.number("from", r.From)
	w.number("to", r.To)
	return append(w.out, '}')
}

func appendChange(to []byte, c Change) []byte {
	w := objectWriter{out: append(to, '{')}
	w.text("tree", c.Tree)
	w.text("node", c.Node)
	w.text("field", c.Field)
	w.text("before", c.Before)
	w.text("after", c.After)
	return append(w.out, '}')
}

// objectWriter leaves out zero values.
type objectWriter struct {
	out []byte
	any bool
}

func (w *objectWriter) name(name string) {
	if w.any {
		w.out = append(w.out, ',')
	}
	w.any = true
	w.out = append(w.out, '"')
	w.out = append(w.out, name...)
	w.out = append(w.out, `":`...)
}

func (w *objectWriter) text(name, value string) {
	if value != "" {
		w.name(name)
		w.out = appendText(w.out, value)
	}
}

func (w *objectWriter) number(name string, value uint64) {
	if value != 0 {
		w.name(name)
		w.out = strconv.AppendUint(w.out, value, 10)
	}
}

func (w *objectWriter) signed(name string, value int64) {
	if value != 0 {
		w.name(name)
		w.out = strconv.AppendInt(w.out, value, 10)
	}
}

// appendText appends a string of JSON. Beside what JSON asks for it escapes DEL and the line separators of Unicode, so
// that a record is one line for every reader.
func appendText(to []byte, text string) []byte {
	const digits = "0123456789abcdef"
	to = append(to, '"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			to = append(to, '\\', byte(c))
		case c < ' ' || c == 0x7f || c >= 0x80 && c < 0xa0 || c == '\u2028' || c == '\u2029':
			to = append(to, '\\', 'u', digits[c>>12&15], digits[c>>8&15], digits[c>>4&15], digits[c&15])
		default:
			to = utf8.AppendRune(to, c)
		}
	}
	return append(to, '"')
}
