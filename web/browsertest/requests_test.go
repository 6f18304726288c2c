package browsertest

import (
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/quorate/quorate/internal/servertest"
)

// TestRequests finds out why a request waits, releases what is in its way, and asks before it requests more: by
// keyboard alone, with the words and numbers of the command line.
func TestRequests(t *testing.T) {
	s := startServers(t, 1, "--ui", "write")[0]
	s.Run(t, "apply", "-f", root+"/examples/cern.yaml", "-f", root+"/examples/ci.yaml")
	s.Run(t, "allocate", "--id", "holds", "--user", "ann", "--at", "cern:atlas/physics/simulation", "--amount", "cores=6")
	if _, err := s.Try(t, "allocate", "--id", "waits", "--user", "bob", "--wait", never, "--keep", "1h", "--async",
		"--at", "cern:atlas/physics/simulation", "--amount", "cores=8"); err == nil {
		t.Fatal("the request does not wait")
	}
	b := openTab(t, s.URL()+"/ui/")
	b.findWhyItWaits(s)
	b.releaseWhatIsInTheWay()
	b.askBeforeRequesting(s)
}

// findWhyItWaits finds a request by the beginning of its id, and compares its page with the command line.
func (b *tab) findWhyItWaits(s *server) {
	b.t.Helper()
	b.find("waits")
	b.awaitTrue("the page of the request says what is in its way", `document.querySelector(".violation")`)
	said := strings.Join(strings.Fields(b.text(".violation")), " ")
	if queue := strings.Join(strings.Fields(s.Run(b.t, "queue", "list")), " "); !strings.HasSuffix(queue, said) {
		b.t.Errorf("the page says %q, and the command line says %q", said, queue)
	}
	if holder := b.text(".who"); !strings.Contains(holder, "ann") {
		b.t.Errorf("the page does not say who is in the way: %q", holder)
	}
	b.picture("allocation-waiting")
}

// find opens the page of an id by the field in the header. The driver types the key that leads there into the field too,
// which a keyboard does not.
func (b *tab) find(id string) {
	b.t.Helper()
	b.press("/")
	if at := b.focus(); at.Name != "Find a node, an id, a page or an action" {
		b.t.Errorf("the key / leads to %s %q", at.Tag, at.Name)
	}
	eval[bool](b, "document.activeElement.select(), true")
	b.press(id, kb.Enter)
}

// releaseWhatIsInTheWay releases the allocation that the remedy names; the request that waited is granted.
func (b *tab) releaseWhatIsInTheWay() {
	b.t.Helper()
	b.tabTo("holds")
	b.press(kb.Enter)
	b.awaitTrue("the page of the holder is shown", `document.querySelector("h1").innerText.startsWith("holds")`)
	b.tabTo("Release…")
	b.press(kb.Enter)
	b.awaitTrue("a dialog says what will follow", `document.querySelector("dialog[open]")?.innerText.includes("cores=6")`)
	b.checkAccessibility("release")
	b.tabTo("Release")
	b.press(kb.Enter)
	b.awaitTrue("it is released", `document.querySelector("h1").innerText.includes("released")`)
	b.find("waits")
	b.awaitTrue("the request is granted", `document.querySelector("h1").innerText.includes("held")`)
}

// askBeforeRequesting begins with the request that was granted, edits it, compares the answer with that of the command
// that the page shows, and makes the request.
func (b *tab) askBeforeRequesting(s *server) {
	b.t.Helper()
	b.tabTo("What if another one like it")
	b.press(kb.Enter)
	b.awaitTrue("the form has the request",
		`[...document.querySelectorAll("form.draft input")].some((i) => i.value === "8")`)
	b.tabTo("Tree")
	b.press("cern")
	b.tabTo("Node")
	b.press("atlas/physics/simulation")
	b.tabTo("Resource")
	b.press("cores")
	b.tabTo("Amount")
	b.press("3")
	b.awaitTrue("it is denied", `document.querySelector(".verdict")?.innerText === "It would be denied now"`)
	b.awaitTrue("a level has its numbers", `[...document.querySelectorAll("table.list tbody tr")].some((row) =>
		row.innerText.replace(/\s+/g, " ").trim() === "cern:atlas/physics/simulation cores 10 8 3 -1 too little")`)
	command := eval[string](b, `[...document.querySelectorAll(".command code")].map((c) => c.innerText)
		.find((c) => c.startsWith("quorate explain"))`)
	program := servertest.Quorate.Path(b.t)
	pasted := strings.Replace(command, "quorate", program+" --server "+s.URL(), 1)
	out, err := exec.CommandContext(b.t.Context(), "sh", "-c", pasted).CombinedOutput()
	said := strings.Join(strings.Fields(b.text(".violation")), " ")
	if err != nil || !strings.Contains(strings.Join(strings.Fields(string(out)), " "), said) {
		b.t.Errorf("the page says %q, and the command %q says %v %s", said, command, err, out)
	}
	b.picture("what-if-denied")

	b.press(kb.Backspace, "2")
	b.awaitTrue("it would be granted", `document.querySelector(".verdict")?.innerText === "It would be granted now"`)
	address := eval[string](b, "location.href")
	if parsed, err := url.Parse(address); err != nil || parsed.Query().Get("amount") != "cores=2" {
		b.t.Errorf("the address does not have the request: %s", address)
	}
	b.open(address)
	b.awaitTrue("the address gives the same answer",
		`document.querySelector(".verdict")?.innerText === "It would be granted now"`)
	b.tabTo("Request it…")
	b.press(kb.Enter)
	b.tabTo("Request it")
	b.press(kb.Enter)
	b.awaitTrue("it is held", `document.querySelector("h1").innerText.includes("held")`)
}
