package ledger_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

func (g *guarded) textOf(account, node string) quota.ApplyTrees {
	g.t.Helper()
	reader := g.readerOf(account)
	at := quota.Subtree{Tree: "cern", Node: node}
	spec, err := reader.Subtree(at)
	if err != nil {
		g.t.Fatalf("%s reads %s: %v", account, node, err)
	}
	spec.Nodes = slices.Clone(spec.Nodes)
	revision := reader.Revision()
	return quota.ApplyTrees{
		At: &at, Trees: []quota.TreeSpec{spec}, Meta: quota.ChangeMeta{ExpectedRevision: &revision},
	}
}

// edited is a text with another node at a path: changed, added, or removed if change is nil.
func edited(c quota.ApplyTrees, path string, change func(*quota.NodeSpec)) quota.ApplyTrees {
	nodes := slices.Clone(c.Trees[0].Nodes)
	i := slices.IndexFunc(nodes, func(n quota.NodeSpec) bool { return n.Path == path })
	switch {
	case change == nil:
		nodes = slices.DeleteFunc(nodes, func(n quota.NodeSpec) bool { return quotatest.Below(n.Path, path) })
	case i < 0:
		nodes = append(nodes, quota.NodeSpec{Path: path})
		change(&nodes[len(nodes)-1])
	default:
		change(&nodes[i])
	}
	c.Trees = slices.Clone(c.Trees)
	c.Trees[0].Nodes = nodes
	return c
}

func limitCores(n quota.Amount) func(*quota.NodeSpec) {
	return func(s *quota.NodeSpec) { s.Limits = cores(n) }
}

// TestTwoAdministratorsOfOneTree: texts of different subtrees do not make each other stale, and those of one do.
func TestTwoAdministratorsOfOneTree(t *testing.T) {
	g := newGuarded(t, cernTree(), "anna", "peter", "hans", "heidi", "carl")
	anna, carl, peter := g.textOf("anna", "atlas"), g.textOf("carl", "cms"), g.textOf("peter", "atlas/physics")
	g.must("carl", edited(carl, "cms/web", limitCores(3)))
	g.must("anna", edited(anna, "atlas/trigger", limitCores(5)))
	g.must("root", setCores("", 102))
	g.must("root", setCores("atlas", 61)) // the limit of a node is its parent's, and in its text
	g.must("peter", edited(peter, "atlas/physics/higgs", limitCores(11)))
	g.refused("carl", edited(carl, "cms/web", limitCores(4)), quota.RevisionMismatch, "changed cern:cms after revision 1;")
	g.refused("peter", peter, quota.RevisionMismatch, "revision 6 changed cern:atlas/physics after revision 1;")
	g.refused("anna", anna, quota.RevisionMismatch, "revision 6 changed cern:atlas after revision 1;")

	out := g.must("peter", edited(g.textOf("peter", "atlas/physics"), "atlas/physics/higgs", nil))
	want := []quota.Change{{
		Kind: quota.Removed, Tree: "cern", Node: "atlas/physics/higgs", Field: "node", Before: "atlas/physics/higgs",
	}}
	if diff := cmp.Diff(want, out.Configuration.Changes); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	newest := g.ledger.Reader().Revisions(0, 1)[0]
	if newest.Subtree == nil || *newest.Subtree != (quota.Subtree{Tree: "cern", Node: "atlas/physics"}) ||
		newest.Actor != "account/peter" {
		t.Errorf("the history says %+v", newest)
	}
	g.must("root", quota.RollBack{Revision: 6})
	if found := g.textOf("peter", "atlas/physics").Trees[0]; quotatest.FindNode(found, "atlas/physics/higgs") == nil {
		t.Errorf("the rollback gives %+v", found)
	}
	g.must("root", quota.MoveNode{Tree: "cern", From: "atlas", To: "lhc"})
	g.must("root", quota.MoveNode{Tree: "cern", From: "lhc", To: "atlas"})
	g.refused("peter", peter, quota.RevisionMismatch, "changed cern:atlas/physics after revision 1;")
}

