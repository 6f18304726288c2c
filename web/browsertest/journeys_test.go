package browsertest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// TestWhyARequestWaits finds by keyboard alone why a request waits: by way of the queue, and by way of the search.
func TestWhyARequestWaits(t *testing.T) {
	s := startServers(t, 1)[0]
	fill(t, s)
	b := openTab(t, s.URL()+"/ui/")
	b.press(kb.Tab)
	if first := b.focus(); !strings.HasPrefix(first.Name, "Skip to content") {
		t.Errorf("the first key press leads to %q, not past the header", first.Name)
	}
	b.follow("Queue", "/ui/queue")
	b.follow("sim-2", "/ui/allocation")
	b.awaitTrue("the page says what is missing", `/simulation[\s\S]*missing/.test(document.querySelector("main").innerText)`)
	b.picture("journey-why")
	b.follow("sim-1", "/ui/allocation")
	b.awaitTrue("the name in the way leads to the holder", `document.querySelector("main h1").innerText.includes("sim-1")`)

	b.allow("404") // the search asks whether what was typed so far is an id
	b.press("/")
	if field := b.focus(); field.Tag != "INPUT" {
		t.Fatalf("the key / leads to %+v", field)
	}
	b.press("sim-1")
	b.awaitTrue("the search finds it", `document.querySelector("header [role=option]")`)
	b.press(kb.ArrowDown, kb.Enter)
	b.awaitTrue("the holder is shown", `document.querySelector("main h1").innerText.includes("sim-1")`)
	b.follow("Overview", "/ui/")

	b.press("/")
	eval[bool](b, `document.activeElement.select(), true`) // the driver types the key that leads here
	b.press("SIMUL")
	b.awaitTrue("the search finds a node by a part of its name", `document.querySelector("header [role=option] bdi")`)
	b.press(kb.ArrowDown, kb.Enter)
	b.awaitTrue("the node is shown", `new URLSearchParams(location.search).get("node") === "atlas/physics/simulation"`)
}

// TestWhoIsInTheWay compares who is in the way of a request behind another one, and of one that is too large, with the
// answers of the command line.
func TestWhoIsInTheWay(t *testing.T) {
	s := startServers(t, 1)[0]
	fill(t, s)
	if _, err := s.Try(t, "allocate", "--id", "sim-3", "--user", "rosa", "--at", "cern:atlas/physics/simulation",
		"--amount", "cores=9", "--wait", never, "--async", "--keep", "1h"); err == nil {
		t.Fatal("sim-3 does not wait")
	}
	b := openTab(t, s.URL()+"/ui/queue?open=sim-3")
	b.awaitTrue("the request before it has its amount, user and position",
		`/8\s+sim-2 at cern:\S+, user peter, position 1/.test(document.querySelector(".who")?.innerText)`)
	links := eval[[]string](b, `[...document.querySelectorAll(".who a[href*=allocation]")].map((a) => a.innerText)`)
	if want := []string{"sim-2", "sim-1"}; !slices.Equal(links, want) {
		t.Errorf("in the way are the links %v, want %v", links, want)
	}
	for _, id := range links {
		if queue := s.Run(t, "queue", "list", "--blockers"); !strings.Contains(queue, id+": ") {
			t.Errorf("the command line does not say that %s is in the way:\n%s", id, queue)
		}
	}
	b.lookInEveryWay("who-is-in-the-way")

	b.open(s.URL() + "/ui/what-if?at=cern:atlas/physics/simulation&amount=cores=25")
	b.awaitTrue("the page says by how much it is too large",
		`document.querySelector(".never")?.innerText.includes("by 15")`)

	b.open(s.URL() + "/ui/queue?owner=ann")
	b.awaitTrue("no request has this owner", `document.querySelector("main .empty")`)
}

// follow uses the keyboard: it moves to a link by Tab, presses Enter, and waits for the view behind the link.
func (b *tab) follow(name, path string) {
	b.t.Helper()
	b.tabTo(name)
	b.press(kb.Enter)
	b.awaitTrue("the address is "+path, `location.pathname === "`+path+`"`)
	b.awaitView()
	if at := b.focus(); at.Tag != "MAIN" {
		b.t.Errorf("after a link the focus is at %s %q, not at the content", at.Tag, at.Name)
	}
}

// TestReadOffersNoChange looks for the buttons that change something, in a page that offers changes and in one that does
// not.
func TestReadOffersNoChange(t *testing.T) {
	for _, mode := range []string{"read", "write"} {
		s := startServers(t, 1, "--ui", mode)[0]
		fill(t, s)
		b := emptyTab(t)
		for address, button := range map[string]string{
			"/ui/allocation?id=web-1": "Release", "/ui/allocation?id=sim-2": "Take out of the queue",
			"/ui/cluster": "Compare states now",
		} {
			b.open(s.URL() + address)
			isShown := fmt.Sprintf(`[...document.querySelectorAll("main button")].some((e) => e.innerText.startsWith(%q))`, button)
			if mode == "write" {
				b.awaitTrue("the button is there: "+button, isShown)
			} else if eval[bool](b, isShown) {
				t.Errorf("%s offers %q", address, button)
			}
		}
	}
}
