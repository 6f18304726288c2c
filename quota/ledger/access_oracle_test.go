package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestRightsAgainstOracle gives random commands of random callers to a guarded ledger. It must do what the ledger does
// for root if the oracle finds every right that the rules ask for, and else refuse and change nothing.
func TestRightsAgainstOracle(t *testing.T) {
	verify.Check(t, func(t *rapid.T) {
		o := &rightsOracle{spec: randomBoundTree(t), owners: map[string]string{}}
		g := newGuarded(t, []quota.TreeSpec{o.spec}, "a", "b", "c")
		for i := range 25 {
			who := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "who")
			c := o.command(t, i)
			root := ledger.Origin{Caller: callerOf("root"), Index: 1}
			want := reload(t, g.ledger).ApplyFrom(quota.Stamp{Wall: wallNow}, root, c)
			before := quotatest.ImageText(g.ledger.Snapshot())
			got := g.apply(who, c)
			if want.Refused != nil {
				continue // for all callers; which refusal comes first does not matter
			}
			allowed := o.allows(who, c, want)
			switch {
			case allowed != (got.Refused == nil):
				t.Fatalf("%s: %T %+v is allowed: %v, but the ledger answers %v", who, c, c, allowed, got.Refused)
			case !allowed && quotatest.ImageText(g.ledger.Snapshot()) != before:
				t.Fatalf("the refused %T %+v has changed the ledger", c, c)
			case allowed:
				o.follow(g, who, c, got)
			}
		}
	})
}

// rightsOracle knows the configured tree, and who owns what. It answers every question by walking over all bindings.
type rightsOracle struct {
	spec   quota.TreeSpec
	owners map[string]string
}

// verbsAt are the verbs that bindings at a path and above give.
func (o *rightsOracle) verbsAt(who, path string) access.Verbs {
	var verbs access.Verbs
	for _, up := range quotatest.Upwards(path) {
		verbs |= o.verbsOnlyAt(who, up)
	}
	return verbs
}

func (o *rightsOracle) verbsOnlyAt(who, path string) access.Verbs {
	var verbs access.Verbs
	n := quotatest.FindNode(o.spec, path)
	if n == nil {
		return 0
	}
	for _, b := range n.Bindings {
		for _, role := range access.BuiltinRoles() {
			if role.Name == b.Role && slices.ContainsFunc(b.To, func(s access.Subject) bool { return s.Name == who }) {
				verbs |= role.Verbs & access.NodeVerbs
			}
		}
	}
	return verbs
}

// allows applies the rules to a command, of which want is the outcome for root.
func (o *rightsOracle) allows(who string, c quota.Command, want ledger.Outcome) bool {
	at := func(path string, verb access.Verb) bool { return o.verbsAt(who, path).Has(verb) }
	switch c := c.(type) {
	case quota.Allocate:
		return at(c.Claims[0].Node, access.Hold) && (o.owners[c.ID] == "" || o.owners[c.ID] == who ||
			at(c.Claims[0].Node, access.HoldOperate))
	case quota.Release:
		node := want.Allocation.Info().Claims[0].Node
		return o.owners[c.ID] == who || at(node, access.HoldOperate)
	case quota.SetLimits:
		if !at(c.Node, access.ConfigRead) || !o.mayChange(who, quota.Change{Node: c.Node, Field: "limit"}) {
			return false
		}
	case quota.MoveNode:
		if !at(c.From, access.ConfigRead) || !at(quotatest.Above(c.To), access.ConfigRead) {
			return false
		}
		if c.From == "" || !at(quotatest.Above(c.From), access.NodesManage) {
			return false
		}
	case quota.ApplyTrees:
		read := ""
		if c.At != nil {
			read = c.At.Node
		}
		if !at(read, access.ConfigRead) {
			return false
		}
		for _, n := range c.Trees[0].Nodes {
			if !o.mayGive(who, n) {
				return false
			}
		}
	}
	return !slices.ContainsFunc(want.Configuration.Changes, func(d quota.Change) bool { return !o.mayChange(who, d) })
}

// mayGive is true if a caller has everything that new bindings of a node give.
func (o *rightsOracle) mayGive(who string, n quota.NodeSpec) bool {
	var before []access.Binding
	if was := quotatest.FindNode(o.spec, n.Path); was != nil {
		before = was.Bindings
	}
	for _, b := range access.AddedBindings(before, n.Bindings) {
		for _, role := range access.BuiltinRoles() {
			if role.Name == b.Role && role.Verbs&access.NodeVerbs&^o.verbsAt(who, n.Path) != 0 {
				return false
			}
		}
	}
	return true
}