// TestRightsAtASubtree: differences ask for the same rights as in any change, and nothing outside is told.
func TestRightsAtASubtree(t *testing.T) {
	g := newGuarded(t, cernTree(), "anna", "peter", "hans", "heidi", "carl")
	anna := g.textOf("anna", "atlas")
	if got := anna.Trees[0]; len(got.Nodes) != 4 || got.Nodes[0].Path != "" || len(got.Nodes[0].Limits) > 0 {
		t.Errorf("the text of anna is %+v", got)
	}
	g.must("anna", edited(anna, "atlas/physics", limitCores(41)))
	g.refused("anna", edited(g.textOf("anna", "atlas"), "atlas", limitCores(50)), quota.Forbidden,
		"lacks the right limits.set at cern or above")
	g.refused("anna", edited(g.textOf("anna", "atlas"), "atlas", limitCores(70)), quota.Forbidden,
		"lacks the right limits.set at cern or above") // and not what the policy says of it
	g.refused("peter", edited(g.textOf("peter", "atlas/physics"), "atlas/physics", func(n *quota.NodeSpec) {
		n.Bindings = access.CanonicalBindings([]access.Binding{bind("node-admin", "peter", "heidi")})
	}), quota.Forbidden, "bindings.grant")
	g.refused("peter", anna, quota.NotFound, "there is no node cern:atlas, or account/peter may not see it")
	g.refused("carl", anna, quota.NotFound, "there is no node cern:atlas")
	g.refused("hans", anna, quota.NotFound, "there is no node cern:atlas")
	anna.At = &quota.Subtree{Tree: "cern", Node: "atlas/nowhere"}
	g.refused("anna", anna, quota.NotFound, `tree cern has no node "atlas/nowhere"; the nearest that exists is cern:atlas`)
	g.refused("anna", quota.ApplyTrees{Trees: cernTree()}, quota.Forbidden,
		"may not read tree cern as a whole; apply the text of a subtree alone with --at cern:atlas")
	reader, _ := g.ledger.Reader().ReaderOf(callerOf("anna"))
	if _, err := reader.Subtree(quota.Subtree{Tree: "cern", Node: "cms"}); err == nil || err.Kind != quota.NotFound {
		t.Errorf("anna reads cms: %v", err)
	}
	if _, err := reader.Subtree(quota.Subtree{Tree: "cern"}); err == nil || err.Kind != quota.NotFound {
		t.Errorf("anna reads the root: %v", err)
	}
	g.must("root", claimForced("big", "cms", 50))
	dry := g.ledger.Sandbox().DryRunFrom(ledger.Origin{Caller: callerOf("anna")},
		edited(g.textOf("anna", "atlas"), "atlas/physics", limitCores(20)))
	if dry.Refused != nil || len(dry.Configuration.Over) > 0 || len(dry.Configuration.Changes) != 1 {
		t.Errorf("a dry run tells anna %+v, %v", dry.Configuration, dry.Refused)
	}
}

// TestRulesAboveASubtree: a refusal by the policy of a node that the caller may not read tells no numbers.
func TestRulesAboveASubtree(t *testing.T) {
	g := newGuarded(t, cernTree(), "anna", "peter", "hans", "heidi", "carl")
	section := g.ledger.Reader().Book().Section()
	section.Roles = append(section.Roles, access.Role{Name: "setter", Verbs: access.SetOf(access.LimitsSet)})
	trees := cernTree()
	trees[0].Nodes[0].Bindings = []access.Binding{bind("setter", "anna")}
	g.must("root", quota.ApplyTrees{Access: &section, Trees: trees})
	g.refused("anna", edited(g.textOf("anna", "atlas"), "atlas", limitCores(70)), quota.PolicyBreach,
		"policy strict of cern forbids it for cores: a rule does not allow it; ask an administrator of that node")
	g.must("anna", edited(g.textOf("anna", "atlas"), "atlas", limitCores(59)))
}

func claimForced(id, node string, n quota.Amount) quota.Allocate {
	c := claimCores(id, node, n)
	c.Mode = quota.Force
	return c
}

