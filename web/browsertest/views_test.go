package browsertest

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestEveryView looks at every view, in every look: nothing goes wrong in the browser, the page does not scroll
// sideways, and axe finds nothing that matters. The views are those to which the page leads.
func TestEveryView(t *testing.T) {
	servers := startServers(t, 3, "--ui", "write")
	fill(t, servers[0])
	b := openTab(t, servers[0].URL()+"/ui/")
	for view, address := range b.findViews() {
		began := time.Now()
		b.lookAt(view, servers[0].URL()+address)
		t.Logf("%s (%s): %v", view, address, time.Since(began).Round(time.Millisecond))
	}
	b.lookAt("open-tree", servers[0].URL()+"/ui/tree?tree=cern&open=atlas,atlas/operations")
}

// findViews visits the page from its navigation on, and yields one address of each view that it leads to.
func (b *tab) findViews() func(yield func(view, address string) bool) {
	return func(yield func(view, address string) bool) {
		seen, next := map[string]bool{}, []string{"/ui/"}
		for len(next) > 0 {
			address := next[0]
			next = next[1:]
			view := viewOf(address)
			if seen[view] {
				continue
			}
			seen[view] = true
			if !yield(view, address) {
				return
			}
			next = append(next, eval[[]string](b, `[...document.querySelectorAll("a[href^='/ui/']:not([data-load])")]
				.map((a) => a.getAttribute("href"))`)...)
		}
	}
}

// viewOf names what an address shows: a view by itself, or one of something, such as the tree that its query names.
func viewOf(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return address
	}
	name := strings.Trim(strings.TrimPrefix(parsed.Path, "/ui/"), "/")
	if name == "" {
		name = "overview"
	}
	if parsed.RawQuery != "" {
		name += "-of"
	}
	return name
}

func (b *tab) lookAt(view, address string) {
	b.t.Helper()
	b.open(address)
	if heading := b.text("main h1"); strings.Contains(heading, "no such page") {
		b.t.Errorf("%s leads to no page", address)
	}
	b.checkHeadings(view)
	b.lookInEveryWay(view)
	const tabs = `[...document.querySelectorAll("main [role=tab]")]`
	for i := range eval[int](b, tabs+".length") {
		name := eval[string](b, fmt.Sprintf("%s[%d].click(), %[1]s[%[2]d].innerText", tabs, i))
		b.awaitView()
		b.lookInEveryWay(view + "-" + strings.ToLower(firstWord(name)))
	}
}

func firstWord(s string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(s), " ")
	return strings.TrimSpace(word)
}

func (b *tab) lookInEveryWay(name string) {
	b.t.Helper()
	for _, l := range looks {
		b.show(l)
		what := name + "-" + l.String()
		b.checkWidth(what)
		b.checkAccessibility(what)
		b.picture(what)
	}
	b.show(looks[0])
}

// checkHeadings checks that there is one first heading, and that no level is left out.
func (b *tab) checkHeadings(view string) {
	b.t.Helper()
	levels := eval[[]int](b, `[...document.querySelectorAll("h1,h2,h3,h4,h5,h6")].map((h) => Number(h.tagName[1]))`)
	firsts := 0
	for i, level := range levels {
		if level == 1 {
			firsts++
		}
		if i > 0 && level > levels[i-1]+1 {
			b.t.Errorf("%s: a heading of level %d follows one of level %d", view, level, levels[i-1])
		}
	}
	if firsts != 1 {
		b.t.Errorf("%s has %d headings of level 1", view, firsts)
	}
}
