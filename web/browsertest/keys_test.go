package browsertest

import (
	"fmt"
	"strings"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func (b *tab) press(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		b.do("pressing a key", chromedp.KeyEvent(key))
	}
}

// focused describes the element that has the focus: what it is, its name, and whether a person sees that it has it.
type focused struct {
	Tag, Name, Href string
	Visible         bool
}

const describeFocus = `(() => {
	const e = document.activeElement ?? document.body, style = getComputedStyle(e);
	const name = e.getAttribute("aria-label") || e.labels?.[0]?.innerText || e.innerText || "";
	return {tag: e.tagName, name: name.trim(), href: e.getAttribute("href") ?? "",
		visible: style.outlineStyle !== "none" || style.boxShadow !== "none"};
})()`

func (b *tab) focus() focused {
	b.t.Helper()
	return eval[focused](b, describeFocus)
}

// tabTo presses Tab until an element has the focus whose name begins with these words. Each element on the way must
// show that it has the focus.
func (b *tab) tabTo(name string) {
	b.t.Helper()
	b.moveTo(kb.Tab, name)
}

// moveTo presses a key until an element has the focus whose name begins with these words.
func (b *tab) moveTo(key, name string) {
	b.t.Helper()
	const most = 300
	var seen []string
	for range most {
		b.press(key)
		at := b.focus()
		if at.Tag == "BODY" {
			continue // the end of the page, from where it begins again
		}
		if !at.Visible {
			b.t.Errorf("it is not visible that %s %q has the focus", at.Tag, at.Name)
		}
		if strings.HasPrefix(at.Name, name) {
			return
		}
		seen = append(seen, fmt.Sprintf("%s %q", at.Tag, firstLine(at.Name)))
	}
	b.t.Fatalf("no key press of %d reached %q, only %s", most, name, strings.Join(seen, ", "))
}
