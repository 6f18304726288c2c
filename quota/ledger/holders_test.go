package ledger_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestHolders gives random requests of users and groups, and random trees with cohorts, to the ledger and to a slow
// model of both (holders_oracle_test.go), which must agree on every violation and on what every principal holds.
func TestHolders(t *testing.T) { verify.Check(t, holdersAgree) }

// FuzzHolders does the same with what a fuzzer finds.
func FuzzHolders(f *testing.F) { quotatest.Fuzz(f, holdersAgree) }

func holdersAgree(t *rapid.T) {
	p := &holdersPair{
		ledger: ledger.New(quota.DefaultBounds()),
		model:  &holdersModel{trees: map[string]quota.TreeSpec{}},
	}
	p.configure(t, "t")
	p.configure(t, "u")
	for step := range 50 {
		switch quotatest.Die(t, 20, "step") {
		case 0:
			p.configure(t, oneOf(t, []string{"t", "u"}, "tree"))
		case 1:
			p.freeze(t)
		case 2:
			p.setLimits(t)
		case 3, 4, 5, 6, 7:
			p.release(t)
		default:
			p.allocate(t, fmt.Sprintf("i%d", step))
		}
		if err := p.ledger.Check(); err != nil {
			t.Fatal(err)
		}
	}
	p.compare(t)
}

// holdersPair is a ledger and the model that watches it.
type holdersPair struct {
	ledger *ledger.Ledger
	model  *holdersModel
	denied []quota.Allocate
}

// configure makes a tree so, if nothing is held where it would be taken away.
func (p *holdersPair) configure(t *rapid.T, name string) {
	spec := holdersTree(t, name)
	change := quota.ApplyTrees{Trees: []quota.TreeSpec{spec}}
	dry := p.ledger.Sandbox().DryRun(change)
	before := p.grantedNow()
	out := p.ledger.Apply(quota.Stamp{}, change)
	switch {
	case out.Refused == nil:
		p.model.trees[name] = spec
		p.compareEffects(t, spec, before, *dry.Configuration, *out.Configuration)
	case out.Refused.Kind != quota.InUse:
		t.Fatalf("%+v: %v", spec, out.Refused)
	}
}

// grantedNow are those of the denied requests that would be granted on the present state.
func (p *holdersPair) grantedNow() map[string]bool {
	granted := map[string]bool{}
	for _, c := range p.denied {
		d := p.ledger.Sandbox().DryRun(c).Decision
		granted[c.ID] = d != nil && d.Granted
	}
	return granted
}

// compareEffects holds what a dry run foresaw of a change against what is so after it.
func (p *holdersPair) compareEffects(t *rapid.T, spec quota.TreeSpec, before map[string]bool, dry,
	done quota.Configuration,
) {
	if diff := cmp.Diff(dry.Over, done.Over); diff != "" {
		t.Fatalf("what is over (-dry +real):\n%s", diff)
	}
	over := slices.DeleteFunc(slices.Clone(done.Over), func(o quota.Overuse) bool {
		return o.Holder.Kind == quota.TheNode && o.Kind == quota.OfResource
	})
	if diff := cmp.Diff(p.model.over(spec), over, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("who is over (-model +ledger):\n%s", diff)
	}
	var admitted []string
	for _, c := range slices.Backward(p.denied) {
		if before[c.ID] {
			continue
		}
		names := slices.ContainsFunc(c.Claims, func(claim quota.Claim) bool { return claim.Tree == spec.Name })
		if d := p.ledger.Sandbox().DryRun(c).Decision; len(done.Changes) > 0 && names && d != nil && d.Granted {
			admitted = append(admitted, c.ID)
		}
	}
	if diff := cmp.Diff(admitted, dry.Effects.Admitted, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("who would be admitted (-real +dry):\n%s", diff)
	}
}

func (p *holdersPair) setLimits(t *rapid.T) {
	spec := p.model.trees[oneOf(t, []string{"t", "u"}, "tree")]
	n := oneOf(t, spec.Nodes, "node")
	set := quota.ResourceLimit{Resource: oneOf(t, spec.Resources, "resource").Name, Limit: holdersLimit(t)}
	out := p.ledger.Apply(
		quota.Stamp{}, quota.SetLimits{Tree: spec.Name, Node: n.Path, Limits: []quota.ResourceLimit{set}})
	if out.Refused != nil {
		t.Fatal(out.Refused)
	}
	if p.model.trees[spec.Name], out.Refused = p.ledger.View().Tree(spec.Name); out.Refused != nil {
		t.Fatal(out.Refused)
	}
}

func (p *holdersPair) freeze(t *rapid.T) {
	loaded, err := quotatest.Restore(p.ledger.Snapshot(), quota.DefaultBounds())
	if err != nil {
		t.Fatal(err)
	}
	p.ledger = loaded
}

