package ledger_test

import (
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// TestTextsWithoutAccessKeepIt: a text that cannot say who may do what takes no bindings away, and gives none.
func TestTextsWithoutAccessKeepIt(t *testing.T) {
	present := seenTree(0, quota.SeeNames)
	present[0].RequirePrincipal = true
	g := newGuarded(t, present, "reader", "other")
	text := seenTree(0, quota.SeeTotals)
	nodes := text[0].Nodes
	for i := range nodes {
		nodes[i].Bindings = nil
	}
	nodes[1].Limits = cores(29)
	text[0].Nodes = append(slices.Clone(nodes[:3]), quota.NodeSpec{Path: "lab/new"}) // instead of lab/b
	out := g.must("root", quota.ApplyTrees{Trees: text, KeepAccess: true})
	var fields []string
	for _, c := range out.Configuration.Changes {
		fields = append(fields, c.Node+" "+c.Field)
	}
	if want := []string{"lab limit cores", "lab/new node", "lab/b node"}; !slices.Equal(fields, want) {
		t.Errorf("the changes are %q, want %q", fields, want)
	}
	spec, _ := g.ledger.Reader().Tree("t")
	if spec.TenantsSee != quota.SeeNames || !spec.RequirePrincipal || len(spec.Nodes[0].Bindings) != 1 ||
		len(spec.Nodes[2].Bindings) != 1 {
		t.Errorf("the tree is %+v", spec)
	}
	if out := g.apply("reader", claimAt("v", "lab/a", 1)); out.Refused != nil {
		t.Errorf("the reader may not hold any more: %v", out.Refused)
	}

	for field, change := range map[string]func(*quota.TreeSpec){
		"trees[0].tenants_see":       func(s *quota.TreeSpec) { s.TenantsSee = quota.SeeNothing },
		"trees[0].require_principal": func(s *quota.TreeSpec) { s.RequirePrincipal = true },
		"trees[0].bindings":          func(s *quota.TreeSpec) { s.Nodes[0].Bindings = []access.Binding{bind("root", "other")} },
		"trees[0].nodes[1].bindings": func(s *quota.TreeSpec) { s.Nodes[2].Bindings = []access.Binding{bind("holder", "other")} },
	} {
		wrong := text[0]
		wrong.Nodes = slices.Clone(wrong.Nodes)
		change(&wrong)
		out := g.apply("root", quota.ApplyTrees{Trees: []quota.TreeSpec{wrong}, KeepAccess: true})
		if out.Refused == nil || out.Refused.Kind != quota.Invalid || out.Refused.Field != field {
			t.Errorf("%s: got %v", field, out.Refused)
		}
	}
	out = g.apply("root", quota.ApplyTrees{Trees: text, KeepAccess: true, At: &quota.Subtree{Tree: "t"}})
	if out.Refused == nil || out.Refused.Field != "keep_access" {
		t.Errorf("with a subtree: got %v", out.Refused)
	}
}