// TestTextsOfSubtreesAreRefused: a text says nothing of what is outside, and each refusal names its field.
func TestTextsOfSubtreesAreRefused(t *testing.T) {
	l := ledger.New(quota.DefaultBounds())
	items := quota.Resource{Name: "account", Unit: quota.Items, Items: &quota.ItemSpec{Names: []string{"one"}}}
	tree := cernTree()[0]
	tree.Resources = []quota.Resource{items, tree.Resources[0]}
	for i := range tree.Nodes {
		tree.Nodes[i].Bindings = nil
	}
	if out := l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{tree}}); out.Refused != nil {
		t.Fatal(out.Refused)
	}
	reader, _ := l.Reader().ReaderOf(nil)
	good, err := reader.Subtree(quota.Subtree{Tree: "cern", Node: "atlas"})
	if err != nil || len(good.Resources) != 1 {
		t.Fatalf("%+v, %v", good, err)
	}
	type change = func(*quota.ApplyTrees)
	withTree := func(edit func(*quota.TreeSpec)) change { return func(c *quota.ApplyTrees) { edit(&c.Trees[0]) } }
	withRoot := func(edit func(*quota.NodeSpec)) change {
		return withTree(func(s *quota.TreeSpec) { edit(&s.Nodes[0]) })
	}
	moved := func(from, to string) change {
		return withTree(func(s *quota.TreeSpec) { s.Moves = []quota.Move{{From: from, To: to}} })
	}
	outside := quota.NodeSpec{Path: "atlas2"}
	bindings, labels, limits := []access.Binding{{}}, []quota.Label{{Key: "k"}}, []quota.PrincipalLimit{{}}
	policies := []quota.PolicySpec{{Name: "p"}}
	for want, edit := range map[string]change{
		"prune: prune is outside":                      func(c *quota.ApplyTrees) { c.Prune = true },
		"access: access is outside":                    func(c *quota.ApplyTrees) { c.Access = &access.Section{} },
		"policies: policies is outside":                func(c *quota.ApplyTrees) { c.Policies = policies },
		"remove_policies: remove_policies is":          func(c *quota.ApplyTrees) { c.RemovePolicies = []string{"p"} },
		"trees: the text of a subtree names its":       func(c *quota.ApplyTrees) { c.Trees = nil },
		"trees[0].name: the text is of tree \"other\"": withTree(func(s *quota.TreeSpec) { s.Name = "other" }),
		"subtree.node: tree cern has no node \"lhcb\"": func(c *quota.ApplyTrees) { c.At.Node = "lhcb" },
		"trees[0].forest: forest of tree cern is outs": withTree(func(s *quota.TreeSpec) { s.Forest = "f" }),
		"trees[0].tenants_see: tenants_see of":         withTree(func(s *quota.TreeSpec) { s.TenantsSee = quota.SeeNames }),
		"trees[0].require_reason: require_reason of":   withTree(func(s *quota.TreeSpec) { s.RequireReason = true }),
		"trees[0].require_principal: require_principa": withTree(func(s *quota.TreeSpec) { s.RequirePrincipal = true }),
		"trees[0].leases: leases of tree cern is":      withTree(func(s *quota.TreeSpec) { s.Leases.Max = 5 }),
		"trees[0].overtake_ms: overtake_ms of tree":    withTree(func(s *quota.TreeSpec) { s.Overtake = 5 }),
		"trees[0].policy: policy of tree cern is":      withRoot(func(n *quota.NodeSpec) { n.Policy = "open" }),
		"trees[0].limits: limits of tree cern is":      withRoot(func(n *quota.NodeSpec) { n.Limits = cores(1) }),
		"trees[0].defaults: defaults of tree cern":     withRoot(func(n *quota.NodeSpec) { n.Defaults = cores(1) }),
		"trees[0].borrow: borrow of tree cern is":      withRoot(func(n *quota.NodeSpec) { n.Borrow = cores(1) }),
		"trees[0].lend: lend of tree cern is outside":  withRoot(func(n *quota.NodeSpec) { n.Lend = cores(1) }),
		"trees[0].hard: hard of tree cern is outside":  withRoot(func(n *quota.NodeSpec) { n.Hard = true }),
		"trees[0].applications: applications of tree":  withRoot(func(n *quota.NodeSpec) { n.Applications = quota.AtMost(0) }),
		"trees[0].bindings: bindings of tree cern is":  withRoot(func(n *quota.NodeSpec) { n.Bindings = bindings }),
		"trees[0].labels: labels of tree cern is":      withRoot(func(n *quota.NodeSpec) { n.Labels = labels }),
		"trees[0].queueing: queueing of tree cern":     withRoot(func(n *quota.NodeSpec) { n.Queueing = quota.Strict }),
		"trees[0].principals: principals of tree":      withRoot(func(n *quota.NodeSpec) { n.Principals = limits }),
		"trees[0].resources[0].name: tree cern":        withTree(func(s *quota.TreeSpec) { s.Resources[0].Name = "gpu" }),
		"trees[0].resources[0].unit: the unit of": withTree(func(s *quota.TreeSpec) {
			s.Resources[0].Unit = quota.Milli
		}),
		"trees[0].resources[0].items: what the items": withTree(func(s *quota.TreeSpec) { s.Resources[0] = items }),
		"trees[0].nodes: the first node of a text":    withTree(func(s *quota.TreeSpec) { s.Nodes = s.Nodes[1:] }),
		"trees[0].nodes: the text of subtree":         withTree(func(s *quota.TreeSpec) { s.Nodes = s.Nodes[:1] }),
		"trees[0].nodes[3].path: node \"atlas2\" is": withTree(func(s *quota.TreeSpec) {
			s.Nodes = append(s.Nodes, outside)
		}),
		"trees[0].nodes[1].limits: tree cern registers": withTree(func(s *quota.TreeSpec) {
			s.Nodes[2].Limits[0].Resource = "gpu"
		}),
		"trees[0].nodes[0].policy: there is no policy": withTree(func(s *quota.TreeSpec) {
			s.Nodes[1].Policy = "lenient"
		}),
		"trees[0].moves[0].node: the path \"cms\" is":     moved("cms", "atlas/c"),
		"trees[0].moves[0].new_node: the path \"cms\" is": moved("atlas/physics", "cms"),
		"trees[0].moves[0].node: the path \"atlas\" is":   moved("atlas", "atlas/c"),
	} {
		c := quota.ApplyTrees{At: &quota.Subtree{Tree: "cern", Node: "atlas"}, Trees: []quota.TreeSpec{good}}
		spec := &c.Trees[0]
		spec.Nodes, spec.Resources = slices.Clone(good.Nodes), slices.Clone(good.Resources)
		for i := range spec.Nodes {
			spec.Nodes[i].Limits = slices.Clone(spec.Nodes[i].Limits)
		}
		edit(&c)
		if out := l.Apply(quota.Stamp{}, c); out.Refused == nil || !strings.HasPrefix(out.Refused.Error(), want) {
			t.Errorf("got %v, want %s…", out.Refused, want)
		}
	}
	c := quota.ApplyTrees{At: &quota.Subtree{Tree: "cern", Node: "atlas"}, Trees: []quota.TreeSpec{good}}
	if out := l.Apply(quota.Stamp{}, c); out.Refused != nil || len(out.Configuration.Changes) > 0 {
		t.Errorf("the text that was read is answered with %+v", out)
	}
}

