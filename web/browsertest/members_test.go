package browsertest

import (
	"strings"
	"testing"
)

// TestMembersOfAGroup opens a group of a node: its members are there with what each uses, above the node where they hold
// it too.
func TestMembersOfAGroup(t *testing.T) {
	s := startServers(t, 1)[0]
	fill(t, s)
	for node, want := range map[string]string{
		"":         "sue: memory=8G, vcore=4 tim: memory=123456789, vcore=1500m",
		"ci/build": "sue: memory=8G, vcore=4",
	} {
		b := openTab(t, s.URL()+"/ui/node?tree=queues&node="+node+"&tab=groups")
		b.tabTo("Show members")
		b.press("\r")
		b.awaitTrue("the members are listed", `document.querySelector("main td li")`)
		got := eval[string](b, `[...document.querySelectorAll("main td li")].map((e) => e.innerText).join(" ")`)
		if strings.Join(strings.Fields(got), " ") != want {
			t.Errorf("at %q the members are %q, want %q", node, got, want)
		}
		b.lookInEveryWay("members-" + strings.ReplaceAll(node, "/", "-"))
	}
}
