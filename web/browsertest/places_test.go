package browsertest

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// openRows has the names of the nodes that the tree grid shows.
const openRows = `[...document.querySelectorAll("[role=treegrid] [role=rowheader] a")].map((a) => a.innerText).join(" ")`

// someRows are those of examples/cern.yaml with atlas opened.
const someRows = "cern atlas operations physics"

// click clicks what a selector finds and a text begins, as a mouse does.
func (b *tab) click(selector, text string) {
	b.t.Helper()
	found := `[...document.querySelectorAll("` + selector + `")].find((e) => e.innerText.startsWith("` + text + `"))`
	b.awaitTrue(selector+" "+text+" is there", found)
	eval[any](b, "void "+found+".click()")
}

func (b *tab) awaitRows(names string) {
	b.t.Helper()
	b.awaitTrue("the rows are "+names, openRows+` === "`+names+`"`)
}

// TestBackToTheSamePlace goes from the overview to a tree, opens a level, goes to a node and back: the level is open
// still. Once by pointer and once by keyboard alone.
func TestBackToTheSamePlace(t *testing.T) {
	s := startServers(t, 1)[0]
	s.Run(t, "apply", "-f", root+"/examples/cern.yaml")
	for name, openNode := range map[string]func(b *tab){"pointer": openNodeByPointer, "keyboard": openNodeByKeys} {
		t.Run(name, func(t *testing.T) {
			b := openTab(t, s.URL()+"/ui/")
			openNode(b)
			b.awaitTrue("the node is shown", `location.pathname === "/ui/node" &&
				document.querySelector("h1")?.innerText === "physics"`)
			eval[any](b, "void history.back()")
			b.awaitRows(someRows)
			eval[any](b, "void history.back()")
			b.awaitTrue("the overview is shown", `document.querySelector("h1")?.innerText === "Overview"`)
		})
	}
}

func openNodeByPointer(b *tab) {
	b.t.Helper()
	b.click("main h2 a", "cern")
	b.awaitRows("cern atlas")
	b.click("[role=treegrid] [aria-level='2'] .grid-twisty", "▸")
	b.awaitRows(someRows)
	b.click("[role=treegrid] a", "physics")
}

func openNodeByKeys(b *tab) {
	b.t.Helper()
	b.awaitTrue("the tree is there", `document.querySelector("main h2 a")`)
	b.tabTo("cern")
	b.press(kb.Enter)
	b.awaitRows("cern atlas")
	b.tabTo("Nodes of cern")
	b.press(kb.ArrowDown, kb.ArrowRight)
	b.awaitRows(someRows)
	b.press("p", kb.Enter)
}
