package ledger_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

const thirtyDays quota.Span = 30 * 24 * 60 * 60 * 1000

// byTwenty raises limits by 20 percent, once in 30 days.
var byTwenty = quota.AutoApprove{AtMost: 20, Every: thirtyDays}

// ruledTree is the tree of the examples with a rule at physics, which has 40 cores; higgs below it has 10.
func ruledTree(rule quota.AutoApprove) []quota.TreeSpec {
	trees := cernTree()
	trees[0].Nodes[2].AutoApprove = rule
	return trees
}

// newRuled is a guarded ledger with ruledTree, at a ledger time after 0.
func newRuled(t rapid.TB, rule quota.AutoApprove) *guarded {
	g := newGuarded(t, ruledTree(rule), "anna", "peter", "hans", "heidi", "carl")
	g.advance(1)
	return g
}

func (g *guarded) advance(span quota.Span) {
	g.t.Helper()
	system := access.SystemCaller()
	at := quota.Stamp{At: g.ledger.Header().Now.At + quota.Instant(span), Wall: wallNow}
	if out := g.ledger.ApplyFrom(at, ledger.Origin{Caller: &system, Index: 1}, quota.Expire{Most: 5}); out.Refused != nil {
		g.t.Fatal(out.Refused)
	}
}

// TestARuleApprovesSmallRaises: the limits are set at once and the history says how; the answer can be repeated; the
// next raise waits for the span of the rule, also after a move and a restart.
func TestARuleApprovesSmallRaises(t *testing.T) {
	g := newRuled(t, byTwenty)
	dry := g.dryRun("hans", askFor(higgs, 12))
	out := g.must("hans", askFor(higgs, 12))
	for _, r := range []*quota.LimitRequestInfo{dry.LimitRequest, out.LimitRequest} {
		if r.Number != 1 || r.State != quota.RequestApplied || r.ClosedBy != quota.AutoApprover || r.NotByRule != "" {
			t.Fatalf("the request is %+v", r)
		}
	}
	if g.coresOf(higgs) != quota.AtMost(12) {
		t.Fatalf("higgs has %v", g.coresOf(higgs))
	}
	r := g.ledger.Reader().Revisions(0, 1)[0]
	if r.Number != out.LimitRequest.Revision || r.Actor != quota.AutoApprover || r.Reason != "a campaign" ||
		r.Request.Asker != "account/hans" || !slices.Equal(r.Request.Approvers, []string{quota.AutoApprover}) {
		t.Errorf("the revision is %+v with %+v", r, r.Request)
	}
	if again := g.must("hans", askFor(higgs, 12)); !again.Repeated || again.LimitRequest.Number != 1 {
		t.Errorf("asked again: %+v", again.LimitRequest)
	}
	g.refused("heidi", askFor(higgs, 12), quota.Invalid, "has these limits already")
	g.advance(thirtyDays - 1)
	g.must("root", quota.MoveNode{Tree: "cern", From: higgs, To: "atlas/physics/boson"})
	g.ledger = restoredWith(t, g.ledger, quota.DefaultBounds())
	const boson = "atlas/physics/boson"
	out = g.must("hans", askFor(boson, 13))
	if why := out.LimitRequest.NotByRule; out.LimitRequest.State != quota.RequestOpen ||
		!strings.Contains(why, "one request for cern:atlas/physics/boson per 30d; it may approve the next one 1m from now") {
		t.Errorf("one millisecond too early the request is %+v", out.LimitRequest)
	}
	g.advance(1)
	if out = g.must("hans", askFor(boson, 14)); out.LimitRequest.State != quota.RequestApplied {
		t.Errorf("after the span the request is %+v", out.LimitRequest)
	}
	if err := g.ledger.Check(); err != nil {
		t.Error(err)
	}
}

