package ledger_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

func requiringTree() quota.TreeSpec {
	ten := []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(10)}}
	return quota.TreeSpec{
		Name: "t", Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}},
		TreeSettings: quota.TreeSettings{RequirePrincipal: true},
		Nodes: []quota.NodeSpec{
			{},
			{Path: "a", Limits: ten, Principals: []quota.PrincipalLimit{
				{Users: []string{"ann"}, Limits: quota.Vector{{Resource: "cpu", Amount: 4}}},
			}},
			{Path: "a/x"},
			{Path: "b"},
		},
	}
}

func configured(t *testing.T, l *ledger.Ledger, spec quota.TreeSpec) {
	t.Helper()
	if out := l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{spec}}); out.Refused != nil {
		t.Fatal(out.Refused)
	}
}

func cpuClaims(id string, amount quota.Amount, nodes ...string) quota.Allocate {
	c := quota.Allocate{ID: id}
	for _, node := range nodes {
		c.Claims = append(c.Claims, quota.Claim{
			Tree: "t", Node: node, Amounts: quota.Vector{{Resource: "cpu", Amount: amount}},
		})
	}
	return c
}

// TestRequirePrincipal: a request without a user is refused where users are limited, in every mode, and
// nowhere else.
func TestRequirePrincipal(t *testing.T) {
	t.Parallel()
	asUser := cpuClaims("user", 1, "a/x")
	asUser.Principal.User = "bob"
	inMode := func(id string, mode quota.Mode) quota.Allocate {
		c := cpuClaims(id, 1, "a")
		if c.Mode = mode; mode == quota.Reserve {
			c.ReserveFor = 5
		}
		return c
	}
	for name, test := range map[string]struct {
		request quota.Allocate
		refused string // the claim that the refusal names
		free    bool   // the tree does not require a user
	}{
		"at the limited node":     {request: cpuClaims("i", 1, "a"), refused: "t:a"},
		"below it":                {request: cpuClaims("i", 1, "a/x"), refused: "t:a/x"},
		"at a node on the way":    {request: cpuClaims("i", 1, "a/unknown"), refused: "t:a/unknown"},
		"the second claim":        {request: cpuClaims("i", 1, "b", "a/x"), refused: "t:a/x"},
		"by force":                {request: inMode("i", quota.Force), refused: "t:a"},
		"as a reservation":        {request: inMode("i", quota.Reserve), refused: "t:a"},
		"ready to wait":           {request: inMode("i", quota.Wait), refused: "t:a"},
		"with a user":             {request: asUser},
		"where none is limited":   {request: cpuClaims("i", 1, "b")},
		"above the limited nodes": {request: cpuClaims("i", 1, "")},
		"without the setting":     {request: cpuClaims("i", 1, "a"), free: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := ledger.New(quota.DefaultBounds())
			spec := requiringTree()
			spec.RequirePrincipal = !test.free
			configured(t, l, spec)
			dry := l.Sandbox().DryRun(test.request)
			out := l.Apply(quota.Stamp{}, test.request)
			if test.refused == "" {
				if out.Refused != nil || !out.Decision.Granted {
					t.Errorf("got %+v", out)
				}
				return
			}
			for _, out := range []ledger.Outcome{dry, out} {
				if out.Refused == nil || out.Refused.Kind != quota.Invalid || out.Refused.Field != "principal.user" ||
					!strings.Contains(out.Refused.Text, "claims at "+test.refused+";") {
					t.Errorf("got %+v, %v", out, out.Refused)
				}
			}
		})
	}
}

