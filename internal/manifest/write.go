package manifest

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/quorate/quorate/internal/yamldoc"
)

// A map or list of up to flowLevels levels is written on one line, {limits: {cores: 20}}, if the line is shorter than
// flowWidth bytes.
const (
	flowLevels = 2
	flowWidth  = 100
)

// plainText matches texts that need no quotes, except for those to which some YAML reader gives another type.
var plainText = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.@+/-]*$`)
})

func (v *value) addEntry(key string, child value) {
	v.entries = append(v.entries, entry{key: key, value: child})
}

func (v *value) addFilled(key string, child value) {
	if len(child.entries)+len(child.items) > 0 {
		v.addEntry(key, child)
	}
}

func (v *value) addText(key, text string) {
	if text != "" {
		v.addEntry(key, value{text: text})
	}
}

func (v *value) addFlag(key string, flag bool) {
	if flag {
		v.addEntry(key, value{text: trueWord, plain: true})
	}
}

func (v *value) addCount(key string, count int64) {
	if count != 0 {
		v.addEntry(key, value{text: strconv.FormatInt(count, 10), plain: true})
	}
}

// writeEntries writes each entry on a line of its own.
func writeEntries(text *strings.Builder, depth int, entries []entry) {
	for _, e := range entries {
		writeEntry(text, depth, strings.Repeat("  ", depth), e)
	}
}

// writeEntry writes an entry at a depth; start is the indentation of its line, which may have a dash.
func writeEntry(text *strings.Builder, depth int, start string, e entry) {
	start += quoteText(e.key) + ":"
	text.WriteString(start)
	line, flows := flowText(e.value, flowLevels)
	if flows && (len(start)+len(line) < flowWidth || len(e.value.entries)+len(e.value.items) == 0) {
		text.WriteString(" " + line + "\n")
		return
	}
	text.WriteString("\n")
	writeEntries(text, depth+1, e.value.entries)
	dash := strings.Repeat("  ", depth+1) + "- "
	for _, item := range e.value.items {
		writeItem(text, depth+2, dash, item)
	}
}

// writeItem writes a text, or a map with an entry on each line, after a dash.
func writeItem(text *strings.Builder, depth int, dash string, item value) {
	if line, flows := flowText(item, 1); flows && item.kind == kindText || len(item.entries) == 0 {
		text.WriteString(dash + line + "\n")
		return
	}
	writeEntry(text, depth, dash, item.entries[0])
	writeEntries(text, depth, item.entries[1:])
}

// flowText is false if the value has more levels than that.
func flowText(v value, levels int) (string, bool) {
	if v.plain {
		return v.text, true
	}
	if v.kind == kindText {
		return quoteText(v.text), true
	}
	if levels == 0 {
		return "", false
	}
	var parts []string
	for _, e := range v.entries {
		inner, flows := flowText(e.value, levels-1)
		if !flows {
			return "", false
		}
		parts = append(parts, quoteText(e.key)+": "+inner)
	}
	for _, item := range v.items {
		inner, flows := flowText(item, levels-1)
		if !flows {
			return "", false
		}
		parts = append(parts, inner)
	}
	line := strings.Join(parts, ", ")
	if v.kind == kindList {
		return "[" + line + "]", true
	}
	return "{" + line + "}", true
}

func quoteText(text string) string {
	isPlain := plainText().MatchString(text) && yamldoc.TypeOf(text) == yamldoc.Text
	if isPlain || !utf8.ValidString(text) {
		return text // what is not UTF-8 is left for Parse to refuse
	}
	return strconv.Quote(text)
}
