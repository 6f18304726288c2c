package ledger

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// sameItemSpec tells whether two specifications say the same.
func sameItemSpec(s, other *quota.ItemSpec) bool {
	return s == other || s != nil && other != nil && itemSpecText(s) == itemSpecText(other) && slices.Equal(s.Names, other.Names)
}

// items compares what is said of the items of a resource. Names are only counted: there may be thousands.
func (d *differ) items(name string, was, is *quota.ItemSpec) {
	if sameItemSpec(was, is) {
		return
	}
	before, after := itemSpecText(was), itemSpecText(is)
	if was != nil && is != nil && !was.OnDemand() && !is.OnDemand() && !slices.Equal(was.Names, is.Names) {
		after += fmt.Sprintf(" (%d new, %d gone)", itemsBeyond(is, was), itemsBeyond(was, is))
	}
	d.add("", "items "+name, before, after)
}

// itemsBeyond counts the names that another specification does not have.
func itemsBeyond(s, other *quota.ItemSpec) int {
	count := 0
	for _, name := range s.Names {
		if !specNamesItem(other, name) {
			count++
		}
	}
	return count
}

// itemSpecText says a specification for people, but for the names; nothing if there is none.
func itemSpecText(s *quota.ItemSpec) string {
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
		{"queueing", queueingText(s.Queueing)},
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
