package browsertest

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// place is where an element is on the screen. The page may scroll, because lines above come and go. No picture is taken
// meanwhile, because that scrolls too.
type place struct {
	Top    float64
	Marked bool
	Focus  string
}

// mark remembers the element with the focus, so that whereIs tells whether it is still the same one in the same place.
const mark = `void (window.marked = document.activeElement)`

// gone is what a browser says of a server that does not answer.
const gone = `ERR_|Failed to load resource`

const whereIs = `({top: marked.getBoundingClientRect().top, marked: marked.isConnected,
	focus: document.activeElement?.innerText ?? ""})`

// TestServersKilled kills the leader under a page, then the majority, then the server that the page came from. The page
// follows the new leader, says what is wrong, and reconnects by itself; what a person looks at stays where it was.
func TestServersKilled(t *testing.T) {
	c := startCluster(t, 3, "--ui", "write")
	fill(t, c.Servers[0])
	leader, others := c.Leader(t)
	serving, third := others[0], others[1]
	b := openTab(t, serving.URL()+"/ui/")
	b.do("a low window", chromedp.EmulateViewport(1280, 300))
	b.tabTo("labs:cms")
	eval[any](b, mark)
	before := eval[place](b, whereIs)
	if eval[float64](b, "scrollY") == 0 {
		t.Error("the page is not scrolled, so that this test proves little")
	}

	leader.Kill()
	b.awaitUsage(t, serving, "killed-leader")
	b.awaitBanner("")

	third.Kill()
	b.awaitBanner("no leader")
	third.Start(t)
	b.awaitBanner("")

	b.allow(gone)
	serving.Kill()
	b.awaitBanner("does not answer")
	if after := eval[place](b, whereIs); after != before {
		t.Errorf("while the server is away, the page is at %+v, and was at %+v", after, before)
	}
	serving.Start(t)
	b.awaitBanner("")
	b.allow("")
	b.awaitUsage(t, serving, "back")
	if after := eval[place](b, whereIs); after != before {
		t.Errorf("after it came back, the page is at %+v, and was at %+v", after, before)
	}
	b.press(kb.Enter)
	b.awaitTrue("the link with the focus leads on", `location.pathname !== "/ui/"`)
	b.allow(gone) // servers that were started again stop before the page is closed
}

// awaitBanner waits until the banner says something; it says nothing while all is well.
func (b *tab) awaitBanner(words string) {
	b.t.Helper()
	b.awaitTrue(fmt.Sprintf("the banner says %q", words), fmt.Sprintf(`%[1]q === "" ?
		document.querySelector(".banner").innerText === "" : document.querySelector(".banner").innerText.includes(%[1]q)`,
		words))
}

// awaitUsage allocates something and waits until the page shows it.
func (b *tab) awaitUsage(t *testing.T, s *server, id string) {
	t.Helper()
	await(t, "something is allocated", func() bool {
		_, err := s.Try(t, "allocate", "--id", id, "--at", "labs", "--amount", "cores=1")
		return err == nil
	})
	used := usageOf(t, s, "labs")["labs: cores"]
	b.awaitTrue("the page shows "+used.text(), fmt.Sprintf(`(%s)["labs: cores"] === %q`, shownUsage, used.text()))
}
