package browsertest

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// tokenFor makes an account with a token, which a binding of the configuration may name.
func tokenFor(t *testing.T, s *server, account string) string {
	t.Helper()
	s.Run(t, "account", "create", account)
	return strings.TrimSpace(s.Run(t, "token", "create", account))
}

// TestSigningIn signs in by keyboard alone: as someone who may see one subtree, then as an administrator.
func TestSigningIn(t *testing.T) {
	s := startGuarded(t)
	s.Run(t, "apply", "-f", root+"/examples/guarded.yaml")
	hans := tokenFor(t, s, "hans")
	b := openTab(t, s.URL()+"/ui/")
	b.askForToken()
	b.checkAccessibility("signing in")
	b.picture("sign-in")
	b.allow(`status 401|Failed to load resource.*401`)
	b.press("qrt_nonsense", kb.Enter)
	b.awaitTrue("a wrong token is refused", `document.querySelector("main [role=alert]")`)
	b.picture("sign-in-refused")

	b.signIn(hans)
	b.allow("")
	b.awaitTrue("the page shows the subtree of Hans",
		`document.querySelector("main").innerText.includes("cern:atlas/physics")`)
	if shown := b.text("main"); strings.Contains(shown, "cms") || strings.Contains(shown, hans) {
		t.Errorf("Hans sees what he may not see:\n%s", shown)
	}

	b.tabTo("Sign out")
	b.press(kb.Enter)
	b.askForToken()
	b.press(s.Token, kb.Enter)
	b.awaitTrue("the administrator sees all", `document.querySelector("main").innerText.includes("cern:cms")`)
}

func (b *tab) askForToken() {
	b.t.Helper()
	b.awaitTrue("one can sign in", `document.querySelector("header .account button")?.innerText === "Sign in"`)
	b.awaitView() // which may have a form with a button of the same name
	b.tabTo("Sign in")
	if !eval[bool](b, `document.activeElement.matches("header .account button")`) {
		b.tabTo("Sign in")
	}
	b.press(kb.Enter)
	b.awaitTrue("the page asks for a token", `document.activeElement.type === "password"`)
}

func (b *tab) signIn(token string) {
	b.t.Helper()
	b.tabTo("Token")
	b.press(token, kb.Enter)
}

// TestAskingForALimit signs in as someone who may only ask, looks at the credential, and asks for no limit at all; then
// the administrator looks who may decide.
func TestAskingForALimit(t *testing.T) {
	s := startGuarded(t)
	s.Run(t, "apply", "-f", root+"/examples/guarded.yaml")
	hans := tokenFor(t, s, "hans")
	b := emptyTab(t)
	b.allow(refusedCalls) // to who has not signed in, the tree does not exist
	b.open(s.URL() + "/ui/requests?tree=cern")
	b.askForToken()
	b.press(hans, kb.Enter)
	b.tabTo("account/hans")
	b.press(kb.Enter)
	b.awaitTrue("the page says who is signed in, and until when",
		`/account\/hans \(account\)[\s\S]*Groups: none[\s\S]*The credential ends: \S/.test(document.querySelector("dialog[open]")?.innerText)`)
	b.allow("")
	b.checkAccessibility("account")
	b.picture("account")
	b.press(kb.Escape)

	b.tabTo("Ask for a limit…")
	b.press(kb.Enter)
	b.tabTo("Node")
	b.press("atlas/physics")
	b.tabTo("Resource")
	b.press("cores")
	b.tabTo("New limit")
	b.press("unlimited")
	b.tabTo("Reason")
	b.press("the autumn campaign")
	b.tabTo("Ask")
	b.press(kb.Enter)
	b.awaitTrue("the request is listed",
		`document.querySelector("main table")?.innerText.includes("cores: 40 → unlimited")`)
	if list := s.Run(t, "request", "list"); !strings.Contains(list, "cores: 40 -> unlimited") {
		t.Errorf("the command line lists\n%s", list)
	}

	b.allow(refusedCalls)
	b.tabTo("Sign out")
	b.press(kb.Enter)
	b.askForToken()
	b.press(s.Token, kb.Enter)
	b.open(s.URL() + "/ui/node?tree=cern&node=atlas/physics&tab=who-can")
	b.awaitTrue("the bindings are listed, the nearest first",
		`/account peter: role node-admin at cern:atlas\/physics\s+account anna: role node-admin at cern:atlas\s/
			.test(document.querySelector("[role=tabpanel]").innerText)`)
	b.allow("")
	b.tabTo("Right") // the panel, whose text begins so, and then the field
	b.press(kb.Tab, "h")
	b.awaitTrue("the address has the right", `new URLSearchParams(location.search).get("verb") === "hold"`)
	b.awaitTrue("holders are listed",
		`document.querySelector("[role=tabpanel]").innerText.includes("account hans, account heidi: role holder")`)
	b.checkAccessibility("who can")
	b.picture("who-can")
}
