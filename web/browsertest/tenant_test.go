package browsertest

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// refusedCalls is what the browser says of calls that the server refuses, and of what the caller may not see.
const refusedCalls = `status 40[34]|Failed to load resource.*40[34]`

// TestTenantSeesEveryView looks at every view as a user with rights at one node: what is refused is said with the right
// that is missing, nothing else goes wrong, and other nodes are nowhere to be seen.
func TestTenantSeesEveryView(t *testing.T) {
	s := startGuarded(t)
	s.Run(t, "apply", "-f", root+"/examples/guarded.yaml")
	b := openTab(t, s.URL()+"/ui/")
	b.askForToken()
	b.signIn(tokenFor(t, s, "hans"))
	b.awaitTrue("hans is signed in", `document.querySelector("main").innerText.includes("cern:atlas/physics")`)
	b.allow(refusedCalls)
	for view, address := range b.findViews() {
		b.open(s.URL() + address)
		b.checkHeadings(view)
		shown := b.text("main")
		for _, hidden := range []string{"cms", "undefined", "NaN"} {
			if strings.Contains(shown, hidden) {
				t.Errorf("%s (%s) shows %q:\n%s", view, address, hidden, shown)
			}
		}
		if alert := b.text("main [role=alert]"); alert != "" {
			if !strings.Contains(alert, "The missing right is") {
				t.Errorf("%s (%s) does not name the missing right: %s", view, address, alert)
			}
		}
	}
	if eval[bool](b, `!!document.querySelector("nav a[href='/ui/audit']")`) {
		t.Error("the navigation leads to the records of changes, which hans may not read")
	}
	b.open(s.URL() + "/ui/audit")
	if alert := b.text("main [role=alert]"); !strings.Contains(alert, "audit.read") {
		t.Errorf("the records of changes are not refused for the right audit.read, but %q", alert)
	}
}

// TestMyWork shows a user its node, what it holds and its place in the queue, and asks who is there before that.
func TestMyWork(t *testing.T) {
	s := startGuarded(t)
	s.Run(t, "apply", "-f", root+"/examples/guarded.yaml")
	hans := s.Client
	hans.Token = tokenFor(t, s, "hans")
	ask := func(id, amount string) []string {
		return strings.Fields("allocate --id " + id + " --ttl 2h --at cern:atlas/physics --amount cores=" + amount)
	}
	hans.Run(t, ask("held", "40")...)
	if _, err := hans.Try(t, append(ask("waits", "3"), "--wait", never, "--keep", "1h", "--async")...); err == nil {
		t.Fatal("the second request does not wait")
	}
	b := openTab(t, s.URL()+"/ui/mine")
	b.awaitTrue("the page asks who is there", `document.querySelector("main .sign-in")`)
	b.checkAccessibility("signing in")
	b.signIn(hans.Token)
	b.awaitTrue("the node has what is used, and leads to a request for another limit",
		`/cern:atlas\/physics[^]*40 of 40[^]*Ask for more/.test(document.querySelector(".my-nodes")?.innerText)`)
	b.awaitTrue("what is held and what waits is listed, with the position",
		`["held", "waits"].every((id) => document.querySelector("main").innerText.includes(id)) &&
			document.querySelector("table.queue strong").innerText === "1"`)
	if names := b.text(".my-nodes"); strings.Contains(names, "cms") || strings.Count(names, "free") != 1 {
		t.Errorf("the nodes are %q", names)
	}
	b.lookInEveryWay("my-work")
}

// TestOwnLimitsBelongToTheParent offers an administrator of a node the changes of nodes below it, and not those of the
// node itself.
func TestOwnLimitsBelongToTheParent(t *testing.T) {
	s := startGuarded(t)
	s.Run(t, "apply", "-f", root+"/examples/guarded.yaml")
	b := openTab(t, s.URL()+"/ui/")
	b.signIn(tokenFor(t, s, "anna"))
	b.awaitTrue("anna is signed in", `document.querySelector("main").innerText.includes("cern:atlas/physics")`)
	const offers = `["Cordon…", "Drain…", "Set limits…"].map((name) =>
		[...document.querySelectorAll("main button")].some((e) => e.innerText === name)).join()`
	b.open(s.URL() + "/ui/node?tree=cern&node=atlas/physics")
	b.awaitTrue("the node below is offered to change", offers+` === "true,true,true"`)
	b.open(s.URL() + "/ui/node?tree=cern&node=atlas")
	b.awaitTrue("the node itself leads to a request",
		`document.querySelector("main").innerText.includes("Ask for more…")`)
	if offered := eval[string](b, offers); offered != "false,false,false" {
		t.Errorf("the node itself is offered: %s", offered)
	}
}

// TestChangeWithoutTheRight takes a right away while its user is asked to confirm a change: the page names the right
// that is missing, and nothing changes.
func TestChangeWithoutTheRight(t *testing.T) {
	s := startGuarded(t)
	s.Run(t, "apply", "-f", root+"/examples/guarded.yaml")
	b := openTab(t, s.URL()+"/ui/")
	b.askForToken()
	b.signIn(tokenFor(t, s, "hans"))
	b.awaitTrue("hans is signed in", `document.querySelector("main").innerText.includes("cern:atlas/physics")`)
	b.open(s.URL() + "/ui/what-if?at=cern%3Aatlas%2Fphysics&amount=cores%3D1")
	b.click("main button", "Request it…")
	b.awaitTrue("the page asks again", `document.querySelector("dialog[open]")`)

	b.allow(refusedCalls)
	manifest, err := os.ReadFile(root + "/examples/guarded.yaml")
	if err != nil {
		t.Fatal(err)
	}
	without := filepath.Join(t.TempDir(), "without.yaml")
	changed := bytes.ReplaceAll(manifest, []byte("{role: holder, subjects: [account hans, account heidi]}"),
		[]byte("{role: viewer, subjects: [account hans]}"))
	if err := os.WriteFile(without, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	s.Run(t, "apply", "-f", without)
	eval[any](b, `void document.querySelector("dialog[open] button.primary")?.click()`)
	b.awaitTrue("the missing right is named",
		`document.querySelector("main")?.innerText.includes("The missing right is hold at cern:atlas/physics")`)
	if held := s.Run(t, "allocation", "list"); strings.Contains(held, "hans") {
		t.Errorf("something is held:\n%s", held)
	}
}