// TestWhatARuleDoesNotApprove waits for people, with the reason.
func TestWhatARuleDoesNotApprove(t *testing.T) {
	within := byTwenty
	within.WithinHeadroom = true
	for name, c := range map[string]struct {
		rule   quota.AutoApprove
		change func(*quota.TreeSpec)
		limit  quota.Limit
		why    string
	}{
		"too much":   {byTwenty, nil, quota.AtMost(13), "by 20% at most: cores of cern:atlas/physics/higgs may be up to 12, not 13"},
		"no limit":   {byTwenty, nil, quota.NoLimit(), "a rule raises amounts only"},
		"unset":      {byTwenty, nil, quota.Limit{}, "a rule raises amounts only"},
		"a fall":     {byTwenty, nil, quota.AtMost(9), "a rule raises limits only"},
		"the policy": {byTwenty, func(t *quota.TreeSpec) { t.Nodes[2].Limits = cores(11) }, quota.AtMost(12), "do not leave room"},
		"headroom": {within, func(t *quota.TreeSpec) {
			t.Nodes[0].Policy, t.Nodes[2].Limits = "open", cores(11)
		}, quota.AtMost(12), "do not leave room"},
		"headroom without a limit": {within, func(t *quota.TreeSpec) {
			t.Nodes[0].Policy, t.Nodes[2].Limits = "open", nil
		}, quota.AtMost(12), "do not leave room"},
		"no rule": {quota.AutoApprove{}, nil, quota.AtMost(12), ""},
	} {
		t.Run(name, func(t *testing.T) {
			trees := ruledTree(c.rule)
			if c.change != nil {
				c.change(&trees[0])
			}
			g := newGuarded(t, trees, "anna", "peter", "hans", "heidi", "carl")
			ask := askFor(higgs, 0)
			ask.Limits[0].Limit = c.limit
			dry, out := g.dryRun("hans", ask), g.must("hans", ask)
			for _, r := range []*quota.LimitRequestInfo{dry.LimitRequest, out.LimitRequest} {
				if r.State != quota.RequestOpen || !strings.Contains(r.NotByRule, c.why) || (c.why == "") != (r.NotByRule == "") {
					t.Errorf("the request is %+v", r)
				}
			}
			if g.coresOf(higgs) != quota.AtMost(10) {
				t.Errorf("higgs has %v", g.coresOf(higgs))
			}
		})
	}
}

// TestARuleIgnoresWhatDoesNotChange: a request that names limits as they are too, as a form that shows all of them
// does, is a request for the others.
func TestARuleIgnoresWhatDoesNotChange(t *testing.T) {
	within := byTwenty
	within.WithinHeadroom = true
	for name, limit := range map[string]quota.Limit{
		"unset": {}, "unlimited": quota.NoLimit(), "of the whole parent": quota.AtMost(50),
	} {
		t.Run(name, func(t *testing.T) {
			trees := ruledTree(within)
			trees[0].Nodes[0].Policy = "open"
			trees[0].Resources = append(trees[0].Resources, quota.Resource{Name: "ram", Unit: quota.Count})
			if limit.Kind != quota.Unset {
				trees[0].Nodes[3].Limits = append(trees[0].Nodes[3].Limits, quota.ResourceLimit{Resource: "ram", Limit: limit})
			}
			g := newGuarded(t, trees, "anna", "peter", "hans", "heidi", "carl")
			ask := askFor(higgs, 12)
			ask.Limits = append(ask.Limits, quota.ResourceLimit{Resource: "ram", Limit: limit})
			if r := g.must("hans", ask).LimitRequest; r.State != quota.RequestApplied {
				t.Fatalf("the request is %+v", r)
			}
			if g.coresOf(higgs) != quota.AtMost(12) {
				t.Errorf("higgs has %v", g.coresOf(higgs))
			}
		})
	}
}

// TestTheReasonOfARuleTellsWhatTheCallerMaySee: the administrator of the parent reads its limit, a holder does not.
func TestTheReasonOfARuleTellsWhatTheCallerMaySee(t *testing.T) {
	trees := ruledTree(byTwenty)
	trees[0].Nodes[2].Limits = cores(11)
	g := newGuarded(t, trees, "anna", "peter", "hans", "heidi", "carl")
	if out := g.must("peter", askFor(higgs, 12)); !strings.Contains(out.LimitRequest.NotByRule, "strict") {
		t.Errorf("peter reads %q", out.LimitRequest.NotByRule)
	}
	if out := g.must("hans", askFor(higgs, 12)); strings.Contains(out.LimitRequest.NotByRule, "11") {
		t.Errorf("hans reads %q", out.LimitRequest.NotByRule)
	}
}

// withRule is the subtree of a node as an account reads it, with another rule at one of its nodes.
func (g *guarded) withRule(account, top, at string) quota.ApplyTrees {
	return edited(g.textOf(account, top), at, func(n *quota.NodeSpec) {
		n.AutoApprove = quota.AutoApprove{AtMost: 1, Every: quota.MinAutoApproveEvery}
	})
}

// TestWhoMayWriteARule is who may set the limits of the children. Else a rule would be a way to set limits without the
// right.
func TestWhoMayWriteARule(t *testing.T) {
	g := newRuled(t, byTwenty)
	g.must("anna", g.withRule("anna", "atlas", "atlas"))
	g.must("anna", g.withRule("anna", "atlas", physics))
	g.must("peter", g.withRule("peter", physics, physics))
	g.must("root", setCores("atlas", 59))

	section := g.ledger.Reader().Book().Section()
	section.Roles = append(section.Roles, access.Role{
		Name: "shaper", Verbs: access.SetOf(access.ConfigRead, access.PolicySet, access.NodesManage),
	})
	g.must("root", quota.ApplyTrees{Access: &section})
	trees := ruledTree(byTwenty)
	trees[0].Nodes[1].Bindings = append(trees[0].Nodes[1].Bindings, bind("shaper", "carl"))
	g.must("root", quota.ApplyTrees{Trees: trees})
	g.refused("carl", g.withRule("carl", "atlas", physics), quota.Forbidden, "lacks the right limits.set")
}