func (p *holdersPair) release(t *rapid.T) {
	if len(p.model.held) == 0 {
		return
	}
	i := quotatest.Die(t, len(p.model.held), "victim")
	if out := p.ledger.Apply(quota.Stamp{}, quota.Release{ID: p.model.held[i].ID}); out.Refused != nil {
		t.Fatal(out.Refused)
	}
	p.model.held = slices.Delete(p.model.held, i, i+1)
}

func (p *holdersPair) allocate(t *rapid.T, id string) {
	c := holdersRequest(t, id)
	dry := p.ledger.Sandbox().DryRun(c)
	out := p.ledger.Apply(quota.Stamp{}, c)
	if out.Refused != nil {
		if out.Refused.Kind != quota.Invalid && out.Refused.Kind != quota.NotFound ||
			out.Refused.Field == "principal.user" && !p.model.lacksUser(c) {
			t.Fatalf("%+v: %v", c, out.Refused)
		}
		return
	}
	if p.model.lacksUser(c) {
		t.Fatalf("%+v names no user and is decided", c)
	}
	if diff := cmp.Diff(dry.Decision.Violations, out.Decision.Violations); diff != "" {
		t.Fatalf("a dry run of %+v said otherwise (-dry +real):\n%s", c, diff)
	}
	h, want := p.model.decide(c)
	if diff := cmp.Diff(want, out.Decision.Violations, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%+v (-model +ledger):\n%s", c, diff)
	}
	if out.Allocation == nil {
		p.denied = append(p.denied, c)
		return
	}
	for i, info := range out.Allocation.Info().Claims {
		if info.Group != h.groups[i] || info.Placed != h.placed[i] {
			t.Fatalf("%+v: claim %d is in group %q at %q, want %q at %q", c, i, info.Group, info.Placed,
				h.groups[i], h.placed[i])
		}
	}
	p.model.held = append(p.model.held, h)
}

// compare checks what every principal holds, and whether the reported headroom is available.
func (p *holdersPair) compare(t *rapid.T) {
	for name, spec := range p.model.trees {
		for _, kind := range []quota.HolderKind{quota.AUser, quota.AGroup} {
			list, more, refused := p.ledger.View().Principals(name, kind, "", "", 100)
			if refused != nil || more {
				t.Fatal(refused, more)
			}
			if diff := cmp.Diff(p.model.principals(spec, kind), list, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("kind %d of %s (-model +ledger):\n%s", kind, name, diff)
			}
			p.compareByName(t, spec, kind)
		}
		for _, n := range spec.Nodes {
			for _, r := range spec.Resources {
				p.probe(t, name, n.Path, r.Name)
			}
		}
	}
}

// compareByName asks for each user or group alone.
func (p *holdersPair) compareByName(t *rapid.T, spec quota.TreeSpec, kind quota.HolderKind) {
	for _, name := range holderNames {
		list, more, refused := p.ledger.View().Principals(spec.Name, kind, name, "", 100)
		if refused != nil || more {
			t.Fatal(refused, more)
		}
		want := p.model.principal(spec, quota.Holder{Kind: kind, Name: name}, true)
		if diff := cmp.Diff(want, list, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%q of kind %d of %s (-model +ledger):\n%s", name, kind, spec.Name, diff)
		}
	}
}

func (p *holdersPair) probe(t *rapid.T, tree, node, resource string) {
	page, refused := p.ledger.View().Usage(quota.UsageQuery{Tree: tree, Node: node, Max: 1})
	if refused != nil {
		t.Fatal(refused)
	}
	for _, r := range page.Nodes[0].Resources {
		if r.Resource.Name != resource {
			continue
		}
		for more, granted := range []bool{r.Headroom > 0, false} {
			out := p.ledger.Sandbox().DryRun(quota.Allocate{ID: "probe", Claims: []quota.Claim{
				{Tree: tree, Node: node, Amounts: quota.Vector{
					{Resource: resource, Amount: r.Headroom + quota.Amount(more)},
				}},
			}})
			if out.Refused == nil && out.Decision.Granted != granted && r.Headroom+quota.Amount(more) > 0 {
				t.Fatalf("%s has room for %d, but %d more is %s", quota.Place(tree, node), r.Headroom, more,
					out.Decision.Explain())
			}
		}
	}
}

// holdersTree is open, with cohorts here and there, few limits and many principals.
func holdersTree(t *rapid.T, name string) quota.TreeSpec {
	spec := quota.TreeSpec{Name: name}
	spec.RequirePrincipal = quotatest.Die(t, 2, "require a user") == 0
	for _, r := range []string{"cpu", "mem", "zip"} {
		if r == "mem" || quotatest.Die(t, 4, "registered") > 0 {
			spec.Resources = append(spec.Resources, quota.Resource{Name: r, Unit: quota.Count})
		}
	}
	for _, path := range []string{"", "a", "a/x", "a/x/p", "a/y", "b", "b/z"} {
		if path == "" || quotatest.FindNode(spec, quotatest.Above(path)) != nil && quotatest.Die(t, 5, "there") > 0 {
			spec.Nodes = append(spec.Nodes, holdersNode(t, spec, path))
		}
	}
	return spec
}

