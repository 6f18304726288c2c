package ledger_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestLevelsHaveTheNumbersOfTheLedger: in random trees with cohorts, users, groups and applications, the levels of a
// request are complete, have what usage tells, and exactly those that stop it are exceeded.
func TestLevelsHaveTheNumbersOfTheLedger(t *testing.T) {
	var seen levelsSeen
	verify.Check(t, func(t *rapid.T) {
		l := ledger.New(quota.DefaultBounds())
		for _, name := range []string{"t", "u"} {
			l.Apply(quota.Stamp{}, quotatest.HoldersTree(name).Draw(t, "tree"))
		}
		for i := range 30 {
			request := quotatest.HoldersRequests(fmt.Sprint("i", i)).Draw(t, "request")
			out := l.Sandbox().Explain(request)
			if err := l.Check(); err != nil {
				t.Fatalf("an explanation changed the ledger: %v", err)
			}
			if out.Refused == nil {
				compareLevels(t, out, &seen)
				for _, c := range out.Levels {
					compareNumbers(t, l, request, c)
				}
				checkComplete(t, l, request, out.Levels)
			}
			l.Apply(quota.Stamp{}, request)
		}
	})
	for _, n := range []*atomic.Int64{
		&seen.verdicts[quota.LevelFits], &seen.verdicts[quota.LevelExceeded], &seen.verdicts[quota.LevelBorrows],
		&seen.verdicts[quota.LevelUnchecked], &seen.principals, &seen.kinds[quota.OfApplications],
		&seen.kinds[quota.OfBorrowing],
	} {
		if n.Load() < 5 {
			t.Errorf("too few levels were compared: %+v", &seen)
		}
	}
}

// TestLevelsWhereClaimsMove: in random trees where claims borrow, move and preempt each other, with holds and a
// queue, exactly the limits that stop a request are exceeded, and asking changes nothing.
func TestLevelsWhereClaimsMove(t *testing.T) {
	t.Parallel()
	var seen levelsSeen
	verify.Check(t, func(t *rapid.T) {
		l := ledger.New(quota.DefaultBounds())
		for _, name := range []string{"t", "u"} {
			l.Apply(quota.Stamp{}, quotatest.MixedTree(name).Draw(t, "tree"))
		}
		for i := range 400 {
			c := quotatest.MixedCommands().Draw(t, "command")
			if request, ok := c.(quota.Allocate); ok {
				request.ID = fmt.Sprint("probe", i)
				before, watched := "", i%8 == 0 // an image of all takes longer than the explanation
				if watched {
					before = quotatest.ImageText(l.Snapshot())
				}
				if out := l.Sandbox().Explain(request); out.Refused == nil {
					compareLevels(t, out, &seen)
				}
				if watched {
					quotatest.RequireSame(t, "the ledger after an explanation", before, quotatest.ImageText(l.Snapshot()))
				}
				if err := l.Check(); err != nil {
					t.Fatalf("an explanation changed the ledger: %v", err)
				}
			}
			l.Apply(quota.Stamp{At: quota.Instant(i)}, c)
		}
	})
	if min(seen.verdicts[quota.LevelBorrows].Load(), seen.verdicts[quota.LevelMakesRoom].Load(),
		seen.verdicts[quota.LevelExceeded].Load()) == 0 {
		t.Errorf("too few levels were compared: %+v", &seen)
	}
}

type levelsSeen struct {
	verdicts   [quota.LevelUnchecked + 1]atomic.Int64
	kinds      [quota.OfHold + 1]atomic.Int64
	principals atomic.Int64
}

// compareLevels compares the exceeded levels with the violations, and each verdict with its numbers.
func compareLevels(t *rapid.T, out ledger.Explained, seen *levelsSeen) {
	var exceeded, want []quota.Violation
	for _, c := range out.Levels {
		seen.verdicts[c.Verdict].Add(1)
		seen.kinds[c.Kind].Add(1)
		if c.Holder.Kind != quota.TheNode {
			seen.principals.Add(1)
		}
		lacks := c.Limit.Kind == quota.Limited && c.Left() < 0
		switch c.Verdict {
		case quota.LevelExceeded:
			exceeded = append(exceeded, quota.Violation{
				Tree: c.Tree, Node: c.Node, Resource: c.Resource, Kind: c.Kind, Holder: c.Holder, Item: c.Item,
				Limit: c.Limit.Amount, Used: c.Used, Requested: c.Requested, Alternative: c.Alternative,
			})
		case quota.LevelFits:
			if lacks {
				t.Fatalf("%+v does not fit", c)
			}
		case quota.LevelBorrows, quota.LevelMakesRoom:
			if !lacks {
				t.Fatalf("%+v lacks nothing", c)
			}
		case quota.LevelUnchecked:
		}
	}
	for _, v := range out.Decision.Violations {
		if v.Kind != quota.OfQueue && v.Kind != quota.OfHold {
			v.TooLarge = false
			want = append(want, v)
		}
	}
	sorted := cmpopts.SortSlices(func(a, b quota.Violation) bool { return fmt.Sprint(a) < fmt.Sprint(b) })
	if diff := cmp.Diff(want, exceeded, sorted, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("the limits that stop the request (-violations +levels):\n%s", diff)
	}
}

