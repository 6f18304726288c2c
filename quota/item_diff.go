package quota

import (
	"fmt"
	"slices"
	"strings"
)

// same tells whether two specifications say the same.
func (s *ItemSpec) same(other *ItemSpec) bool {
	return s == other || s != nil && other != nil && s.text() == other.text() && slices.Equal(s.Names, other.Names)
}

// items compares what is said of the items of a resource. Names are only counted: there may be thousands.
func (d *differ) items(name string, was, is *ItemSpec) {
	if was.same(is) {
		return
	}
	before, after := was.text(), is.text()
	if was != nil && is != nil && !was.onDemand() && !is.onDemand() && !slices.Equal(was.Names, is.Names) {
		after += fmt.Sprintf(" (%d new, %d gone)", is.beyond(was), was.beyond(is))
	}
	d.add("", "items "+name, before, after)
}

// beyond counts the names that another specification does not have.
func (s *ItemSpec) beyond(other *ItemSpec) int {
	count := 0
	for _, name := range s.Names {
		if !other.names(name) {
			count++
		}
	}
	return count
}

// text says a specification for people, but for the names; nothing if there is none.
func (s *ItemSpec) text() string {
	if s == nil {
		return ""
	}
	words := []string{fmt.Sprintf("%d names", len(s.Names))}
	switch len(s.Names) {
	case 0:
		words[0] = fmt.Sprintf("%d to %d on demand", s.Min, s.Max)
	case 1:
		words[0] = "1 name"
	}
	for _, set := range []struct{ word, value string }{
		{"lifespan", spanText(s.Lifespan)},
		{"new", s.State},
		{"released", s.Released},
		{"expired", s.Expired},
		{"ttl", spanText(s.TTL)},
		{"queueing", s.Queueing.text()},
	} {
		if set.value != "" {
			words = append(words, set.word+" "+set.value)
		}
	}
	for _, t := range s.Turns {
		words = append(words, fmt.Sprintf("%s turns %s after %s", t.From, t.To, spanText(t.After)))
	}
	return strings.Join(words, ", ")
}