func holdersNode(t *rapid.T, spec quota.TreeSpec, path string) quota.NodeSpec {
	n := quota.NodeSpec{Path: path, Policy: oneOf(t, []string{"", "", "", "open", "cohort"}, "policy")}
	inCohort := quotatest.PolicyOf(quota.TreeSpec{Nodes: append(slices.Clone(spec.Nodes), n)}, path) == "cohort"
	for _, r := range spec.Resources {
		if quotatest.Die(t, 2, "limited") == 0 {
			n.Limits = append(n.Limits, quota.ResourceLimit{Resource: r.Name, Limit: holdersLimit(t)})
		}
		if inCohort && quotatest.Die(t, 3, "borrows") == 0 {
			n.Borrow = append(n.Borrow, quota.ResourceLimit{Resource: r.Name, Limit: holdersLimit(t)})
		}
		if inCohort && quotatest.Die(t, 3, "lends") == 0 {
			n.Lend = append(n.Lend, quota.ResourceLimit{Resource: r.Name, Limit: holdersLimit(t)})
		}
	}
	n.Applications = quota.Amount(oneOf(t, []int{0, 0, 0, 2, 4}, "applications"))
	n.Principals = holdersPrincipals(t, spec)
	return n
}

func holdersLimit(t *rapid.T) quota.Limit {
	if quotatest.Die(t, 8, "unlimited") == 0 {
		return quota.NoLimit()
	}
	return quota.AtMost(quota.Amount(quotatest.Die(t, 25, "limit")))
}

// holdersPrincipals name each user and group at most once, and a wildcard last.
func holdersPrincipals(t *rapid.T, spec quota.TreeSpec) []quota.PrincipalLimit {
	users := somePrincipals(t, []string{"ann", "bob", quota.Wildcard})
	groups := somePrincipals(
		t, oneOf(t, [][]string{{"red", "blue"}, {"blue", "red", quota.Wildcard}, {"green"}}, "groups"))
	if slices.Equal(groups, []string{quota.Wildcard}) {
		groups = nil
	}
	var list []quota.PrincipalLimit
	for i := range max(len(users), len(groups)) {
		l := quota.PrincipalLimit{
			Users:  users[min(i, len(users)):min(i+1, len(users))],
			Groups: groups[min(i, len(groups)):min(i+1, len(groups))],
		}
		for _, r := range spec.Resources {
			if quotatest.Die(t, 2, "limited") == 0 {
				l.Limits = append(
					l.Limits, quota.Component{Resource: r.Name, Amount: quota.Amount(quotatest.Die(t, 12, "most"))})
			}
		}
		if l.Applications = quota.Amount(quotatest.Die(t, 4, "applications")); l.Applications == 0 &&
			len(l.Limits) == 0 {
			l.Applications = 1
		}
		list = append(list, l)
	}
	return list
}

func somePrincipals(t *rapid.T, from []string) []string {
	return slices.DeleteFunc(slices.Clone(from), func(string) bool { return quotatest.Die(t, 2, "named") == 0 })
}

func holdersRequest(t *rapid.T, id string) quota.Allocate {
	c := quota.Allocate{ID: id}
	if quotatest.Die(t, 8, "nobody") > 0 {
		c.Principal = quota.Principal{
			User:        oneOf(t, []string{"ann", "bob", "cyd"}, "user"),
			Application: oneOf(t, []string{"", "app", "job", "run"}, "application"),
			Groups:      somePrincipals(t, []string{"blue", "green", "red", "white"}),
		}
	}
	for range oneOf(t, []int{1, 1, 1, 2, 3}, "claims") {
		claim := quota.Claim{
			Tree: oneOf(t, []string{"t", "t", "u"}, "tree"),
			Node: oneOf(t, []string{"", "a", "a/x", "a/x/p", "a/y", "b", "b/z"}, "node"),
		}
		for _, r := range []string{"cpu", "mem", "zip"} {
			if r == "mem" || quotatest.Die(t, 3, "claims of") == 0 {
				claim.Amounts = append(claim.Amounts,
					quota.Component{Resource: r, Amount: quota.Amount(quotatest.Die(t, 6, "amount"))})
			}
		}
		c.Claims = append(c.Claims, claim)
	}
	if quotatest.Die(t, 12, "force") == 0 {
		c.Mode = quota.Force
	}
	return c
}

// oneOf answers one of a list, all equally often.
func oneOf[T any](t *rapid.T, from []T, what string) T {
	return from[quotatest.Die(t, len(from), what)]
}