// compareNumbers compares a level with the usage of its node or of its user or group, and with the claims.
func compareNumbers(t *rapid.T, l *ledger.Ledger, request quota.Allocate, c quota.LevelCheck) {
	if c.Verdict == quota.LevelMakesRoom {
		t.Fatalf("%+v: nothing makes room here", c)
	}
	if c.Kind == quota.OfBorrowing {
		return
	}
	want := c
	if want.Requested = 1; c.Kind == quota.OfResource {
		want.Requested = requestedAt(request, c.Tree, c.Node, c.Resource)
	}
	if c.Holder.Kind == quota.TheNode {
		usage := usageAt(t, l, c.Tree, c.Node)
		if c.Kind == quota.OfApplications {
			want.Used, want.Limit = quota.Amount(usage.Applications), usage.MaxApplications
		}
		for _, r := range usage.Resources {
			if r.Resource.Name == c.Resource {
				want.Used = r.Subtree
				if usage.Policy != "cohort" {
					want.Limit = r.Effective
				}
			}
		}
	} else {
		node := principalAt(t, l, c)
		want.Used, want.Limit = amountIn(node.Used, c.Resource), quota.AtMost(amountIn(node.Limits, c.Resource))
		if c.Kind == quota.OfApplications {
			want.Used, want.Limit = quota.Amount(len(node.Applications)), node.MaxApplications
		}
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Fatalf("a level of %+v (-usage +level):\n%s", request, diff)
	}
}

func amountIn(v quota.Vector, resource string) quota.Amount {
	for _, c := range v {
		if c.Resource == resource {
			return c.Amount
		}
	}
	return 0
}

// requestedAt is what the claims at a node and below ask for.
func requestedAt(request quota.Allocate, tree, node, resource string) (sum quota.Amount) {
	for _, c := range request.Claims {
		if c.Tree == tree && quota.IsWithin(c.Node, node) {
			sum += amountIn(c.Amounts, resource)
		}
	}
	return sum
}

func usageAt(t *rapid.T, l *ledger.Ledger, tree, node string) quota.NodeUsage {
	page, refused := l.Reader().Usage(quota.UsageQuery{Tree: tree, Node: node, Max: 1})
	if refused != nil {
		t.Fatal(refused)
	}
	return page.Nodes[0]
}

func principalAt(t *rapid.T, l *ledger.Ledger, c quota.LevelCheck) quota.PrincipalNode {
	list, _, refused := l.Reader().Principals(c.Tree, c.Holder.Kind, c.Holder.Name, "", 1)
	if refused != nil || len(list) != 1 {
		t.Fatalf("%+v: %v, %v", c, list, refused)
	}
	i := slices.IndexFunc(list[0].Nodes, func(n quota.PrincipalNode) bool { return n.Path == c.Node })
	if i < 0 {
		t.Fatalf("%+v is in no limit: %+v", c, list)
	}
	return list[0].Nodes[i]
}

