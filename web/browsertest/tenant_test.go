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
	changed := bytes.ReplaceAll(manifest, []byte("{role: holder, to: [account hans, account heidi]}"),
		[]byte("{role: viewer, to: [account hans]}"))
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