// TestMovesWithinASubtree: a node that is renamed in a text keeps what it holds.
func TestMovesWithinASubtree(t *testing.T) {
	g := newGuarded(t, cernTree(), "anna", "peter", "hans", "heidi", "carl")
	g.must("hans", claimCores("h", "atlas/physics/higgs", 4))
	text := g.textOf("peter", "atlas/physics")
	renamed := edited(edited(text, "atlas/physics/higgs", nil), "atlas/physics/boson", func(n *quota.NodeSpec) {
		n.Limits, n.Bindings = cores(10), []access.Binding{bind("holder", "hans", "heidi")}
	})
	g.refused("peter", renamed, quota.InUse, "cern:atlas/physics/higgs cannot be removed")
	renamed.Trees[0].Moves = []quota.Move{{From: "atlas/physics/higgs", To: "atlas/physics/boson"}}
	out := g.must("peter", renamed)
	if len(out.Configuration.Changes) != 1 || out.Configuration.Changes[0].Field != "path" {
		t.Errorf("changed %+v", out.Configuration.Changes)
	}
}

// TestATreeAsASubtree: administrators of different trees do not make each other's plans stale either.
func TestATreeAsASubtree(t *testing.T) {
	l := ledger.New(quota.DefaultBounds())
	one, two := cernTree()[0], cernTree()[0]
	two.Name = "other"
	l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{one, two}})
	first := uint64(1)
	change := func(spec quota.TreeSpec, n quota.Amount) ledger.Outcome {
		spec.Nodes = slices.Clone(spec.Nodes)
		spec.Nodes[0].Limits = cores(n)
		return l.Apply(quota.Stamp{}, quota.ApplyTrees{
			At: &quota.Subtree{Tree: spec.Name}, Trees: []quota.TreeSpec{spec},
			Meta: quota.ChangeMeta{ExpectedRevision: &first},
		})
	}
	if out := change(one, 101); out.Refused != nil || out.Configuration.Revision != 2 {
		t.Errorf("got %+v", out)
	}
	if out := change(two, 102); out.Refused != nil || out.Configuration.Revision != 3 {
		t.Errorf("got %+v", out)
	}
	if out := change(one, 103); out.Refused == nil || out.Refused.Kind != quota.RevisionMismatch {
		t.Errorf("got %+v", out)
	}
	later := uint64(9)
	first = later
	if out := change(two, 104); out.Refused == nil || !strings.Contains(out.Refused.Text, "is at revision 3, not 9") {
		t.Errorf("got %+v", out)
	}
}