func TestRulesAreBounded(t *testing.T) {
	g := newRuled(t, byTwenty)
	for text, rule := range map[string]quota.AutoApprove{
		"may raise limits by 1 to 100 percent, not 0":   {Every: thirtyDays},
		"may raise limits by 1 to 100 percent, not 101": {AtMost: 101, Every: thirtyDays},
		"must wait 3600000 to 31622400000 ms":           {AtMost: 1},
		"must wait 3600000 to 31622400000 ms between":   {AtMost: 1, Every: quota.MaxAutoApproveEvery + 1},
	} {
		g.refused("root", quota.ApplyTrees{Trees: ruledTree(rule)}, quota.Invalid, text)
	}
}

// ruleModel knows the rule as sentences.
type ruleModel struct {
	rule   quota.AutoApprove
	parent quota.Amount
	limits map[string]quota.Amount
	raised map[string]quota.Span
	now    quota.Span
}

func (m *ruleModel) approves(node string, amount quota.Amount) bool {
	last, wasRaised := m.raised[node]
	total := amount
	for sibling, limit := range m.limits {
		if sibling != node {
			total += limit
		}
	}
	most := (100 + quota.Amount(m.rule.AtMost)) * m.limits[node]
	return m.rule.AtMost > 0 && amount > m.limits[node] && 100*amount <= most &&
		(!wasRaised || m.now-last >= m.rule.Every) && (!m.rule.WithinHeadroom || total <= m.parent)
}

// TestRulesAgreeWithAnOracle compares which requests a rule approves, while limits, rules and time change and the
// ledger is restored at times.
func TestRulesAgreeWithAnOracle(t *testing.T) {
	seen := map[bool]int{}
	verify.Check(t, func(t *rapid.T) {
		m := &ruleModel{
			parent: 100, limits: map[string]quota.Amount{"a": 40, "b": 30}, raised: map[string]quota.Span{}, now: 1,
		}
		tree := func() []quota.TreeSpec {
			return []quota.TreeSpec{{
				Name: "cern", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}},
				Nodes: []quota.NodeSpec{
					{Policy: "open", Limits: cores(m.parent), AutoApprove: m.rule, Bindings: []access.Binding{bind("holder", "hans")}},
					{Path: "a", Limits: cores(m.limits["a"])},
					{Path: "b", Limits: cores(m.limits["b"])},
				},
			}}
		}
		g := newGuarded(t, tree(), "hans")
		g.advance(1)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			node := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "node")
			switch rapid.SampledFrom([]string{"ask", "ask", "ask", "set", "rule", "wait", "restart"}).Draw(t, "action") {
			case "ask":
				amount := max(0, m.limits[node]+quota.Amount(rapid.IntRange(-2, 20).Draw(t, "more")))
				if amount == m.limits[node] {
					continue
				}
				want := m.approves(node, amount)
				out := g.must("hans", askFor(node, amount))
				if !out.Repeated && (out.LimitRequest.State == quota.RequestApplied) != want {
					t.Fatalf("at %d %s asks for %d: %+v, want %v; the model is %+v", m.now, node, amount, out.LimitRequest, want, m)
				}
				if out.LimitRequest.State == quota.RequestApplied {
					m.limits[node], m.raised[node] = amount, m.now
				} else {
					g.must("hans", quota.WithdrawRequest{Number: out.LimitRequest.Number})
				}
				seen[want]++
			case "set":
				m.limits[node] = quota.Amount(rapid.IntRange(1, 60).Draw(t, "limit"))
				g.must("root", setCores(node, m.limits[node]))
			case "rule":
				m.rule = rapid.SampledFrom([]quota.AutoApprove{
					{},
					byTwenty,
					{AtMost: 100, Every: quota.MinAutoApproveEvery},
					{AtMost: 50, Every: quota.MinAutoApproveEvery, WithinHeadroom: true},
				}).Draw(t, "rule")
				g.must("root", quota.ApplyTrees{Trees: tree()})
			case "wait":
				span := rapid.SampledFrom([]quota.Span{1, quota.MinAutoApproveEvery - 1, thirtyDays}).Draw(t, "by")
				m.now += span
				g.advance(span)
			case "restart":
				g.ledger = restoredWith(t, g.ledger, quota.DefaultBounds())
			}
			for name, limit := range m.limits {
				if got := g.coresOf(name); got != quota.AtMost(limit) {
					t.Fatalf("%s has %v, want %d", name, got, limit)
				}
			}
		}
	})
	if (seen[true] == 0 || seen[false] == 0) && verify.Enabled() && !t.Failed() {
		t.Errorf("approved and not approved: %v", seen)
	}
}