// checkComplete is that each node above a claim has one level for each resource of the claim, and each limit of the
// user there, too.
func checkComplete(t *rapid.T, l *ledger.Ledger, request quota.Allocate, levels []quota.LevelCheck) {
	count := map[quota.Violation]int{}
	for _, c := range levels {
		count[quota.Violation{Tree: c.Tree, Node: c.Node, Resource: c.Resource, Kind: c.Kind, Holder: c.Holder}]++
	}
	for _, claim := range request.Claims {
		node := claim.Node
		for !isNode(l, claim.Tree, node) { // then the claim is counted above
			node = quotatest.Above(node)
		}
		for ; ; node = quotatest.Above(node) {
			for _, a := range claim.Amounts {
				at := quota.Violation{Tree: claim.Tree, Node: node, Resource: a.Resource}
				if count[at] != 1 {
					t.Fatalf("%+v has %d levels", at, count[at])
				}
				at.Holder = quota.Holder{Kind: quota.AUser, Name: request.Principal.User}
				if at.Holder.Name == "" || a.Amount == 0 || request.Mode == quota.Force {
					continue
				}
				users, _, _ := l.Reader().Principals(claim.Tree, quota.AUser, at.Holder.Name, "", 1)
				for _, u := range users {
					for _, n := range u.Nodes {
						isLimited := slices.ContainsFunc(n.Limits, func(c quota.Component) bool { return c.Resource == a.Resource })
						if n.Path == node && isLimited && count[at] != 1 {
							t.Fatalf("%+v has %d levels", at, count[at])
						}
					}
				}
			}
			if node == "" {
				break
			}
		}
	}
}

// TestWhatTenantsSeeOfLevels: of levels above that a caller does not see, no limit of users is told, and no number.
func TestWhatTenantsSeeOfLevels(t *testing.T) {
	for see, want := range map[quota.TenantsSee][]string{
		quota.SeeTotals: {
			"lab/a cores: 0 of 25, 24 requested, fits", "lab cores: 10 of 30, 24 requested, exceeded",
			"lab user ann cores: 0 of 99, 24 requested, fits", " cores: 10 of 50, 24 requested, fits",
		},
		quota.SeeNames: {
			"lab/a cores: 0 of 25, 24 requested, fits", "lab cores: 0 of unset, 24 requested, exceeded",
			" cores: 0 of unset, 24 requested, fits",
		},
		quota.SeeNothing: {
			"lab/a cores: 0 of 25, 24 requested, fits", " cores: 0 of unset, 24 requested, exceeded",
		},
	} {
		t.Run(see.String(), func(t *testing.T) {
			trees := seenTree(0, see)
			quotatest.FindNode(trees[0], "lab").Principals = []quota.PrincipalLimit{{
				Users: []string{"ann"}, Limits: quota.Vector{{Resource: "cores", Amount: 99}},
			}}
			holder := bind("broker", "reader")
			holder.HoldAs = access.Holders{Any: true}
			quotatest.FindNode(trees[0], "lab/a").Bindings = []access.Binding{holder}
			g := newGuarded(t, trees, "reader", "other")
			if out := g.apply("other", claimAt("hidden", "lab/b", 10)); out.Refused != nil {
				t.Fatal(out.Refused)
			}
			s, refused := g.ledger.Sandbox().ReaderOf(callerOf("reader"))
			if refused != nil {
				t.Fatal(refused)
			}
			request := claimAt(sharedID("probe"), "lab/a", 24)
			request.Principal.User = "ann"
			out := s.Explain(request)
			if out.Refused != nil {
				t.Fatal(out.Refused)
			}
			var got []string
			for _, c := range out.Levels {
				got = append(got, fmt.Sprintf("%s %s%s: %d of %s, %d requested, %s", c.Node, c.Holder, c.Resource, c.Used,
					c.Limit, c.Requested, verdictWords[c.Verdict]))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the levels (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLevelsAreBounded: an explanation has the levels of so many resources of nodes, and says that it was cut.
func TestLevelsAreBounded(t *testing.T) {
	const nodes = 32
	l := ledger.New(quota.DefaultBounds())
	trees := plainWideTree(nodes)
	for i := range trees.Trees[0].Nodes {
		trees.Trees[0].Nodes[i].Principals = []quota.PrincipalLimit{{
			Users: []string{quota.Wildcard}, Limits: quota.Vector{{Resource: "a", Amount: 1}},
		}}
	}
	l.Apply(quota.Stamp{}, trees)
	request := wideRequest(nodes)
	request.Principal.User = "ann"
	out := l.Sandbox().Explain(request)
	if want := 33*4 + 33; len(out.Levels) != want || out.LevelsCut {
		t.Errorf("there are %d levels, want %d, cut: %v", len(out.Levels), want, out.LevelsCut)
	}
	for range 7 {
		request.AnyOf = append(request.AnyOf, request.Claims)
	}
	request.Claims = nil
	out = l.Sandbox().Explain(request)
	if !out.LevelsCut || len(out.Levels) != 3*(33*4+33)+104/4*5 {
		t.Errorf("there are %d levels, cut: %v", len(out.Levels), out.LevelsCut)
	}
}
