package browsertest

import (
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// TestItems finds an item by a part of its name, sends its address to another tab, and takes the items of holders that
// have not renewed.
func TestItems(t *testing.T) {
	s := startServers(t, 1, "--ui", "write")[0]
	fill(t, s)
	const cells = `[...document.querySelectorAll("main [role=option]")]`
	b := openTab(t, s.URL()+"/ui/items?tree=ci&resource=aws-quota-slice")
	all := eval[int](b, cells+`.length`)
	b.tabTo("Name contains")
	b.press("-1")
	b.awaitTrue("fewer items are shown, all with the name", cells+`.length > 0 && `+cells+`.length < `+strconv.Itoa(all)+
		` && `+cells+`.every((c) => c.dataset.name.includes("-1"))`)
	name := eval[string](b, cells+`[0].click(), `+cells+`[0].dataset.name`)
	b.awaitTrue("the address has the item", `new URLSearchParams(location.search).get("item") === "`+name+`"`)
	b.open(eval[string](b, "location.href"))
	b.awaitTrue("the address leads to the item", `document.querySelector(".item-details h2").innerText === "`+name+`"`)

	b.open(s.URL() + "/ui/items?tree=ci&resource=aws-quota-slice&state=leased")
	b.tabTo("Reset…")
	b.press(kb.Enter)
	b.tabTo("New state")
	b.press("dirty")
	b.awaitTrue("no item has waited so long", `/^No item has/.test(document.querySelector("dialog p").innerText)`)
	b.tabTo("Not renewed for")
	eval[bool](b, `document.activeElement.select(), true`)
	b.press("0s")
	b.awaitTrue("the holder is named", `/These 4 items would be taken:[\s\S]*build-8 for zoe/.test(document.querySelector("dialog").innerText)`)
	b.checkAccessibility("reset")
	b.picture("items-reset")
	b.tabTo("Take them")
	b.press(kb.Enter)
	b.awaitTrue("the dialog is closed", `!document.querySelector("dialog")`)
	if items := s.Run(t, "item", "list", "ci:aws-quota-slice", "--state", "dirty"); strings.Count(items, "dirty") != 4 {
		t.Errorf("the items are not dirty:\n%s", items)
	}
}