// TestRequirePrincipalLater: what is held without a user when a tree begins to require one stays held and can be
// repeated; what waits is ended, because it would be refused now.
func TestRequirePrincipalLater(t *testing.T) {
	t.Parallel()
	l := ledger.New(quota.DefaultBounds())
	spec := requiringTree()
	spec.RequirePrincipal = false
	configured(t, l, spec)
	waits := cpuClaims("waits", 5, "a")
	waits.Mode, waits.WaitFor = quota.Wait, 100
	for _, c := range []quota.Allocate{cpuClaims("held", 10, "a/x"), waits} {
		if out := l.Apply(quota.Stamp{}, c); out.Refused != nil {
			t.Fatal(out.Refused)
		}
	}
	spec.RequirePrincipal = true
	configured(t, l, spec)
	if out := l.Apply(quota.Stamp{}, cpuClaims("held", 10, "a/x")); out.Refused != nil || !out.Repeated {
		t.Errorf("the held one is %+v, %v", out, out.Refused)
	}
	info, refused := l.Reader().Allocation("waits")
	if refused != nil || info.State != quota.Cancelled || info.PreemptedBy != "configuration" {
		t.Errorf("the waiting one is %+v, %v", info, refused)
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
}

// TestNoRequestEscapesLimitsOfUsers: whatever the configuration becomes, nothing that is granted without a user under
// it, waiting requests included, passes a node with limits of users or groups in a tree that requires one; and what is
// held there without a user grows by no command.
func TestNoRequestEscapesLimitsOfUsers(t *testing.T) {
	t.Parallel()
	verify.Check(t, func(t *rapid.T) {
		l := ledger.New(quota.DefaultBounds())
		l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{requiringTree()}})
		before := heldWithoutUser(t, l)
		for i := range 40 {
			c := requiringCommand(t, fmt.Sprint("i", i), l)
			l.Apply(quota.Stamp{At: quota.Instant(i)}, c)
			for _, fact := range l.TakeFacts() {
				if fact.Kind == ledger.FactGranted {
					checkNamesUser(t, l, fact.Allocation.Info())
				}
			}
			after := heldWithoutUser(t, l)
			for claim, amount := range after {
				if !isConfiguring(c) && amount > before[claim] {
					t.Fatalf("%s holds %d after %+v, and held %d before", claim, amount, c, before[claim])
				}
			}
			before = after
			if err := l.Check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func isConfiguring(c quota.Command) bool {
	switch c.(type) {
	case quota.ApplyTrees, quota.MoveNode:
		return true
	}
	return false
}

func heldWithoutUser(t *rapid.T, l *ledger.Ledger) map[string]quota.Amount {
	page, refused := l.Reader().Allocations(quota.AllocationFilter{}, 0, 100)
	if refused != nil {
		t.Fatal(refused)
	}
	held := map[string]quota.Amount{}
	for _, a := range page.Allocations {
		for _, claim := range a.Claims {
			if a.Principal.User == "" && requiresUser(t, l, claim.Node) {
				held[a.ID+" at "+claim.Node] = claim.Amounts[0].Amount
			}
		}
	}
	return held
}

func requiringCommand(t *rapid.T, id string, l *ledger.Ledger) quota.Command {
	switch quotatest.Die(t, 8, "command") {
	case 0, 1:
		spec, _ := l.Reader().Tree("t")
		spec.RequirePrincipal = quotatest.Die(t, 3, "require") > 0
		for i := range spec.Nodes {
			spec.Nodes[i].Principals = nil
			if quotatest.Die(t, 4, "limited") == 0 {
				spec.Nodes[i].Principals = requiringTree().Nodes[1].Principals
			}
		}
		return quota.ApplyTrees{Trees: []quota.TreeSpec{spec}}
	case 2:
		paths := []string{"a", "a/x", "b", "b/y", "c"}
		return quota.MoveNode{Tree: "t", From: oneOf(t, paths, "from"), To: oneOf(t, paths, "to")}
	case 3:
		return quota.Release{ID: fmt.Sprint("i", quotatest.Die(t, 40, "released"))}
	case 4:
		return requiringChange(t, id)
	}
	node := oneOf(t, []string{"", "a", "a/x", "b", "a/n"}, "node")
	c := cpuClaims(id, quota.Amount(1+quotatest.Die(t, 9, "amount")), node)
	c.Mode = oneOf(t, []quota.Mode{quota.Hold, quota.Force, quota.Wait, quota.Wait, quota.Wait}, "mode")
	if c.Mode == quota.Wait {
		c.WaitFor = 1000
	}
	if quotatest.Die(t, 4, "named") == 0 {
		c.Principal.User = "ann"
	}
	return c
}

func requiringChange(t *rapid.T, id string) quota.Command {
	changed := fmt.Sprint("i", quotatest.Die(t, 40, "changed"))
	nodes := []string{"", "a", "a/x", "b", "a/n"}
	from, to := oneOf(t, nodes, "from"), oneOf(t, nodes, "to")
	amounts := quota.Vector{{Resource: "cpu", Amount: quota.Amount(1 + quotatest.Die(t, 9, "amount"))}}
	switch quotatest.Die(t, 3, "change") {
	case 0:
		return quota.Resize{ID: changed, Claims: []quota.ClaimChange{{Tree: "t", Node: to, Amounts: amounts}}}
	case 1:
		return quota.Transfer{ID: changed, Moves: []quota.ClaimMove{{Tree: "t", From: from, To: to}}}
	}
	return quota.Split{ID: changed, Parts: []quota.Part{
		{ID: id, Claims: []quota.PartClaim{{Tree: "t", From: from, To: to, Amounts: amounts}}},
	}}
}

// checkNamesUser asks the present configuration, which is that of the grant.
func checkNamesUser(t *rapid.T, l *ledger.Ledger, a quota.AllocationInfo) {
	for _, claim := range a.Claims {
		if a.Principal.User == "" && requiresUser(t, l, claim.Node) {
			t.Fatalf("%s was granted without a user at %q", a.ID, claim.Node)
		}
	}
}

func requiresUser(t *rapid.T, l *ledger.Ledger, path string) bool {
	spec, refused := l.Reader().Tree("t")
	if refused != nil {
		t.Fatal(refused)
	}
	for _, at := range quotatest.Upwards(path) {
		if n := quotatest.FindNode(spec, at); spec.RequirePrincipal && n != nil && len(n.Principals) > 0 {
			return true
		}
	}
	return false
}

// TestRequirePrincipalOfChanges: what is held without a user when a tree begins to require one may stay, become less
// and leave, but it may not come to where users are limited, grow there, or become another allocation there.
func TestRequirePrincipalOfChanges(t *testing.T) {
	t.Parallel()
	cpu := func(amount quota.Amount) quota.Vector { return quota.Vector{{Resource: "cpu", Amount: amount}} }
	resize := func(id, node string, amount quota.Amount) quota.Resize {
		return quota.Resize{ID: id, Claims: []quota.ClaimChange{{Tree: "t", Node: node, Amounts: cpu(amount)}}}
	}
	transfer := func(id, from, to string) quota.Transfer {
		return quota.Transfer{ID: id, Moves: []quota.ClaimMove{{Tree: "t", From: from, To: to}}}
	}
	split := func(id, from, to string) quota.Split {
		return quota.Split{ID: id, Parts: []quota.Part{
			{ID: "part", Claims: []quota.PartClaim{{Tree: "t", From: from, To: to, Amounts: cpu(1)}}},
		}}
	}
	for name, test := range map[string]struct {
		command quota.Command
		field   string // of the refusal
	}{
		"less":                     {resize("limited", "a/x", 3), ""},
		"more":                     {resize("limited", "a/x", 5), "claims[0]"},
		"more elsewhere":           {resize("free", "b", 9), ""},
		"more at a limited node":   {resize("free", "a", 1), "claims[0]"},
		"leaves a limited node":    {transfer("limited", "a/x", "b"), ""},
		"comes to a limited node":  {transfer("free", "b", "a"), "moves[0]"},
		"a part at a limited node": {split("limited", "a/x", "a/x"), "parts[0].claims[0]"},
		"a part that comes there":  {split("free", "b", "a/x"), "parts[0].claims[0]"},
		"a part elsewhere":         {split("free", "b", "b"), ""},
		"a part that leaves":       {split("limited", "a/x", "b"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := ledger.New(quota.DefaultBounds())
			spec := requiringTree()
			spec.RequirePrincipal = false
			configured(t, l, spec)
			l.Apply(quota.Stamp{}, cpuClaims("limited", 4, "a/x"))
			l.Apply(quota.Stamp{}, cpuClaims("free", 4, "b"))
			spec.RequirePrincipal = true
			configured(t, l, spec)
			out := l.Apply(quota.Stamp{}, test.command)
			if isRefused := out.Refused != nil && out.Refused.Kind == quota.Invalid &&
				strings.HasPrefix(out.Refused.Field, test.field) &&
				strings.Contains(out.Refused.Text, "requires one where users"); isRefused != (test.field != "") ||
				out.Refused == nil && !out.Decision.Granted {
				t.Errorf("got %+v, %v", out, out.Refused)
			}
			if err := l.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// oneOf answers one of a list, all equally often.
func oneOf[T any](t *rapid.T, from []T, what string) T {
	return from[quotatest.Die(t, len(from), what)]
}
