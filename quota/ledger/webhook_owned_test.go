package ledger_test

import (
	"fmt"
	"testing"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

func hookAt(name, node, secret string) quota.SetWebhook {
	return quota.SetWebhook{WebhookSpec: quota.WebhookSpec{
		Name: name, URL: "https://hooks.example/" + name, Secret: secret, Tree: "cern", Node: node,
	}}
}

func (g *guarded) hooksOf(account string) (names []string) {
	g.t.Helper()
	for _, w := range g.readerOf(account).Webhooks() {
		names = append(names, w.Name)
	}
	return names
}

// TestWebhooksOfNodes: who gives rights at a node has webhooks of it, owned, with secrets of the tree; others neither
// see nor change them, and those of the cluster stay with its administrators.
func TestWebhooksOfNodes(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, cernTree(), "anna", "peter", "hans", "heidi", "carl")
	g.must("root", pagerHook())
	g.must("root", hookAt("ours", "atlas", "pager"))
	w := g.must("anna", hookAt("atlas", "atlas", "cern.atlas")).Webhook
	if w.Owner != "account/anna" {
		t.Errorf("the owner is %q", w.Owner)
	}
	if out := g.must("anna", hookAt("atlas", "atlas", "cern.atlas")); !out.Repeated {
		t.Error("the same webhook again changes something")
	}
	g.refused("anna", hookAt("all", "", "cern.atlas"), quota.NotFound, "")
	g.refused("anna", hookAt("cms", "cms", "cern.atlas"), quota.NotFound, "there is no node cern:cms")
	g.refused("anna", hookAt("b", "atlas", "pager"), quota.Invalid, `begins with "cern."`)
	g.refused("anna", hookAt("pager", "atlas", "cern.atlas"), quota.Forbidden, "choose another name")
	g.refused("anna", hookAt("ours", "atlas", "cern.atlas"), quota.Forbidden, "choose another name")
	g.refused("anna", pagerHook(), quota.Forbidden, "access.manage at the cluster")
	g.refused("hans", hookAt("h", "atlas/physics/higgs", "cern.h"), quota.Forbidden, "lacks the right bindings.grant")
	g.refused("carl", quota.ManageWebhook{Name: "atlas", Action: quota.RemoveWebhook}, quota.NotFound,
		`there is no webhook "atlas"`)
	g.refused("carl", quota.ManageWebhook{Name: "none", Action: quota.RemoveWebhook}, quota.NotFound,
		`there is no webhook "none"`)
	g.refused("anna", quota.ManageWebhook{Name: "pager", Action: quota.RemoveWebhook}, quota.NotFound,
		`there is no webhook "pager"`)
	for account, want := range map[string]string{
		"root": "[atlas ours pager]", "anna": "[atlas]", "peter": "[]", "carl": "[]",
	} {
		if got := fmt.Sprint(g.hooksOf(account)); got != want {
			t.Errorf("%s sees %s, want %s", account, got, want)
		}
	}
	changed := hookAt("atlas", "atlas", "cern.atlas")
	changed.URL = "https://hooks.example/other"
	if w := g.must("root", changed).Webhook; w.Owner != "account/anna" || w.URL != changed.URL {
		t.Errorf("after a change by root: %+v", w)
	}
	g.must("anna", quota.ManageWebhook{Name: "atlas", Action: quota.RemoveWebhook})
	if err := g.ledger.Check(); err != nil {
		t.Error(err)
	}
}

// TestRoomForWebhooksOfNodes: one user, and all users together, leave room for those of the cluster.
func TestRoomForWebhooksOfNodes(t *testing.T) {
	t.Parallel()
	accounts := []string{"anna", "peter", "hans", "heidi", "carl", "cecil", "stray"}
	trees := cernTree()
	trees[0].Nodes[0].Bindings = []access.Binding{bind("node-admin", accounts...)}
	g := newGuarded(t, trees, accounts...)
	set := func(account string, i int) quota.SetWebhook {
		return hookAt(fmt.Sprint(account, i), "atlas", "cern.x")
	}
	for n := range quota.MaxOwnedWebhooks {
		g.must(accounts[n/quota.MaxWebhooksOfOwner], set(accounts[n/quota.MaxWebhooksOfOwner], n))
	}
	g.refused("anna", set("anna", 99), quota.Full, "account/anna owns 4 webhooks")
	g.refused("stray", set("stray", 99), quota.Full, "16 webhooks of nodes")
	again := set("peter", quota.MaxWebhooksOfOwner)
	again.URL = "https://hooks.example/again"
	g.must("peter", again)
	for n := range quota.MaxWebhooks - quota.MaxOwnedWebhooks {
		g.must("root", set("root", n))
	}
	g.refused("root", set("root", 99), quota.Full, "32 webhooks")
	if err := g.ledger.Check(); err != nil {
		t.Error(err)
	}
}
