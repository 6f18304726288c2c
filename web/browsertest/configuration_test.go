package browsertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// editManifest replaces a part of the text that is planned, as a person who types does.
const editManifest = `(() => {
	const area = document.querySelector("main textarea");
	area.value = area.value.replace(%q, %q);
	area.dispatchEvent(new Event("input", {bubbles: true}));
})()`

func (b *tab) planFor(s *server, tree string) {
	b.t.Helper()
	b.open(s.URL() + "/ui/plan?tree=" + tree)
	b.awaitTrue("the manifest is there", `document.querySelector("main textarea").value.includes("trees:")`)
}

// edit changes the text and plans it with the keyboard.
func (b *tab) edit(from, to string) {
	b.t.Helper()
	eval[any](b, fmt.Sprintf(editManifest, from, to))
	b.tabTo("Plan")
	for b.focus().Tag != "BUTTON" { // the view has the same name in the navigation
		b.tabTo("Plan")
	}
	b.press(kb.Enter)
}

// TestPlanAndApply plans a manifest, applies exactly that, is refused after another change, and rolls back.
func TestPlanAndApply(t *testing.T) {
	s := startServers(t, 1, "--ui", "write")[0]
	fill(t, s)
	b := openTab(t, s.URL()+"/ui/")

	b.planFor(s, "cern")
	b.edit("simulation: {limits: {cores: 10}}", "simulation: {limitz: {cores: 10}}")
	b.awaitTrue("the mistake is shown", `document.querySelector("main").innerText.includes('has no key "limitz"')`)
	b.edit("limitz: {cores: 10}", "limits: {cores: 9}")
	b.awaitTrue("the plan is shown", `document.querySelector(".plan")?.innerText.includes("10 → 9")`)
	if !strings.Contains(b.text(".plan"), "6 of") && !strings.Contains(b.text(".plan"), "limit cores") {
		t.Errorf("the plan is %s", b.text(".plan"))
	}
	b.tabTo("Reason")
	b.do("writing a reason", chromedp.KeyEvent("fewer racks"))
	b.tabTo("Apply as planned")
	b.press(kb.Enter)
	b.awaitTrue("it is applied", `document.querySelector("main").innerText.includes("Applied: this is revision")`)
	if history := s.Run(t, "revision", "list", "--limit", "1"); !strings.Contains(history, "fewer racks") ||
		!strings.Contains(history, "limit cores: 10 -> 9") {
		t.Errorf("the history has %s", history)
	}

	s.Run(t, "limit", "set", "cern:atlas/physics", "cores=19", "--actor", "ann")
	b.allow("ApplyTrees") // the refusal
	b.edit("cores: 9}", "cores: 8}")
	b.awaitTrue("the conflict is told", `document.querySelector("main").innerText.includes("changed after you loaded it")`)

	b.open(s.URL() + "/ui/history")
	b.awaitTrue("the history is there", `document.querySelector("main").innerText.includes("fewer racks")`)
	b.tabTo("Roll back to this")
	b.press(kb.Enter)
	b.awaitTrue("the plan is shown", `document.querySelector("dialog .plan")?.innerText.includes("19 → 20")`)
}