// TestASubtreeAfterARestore: a backup replaces the state without a revision, so what came before says nothing.
func TestASubtreeAfterARestore(t *testing.T) {
	l := ledger.New(quota.DefaultBounds())
	l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: cernTree()})
	for n := range quota.Amount(3) {
		l.Apply(quota.Stamp{}, setCores("cms", n))
	}
	restored := reload(t, l)
	former := l.Header()
	former.Revision = 7
	restored.Supersede(former, 0)
	for expected, want := range map[uint64]string{7: "", 6: "does not say", 4: "does not say", 8: "is at revision 7"} {
		reader, _ := restored.Reader().ReaderOf(nil)
		at := quota.Subtree{Tree: "cern", Node: "atlas"}
		text, _ := reader.Subtree(at)
		out := restored.Sandbox().DryRun(quota.ApplyTrees{
			At: &at, Trees: []quota.TreeSpec{text}, Meta: quota.ChangeMeta{ExpectedRevision: &expected},
		})
		if text := textOf(out.Refused); (text == "") != (want == "") || !strings.Contains(text, want) {
			t.Errorf("revision %d is answered with %v, want %q", expected, out.Refused, want)
		}
	}
}

func textOf(err *quota.Error) string {
	if err == nil {
		return ""
	}
	return err.Text
}

// TestARevisionWithoutItsChanges: revisions with more changes than the history keeps are known by what takes them back,
// and count as changes of everything when that is forgotten.
func TestARevisionWithoutItsChanges(t *testing.T) {
	bounds := quota.DefaultBounds()
	bounds.HistoryNodes = 1000
	l := ledger.New(bounds)
	spec := cernTree()[0]
	for i := range 300 {
		name := string(rune('a'+i/26)) + string(rune('a'+i%26))
		spec.Nodes = append(spec.Nodes, quota.NodeSpec{Path: "cms/" + name, Limits: cores(0)})
	}
	label := func(value string) {
		t.Helper()
		next := spec
		next.Nodes = slices.Clone(spec.Nodes)
		for i := range next.Nodes {
			if n := &next.Nodes[i]; strings.HasPrefix(n.Path, "cms") {
				n.Labels = []quota.Label{{Key: "k", Value: value}}
			}
		}
		if out := l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{next}}); out.Refused != nil {
			t.Fatal(out.Refused)
		}
	}
	stale := func(node string, expected uint64) string {
		t.Helper()
		reader, _ := l.Reader().ReaderOf(nil)
		at := quota.Subtree{Tree: "cern", Node: node}
		text, err := reader.Subtree(at)
		if err != nil {
			t.Fatal(err)
		}
		out := l.Sandbox().DryRun(quota.ApplyTrees{
			At: &at, Trees: []quota.TreeSpec{text}, Meta: quota.ChangeMeta{ExpectedRevision: &expected},
		})
		return textOf(out.Refused)
	}
	label("0")
	label("1")
	if got := stale("atlas", 1); got != "" {
		t.Errorf("atlas has not changed: %s", got)
	}
	if got := stale("cms", 1); !strings.HasPrefix(got, "revision 2 changed cern:cms") {
		t.Errorf("cms has changed: %s", got)
	}
	label("2")
	label("3")
	label("4") // the records of revision 1 and 2 are too many now
	if got := stale("atlas", 1); !strings.HasPrefix(got, "the history does not say whether revision 2 changed") {
		t.Errorf("atlas may have changed: %s", got)
	}
	if got := stale("atlas", 3); got != "" {
		t.Errorf("atlas has not changed: %s", got)
	}
}
