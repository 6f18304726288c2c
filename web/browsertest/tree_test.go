package browsertest

import (
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// activeRow is the name in the row that the tree grid says is active, and whether it is open.
const activeRow = `(() => {
	const row = document.getElementById(document.activeElement.getAttribute("aria-activedescendant") ?? "");
	return (row?.querySelector("a")?.innerText ?? "") + " " + (row?.getAttribute("aria-expanded") ?? "");
})()`

// TestTreeByKeyboard opens levels of a tree, moves between nodes and reaches one, with keys alone.
func TestTreeByKeyboard(t *testing.T) {
	s := startServers(t, 1)[0]
	s.Run(t, "apply", "-f", root+"/examples/cern.yaml")
	b := openTab(t, s.URL()+"/ui/tree?tree=cern")
	b.awaitTrue("the first level is there", `document.querySelectorAll("[role=treegrid] [role=rowheader]").length > 1`)
	b.tabTo("Nodes of cern")
	for _, step := range []struct{ key, want string }{
		{kb.ArrowDown, "atlas false"},
		{kb.ArrowRight, "atlas true"},
		{kb.ArrowRight, "operations false"},
		{"p", "physics false"},
		{kb.ArrowRight, "physics true"},
		{kb.End, "simulation "},
		{kb.ArrowLeft, "physics true"},
		{kb.ArrowLeft, "physics false"},
		{kb.Home, "cern true"},
		{"o", "operations false"},
	} {
		b.press(step.key)
		await(t, "the active row is "+step.want, func() bool { return eval[string](b, activeRow) == step.want })
		b.awaitTrue("open levels are there", `!document.querySelector("[role=treegrid]").innerText.includes("Reading")`)
	}
	b.awaitTrue("the address has the open nodes", `location.search.includes("open=atlas")`)
	b.press(kb.Enter)
	b.awaitTrue("the node is shown", `document.querySelector("h1").innerText === "operations" &&
		location.search.includes("atlas%2Foperations")`)
}
