package ledger_test

import (
	"testing"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

// TestBindingsAtANode checks which bindings count at a node: its own, those above, and those on the cluster.
func TestBindingsAtANode(t *testing.T) {
	bind := func(role, user string) []access.Binding {
		return []access.Binding{{Role: role, To: []access.Subject{{Kind: access.User, Name: user}}}}
	}
	l := ledger.New(quota.DefaultBounds())
	for _, c := range []quota.Command{
		quota.ApplyTrees{Trees: []quota.TreeSpec{{
			Name: "cern", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}},
			Nodes: []quota.NodeSpec{
				{Policy: "strict", Bindings: bind("viewer", "corp/all")},
				{Path: "physics", Bindings: bind("holder", "corp/ann")},
				{Path: "physics/higgs"},
				{Path: "services", Bindings: bind("holder", "corp/bob")},
			},
		}}},
		quota.ApplyTrees{Access: &access.Section{Bindings: bind("root", "corp/root")}},
	} {
		if out := l.Apply(quota.Stamp{At: 1}, c); out.Refused != nil {
			t.Fatal(out.Refused)
		}
	}
	v := l.Reader()
	hold := func(user, tree, node string) bool {
		path, exists := v.AccessPath(tree, node)
		id := access.NewIdentity(&access.Caller{Kind: access.External, User: user}, access.AllVerbs)
		return exists && access.Allows(id, access.Hold, 1, path)
	}
	for _, c := range []struct {
		user, tree, node string
		want             bool
	}{
		{"corp/ann", "cern", "physics", true},
		{"corp/ann", "cern", "physics/higgs", true},
		{"corp/ann", "cern", "", false},
		{"corp/ann", "cern", "services", false},
		{"corp/ann", "", "", false},
		{"corp/root", "cern", "services", true},
		{"corp/root", "", "", true},
		{"corp/all", "cern", "physics", false},
		{"corp/root", "cern", "nowhere", false},
		{"corp/root", "nowhere", "", false},
		{"corp/root", "", "physics", false},
	} {
		if got := hold(c.user, c.tree, c.node); got != c.want {
			t.Errorf("%s may hold at %s:%s: %v", c.user, c.tree, c.node, got)
		}
	}
	above := v.BindingsAbove("cern", "physics/higgs")
	if len(above) != 2 || above[0].Path != "physics" || above[0].Bindings[0].Role != "holder" ||
		above[1].Path != "" || above[1].Bindings[0].Role != "viewer" {
		t.Errorf("above physics/higgs are %+v", above)
	}
	if above := v.BindingsAbove("cern", "nowhere"); above != nil {
		t.Errorf("above a node that does not exist are %+v", above)
	}
}