// mayChange is the table of rules for one difference.
func (o *rightsOracle) mayChange(who string, d quota.Change) bool {
	has := func(path string, verb access.Verb) bool { return o.verbsAt(who, path).Has(verb) }
	parent := quotatest.Above(d.Node)
	word, role, _ := strings.Cut(d.Field, " ")
	configures := role == "node-admin" || role == "limit-admin"
	switch {
	case d.Node == "" && word == "limit":
		return has("", access.NodesManage)
	case d.Node == "" && word == "binding" && configures:
		return false // it needs access.manage on the cluster
	case word == "limit" && quotatest.PolicyOf(o.spec, parent) == "strict" && quotatest.FindNode(o.spec, parent) != nil:
		return o.verbsOnlyAt(who, parent).Has(access.LimitsSet)
	case word == "limit":
		return has(parent, access.LimitsSet)
	case word == "node":
		return has(parent, access.NodesManage)
	case word == "path":
		return has(quotatest.Above(d.Before), access.NodesManage) && has(parent, access.NodesManage)
	case word == "binding" && configures:
		return has(parent, access.BindingsGrant)
	case word == "binding":
		return has(d.Node, access.BindingsGrant)
	case word == "label":
		return has(d.Node, access.NodesManage)
	}
	panic("no rule for " + d.Field)
}

// follow notes what a command has changed.
func (o *rightsOracle) follow(g *guarded, who string, c quota.Command, out ledger.Outcome) {
	switch c := c.(type) {
	case quota.Allocate:
		if o.owners[c.ID] == "" && out.Allocation != nil {
			o.owners[c.ID] = who
		}
	case quota.Release:
	default:
		o.spec, _ = g.ledger.Reader().Tree("t")
	}
}

// command draws a command; many are refused for all callers.
func (o *rightsOracle) command(t *rapid.T, i int) quota.Command {
	node := func(label string) string {
		return o.spec.Nodes[quotatest.Die(t, len(o.spec.Nodes), label)].Path
	}
	switch quotatest.Die(t, 6, "command") {
	case 0:
		limit := quota.Amount(rapid.IntRange(0, 20).Draw(t, "limit"))
		return quota.SetLimits{Tree: "t", Node: node("node"), Limits: cores(limit)}
	case 1:
		return quota.MoveNode{Tree: "t", From: node("from"), To: quota.ChildPath(node("to"), fmt.Sprint("m", i))}
	case 2:
		c := claimCores(fmt.Sprint(sharedIDs, "i", quotatest.Die(t, 4, "id")), node("node"), 1)
		c.Claims[0].Tree = "t"
		return c
	case 3:
		return quota.Release{ID: fmt.Sprint(sharedIDs, "i", quotatest.Die(t, 4, "id"))}
	}
	spec := o.spec
	spec.Nodes = slices.Clone(spec.Nodes)
	n := &spec.Nodes[quotatest.Die(t, len(spec.Nodes), "changed")]
	switch quotatest.Die(t, 5, "change") {
	case 0:
		n.Bindings = randomBindings(t)
	case 1:
		n.Labels = []quota.Label{{Key: "k", Value: fmt.Sprint(i)}}
	case 2:
		n.Limits = cores(quota.Amount(rapid.IntRange(0, 20).Draw(t, "limit")))
	case 3:
		spec.Nodes = append(spec.Nodes, quota.NodeSpec{
			Path: quota.ChildPath(n.Path, fmt.Sprint("n", i)), Limits: cores(0), Bindings: randomBindings(t),
		})
	case 4:
		gone := n.Path
		spec.Nodes = slices.DeleteFunc(spec.Nodes, func(n quota.NodeSpec) bool {
			return gone != "" && quotatest.Below(n.Path, gone)
		})
	}
	if top := node("subtree"); top != "" && rapid.Bool().Draw(t, "limited") {
		return textOfSubtree(spec, top)
	}
	return quota.ApplyTrees{Trees: []quota.TreeSpec{spec}}
}

// textOfSubtree changes a subtree to what it is in a tree.
func textOfSubtree(spec quota.TreeSpec, top string) quota.ApplyTrees {
	text := quota.TreeSpec{Name: spec.Name, Nodes: []quota.NodeSpec{{}}}
	for _, n := range spec.Nodes {
		if quotatest.Below(n.Path, top) {
			text.Nodes = append(text.Nodes, n)
		}
	}
	return quota.ApplyTrees{At: &quota.Subtree{Tree: spec.Name, Node: top}, Trees: []quota.TreeSpec{text}}
}

func randomBoundTree(t *rapid.T) quota.TreeSpec {
	spec := quota.TreeSpec{Name: "t", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}}}
	for _, path := range []string{"", "a", "a/x", "a/x/p", "b", "b/y"} {
		n := quota.NodeSpec{Path: path, Bindings: randomBindings(t), Limits: cores(0)}
		if path == "" || path == "a" {
			n.Policy = rapid.SampledFrom([]string{"open", "strict", "capped"}).Draw(t, "policy")
		}
		if path == "" {
			n.Limits = cores(20)
		}
		spec.Nodes = append(spec.Nodes, n)
	}
	return spec
}

// randomBindings gives at most two roles at a node, mostly none.
func randomBindings(t *rapid.T) []access.Binding {
	var list []access.Binding
	for range max(0, quotatest.Die(t, 5, "bindings")-2) {
		role := rapid.SampledFrom([]string{"viewer", "holder", "operator", "limit-admin", "node-admin"}).Draw(t, "role")
		list = append(list, bind(role, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "to")))
	}
	return access.CanonicalBindings(list)
}
