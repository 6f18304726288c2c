package ledger_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// The oracle of changes of what an allocation holds. It knows what every allocation holds where, sums all of it anew
// for every level before and after a change, and grants the change if no level is beyond its limit that has risen. It
// knows nodes with plain limits, and users.

// heldAmounts are amounts by node and resource.
type heldAmounts map[[2]string]quota.Amount

// resizeOracle is what is held, by id, and the limits.
type resizeOracle struct {
	limits     map[[2]string]quota.Amount // by node and resource
	userLimits map[[2]string]quota.Amount
	held       map[string]heldAmounts
	users      map[string]string
}

// levelsOf are the uses of all levels by all allocations of a user, or of all users.
func (o *resizeOracle) levelsOf(user string) heldAmounts {
	sums := heldAmounts{}
	for id, holds := range o.held {
		if user != "" && o.users[id] != user {
			continue
		}
		for at, amount := range holds {
			for _, level := range levelsUp(at[0]) {
				sums[[2]string{level, at[1]}] += amount
			}
		}
	}
	return sums
}

// levelsUp are a path and all above it, the root last.
func levelsUp(path string) []string {
	list := []string{path}
	for path != "" {
		path = quota.ParentPath(path)
		list = append(list, path)
	}
	return list
}

// exchange gives allocations other holdings, if no level that rises is beyond its limit then.
func (o *resizeOracle) exchange(after map[string]heldAmounts) bool {
	before := *o
	changed := resizeOracle{held: maps.Clone(o.held), users: o.users}
	maps.Copy(changed.held, after)
	risesBeyond := func(limits map[[2]string]quota.Amount, user string) bool {
		was := before.levelsOf(user)
		for level, is := range changed.levelsOf(user) {
			if limit, limited := limits[level]; limited && is > was[level] && is > limit {
				return true
			}
		}
		return false
	}
	if risesBeyond(o.limits, "") {
		return false
	}
	for _, user := range []string{"ada", "bob"} {
		if risesBeyond(o.userLimits, user) {
			return false
		}
	}
	o.held = changed.held
	return true
}

// TestResizeAgainstTheOracle compares every decision and all usage with the oracle.
func TestResizeAgainstTheOracle(t *testing.T) {
	t.Parallel()
	verify.Check(t, func(t *rapid.T) {
		o := &resizeOracle{held: map[string]heldAmounts{}, users: map[string]string{}}
		l := ledger.New(quota.DefaultBounds())
		p := &resizePlay{oracle: o, ledger: l}
		p.configure(t)
		for range 40 {
			p.step(t)
			if err := l.Check(); err != nil {
				t.Fatal(err)
			}
			p.compare(t)
		}
	})
}

// resizePlay carries out commands on a ledger and on the oracle.
type resizePlay struct {
	oracle     *resizeOracle
	ledger     *ledger.Ledger
	generation uint64 // the last one that a transfer had
}

var resizePaths = []string{"", "a", "a/x", "a/y", "b"}

// configure sets limits anew, which may be lower than what is held.
func (p *resizePlay) configure(t *rapid.T) {
	p.oracle.limits, p.oracle.userLimits = heldAmounts{}, heldAmounts{}
	spec := quota.TreeSpec{
		Name: "t", Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}, {Name: "mem", Unit: quota.Count}},
	}
	for _, path := range resizePaths {
		n := quota.NodeSpec{Path: path}
		for _, r := range []string{"cpu", "mem"} {
			if quotatest.Die(t, 3, "unlimited") > 0 {
				most := quota.Amount(quotatest.Die(t, 12, "limit"))
				n.Limits = append(n.Limits, quota.ResourceLimit{Resource: r, Limit: quota.AtMost(most)})
				p.oracle.limits[[2]string{path, r}] = most
			}
		}
		if quotatest.Die(t, 3, "users") == 0 {
			most := quota.Amount(quotatest.Die(t, 8, "user limit"))
			n.Principals = []quota.PrincipalLimit{{
				Users: []string{"ada", "bob"}, Limits: quota.Vector{{Resource: "cpu", Amount: most}},
			}}
			p.oracle.userLimits[[2]string{path, "cpu"}] = most
		}
		spec.Nodes = append(spec.Nodes, n)
	}
	spec.Nodes[0].Policy = "open"
	if out := p.ledger.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: []quota.TreeSpec{spec}}); out.Refused != nil {
		t.Fatal(out.Refused)
	}
}

func (p *resizePlay) step(t *rapid.T) {
	id := fmt.Sprint("i", quotatest.Die(t, 5, "id"))
	node := resizePaths[quotatest.Die(t, len(resizePaths), "node")]
	amounts := quota.Vector{
		{Resource: "cpu", Amount: quota.Amount(quotatest.Die(t, 6, "cpu"))},
		{Resource: "mem", Amount: quota.Amount(quotatest.Die(t, 6, "mem"))},
	}[:1+quotatest.Die(t, 2, "resources")]
	switch n := quotatest.Die(t, 12, "step"); {
	case n == 0:
		p.configure(t)
	case p.oracle.held[id] == nil:
		p.allocate(t, id, node, amounts)
	case n == 1:
		p.ledger.Apply(quota.Stamp{}, quota.Release{ID: id})
		delete(p.oracle.held, id)
	case n < 6:
		p.resize(t, id, node, amounts)
	case n < 9:
		p.transfer(t, id, node)
	default:
		p.split(t, id, node)
	}
}

func (p *resizePlay) allocate(t *rapid.T, id, node string, amounts quota.Vector) {
	for i := range amounts {
		amounts[i].Amount++ // an amount of zero has a claim, which this oracle does not know
	}
	user := []string{"", "ada", "bob"}[quotatest.Die(t, 3, "user")]
	request := quota.Allocate{
		ID: id, Principal: quota.Principal{User: user}, Claims: []quota.Claim{{Tree: "t", Node: node, Amounts: amounts}},
		Mode: []quota.Mode{quota.Hold, quota.Hold, quota.Force}[quotatest.Die(t, 3, "mode")],
	}
	out := p.ledger.Apply(quota.Stamp{At: p.ledger.View().Now() + 700_000}, request)
	if out.Refused != nil {
		t.Fatal(out.Refused)
	}
	if !out.Decision.Granted {
		return
	}
	p.oracle.users[id], p.oracle.held[id] = user, heldAmounts{}
	for _, c := range amounts {
		p.oracle.held[id][[2]string{node, c.Resource}] = c.Amount
	}
}

// require compares a decision with the oracle's, and reports whether the change is made.
func (p *resizePlay) require(t *rapid.T, c quota.Command, after map[string]heldAmounts) bool {
	granted := p.oracle.exchange(after)
	out := p.ledger.Apply(quota.Stamp{}, c)
	if out.Refused != nil || out.Decision.Granted != granted {
		t.Fatalf("%+v: %v %+v, but the oracle grants it: %t", c, out.Refused, out.Decision, granted)
	}
	return granted
}

func (p *resizePlay) refuse(t *rapid.T, c quota.Command) {
	if out := p.ledger.Apply(quota.Stamp{}, c); out.Refused == nil && !out.Repeated {
		t.Fatalf("%+v is not refused", c)
	}
}

func (p *resizePlay) resize(t *rapid.T, id, node string, amounts quota.Vector) {
	after, isSame := maps.Clone(p.oracle.held[id]), true
	for _, c := range amounts {
		at := [2]string{node, c.Resource}
		isSame = isSame && after[at] == c.Amount
		if after[at] = c.Amount; c.Amount == 0 {
			delete(after, at)
		}
	}
	if isSame {
		after = p.oracle.held[id]
	}
	c := quota.Resize{ID: id, Claims: []quota.ClaimChange{{Tree: "t", Node: node, Amounts: amounts}}}
	if len(after) == 0 {
		if out := p.ledger.Apply(quota.Stamp{}, c); out.Refused == nil && !out.Repeated {
			t.Fatalf("%+v leaves nothing, and is not refused", c)
		}
		return
	}
	p.require(t, c, map[string]heldAmounts{id: after})
}

// transfer moves some of the claims at once, each from where it is before the command. It is known when it is repeated.
func (p *resizePlay) transfer(t *rapid.T, id, to string) {
	p.generation++
	c := quota.Transfer{ID: id, Generation: p.generation}
	goes := map[string]string{}
	for _, from := range p.placesOf(id) {
		if len(goes) == 0 || quotatest.Die(t, 2, "moves too") == 0 {
			goes[from] = to
			c.Moves = append(c.Moves, quota.ClaimMove{Tree: "t", From: from, To: to})
		}
		to = resizePaths[quotatest.Die(t, len(resizePaths), "to")]
	}
	after := heldAmounts{}
	for at, amount := range p.oracle.held[id] {
		if moved, moves := goes[at[0]]; moves {
			at[0] = moved
		}
		after[at] += amount
	}
	if p.require(t, c, map[string]heldAmounts{id: after}) {
		if out := p.ledger.Apply(quota.Stamp{}, c); !out.Repeated {
			t.Fatalf("%+v is done twice: %+v", c, out)
		}
	}
}

// claimOf is the node of one of its claims.
func (p *resizePlay) claimOf(t *rapid.T, id string) string {
	list := p.placesOf(id)
	return list[quotatest.Die(t, len(list), "claim")]
}

// placesOf are the nodes of its claims.
func (p *resizePlay) placesOf(id string) []string {
	places := map[string]bool{}
	for at := range p.oracle.held[id] {
		places[at[0]] = true
	}
	return slices.Sorted(maps.Keys(places))
}

func (p *resizePlay) split(t *rapid.T, id, to string) {
	from, part := p.claimOf(t, id), fmt.Sprint("i", quotatest.Die(t, 5, "part"))
	left, taken := maps.Clone(p.oracle.held[id]), heldAmounts{}
	claim := quota.PartClaim{Tree: "t", From: from, To: to}
	for _, r := range []string{"cpu", "mem"} {
		at := [2]string{from, r}
		if left[at] == 0 || quotatest.Die(t, 2, "takes") == 0 {
			continue
		}
		amount := quota.Amount(1 + quotatest.Die(t, int(left[at]), "amount"))
		claim.Amounts = append(claim.Amounts, quota.Component{Resource: r, Amount: amount})
		taken[[2]string{to, r}] = amount
		if left[at] -= amount; left[at] == 0 {
			delete(left, at)
		}
	}
	c := quota.Split{ID: id, Parts: []quota.Part{{ID: part, Claims: []quota.PartClaim{claim}}}}
	if p.oracle.held[part] != nil || len(taken) == 0 || len(left) == 0 {
		p.refuse(t, c)
		return
	}
	p.ledger.Apply(quota.Stamp{At: p.ledger.View().Now() + 700_000}, quota.Expire{Most: 1}) // its id is free again
	before := p.oracle.users[part]
	p.oracle.users[part] = p.oracle.users[id]
	p.require(t, c, map[string]heldAmounts{id: left, part: taken})
	if p.oracle.held[part] == nil {
		p.oracle.users[part] = before
	}
}

// compare compares what is held.
func (p *resizePlay) compare(t *rapid.T) {
	page, refused := p.ledger.View().Allocations(quota.AllocationFilter{}, 0, 100)
	if refused != nil || len(page.Allocations) != len(p.oracle.held) {
		t.Fatalf("%d are held, the oracle has %d: %v", len(page.Allocations), len(p.oracle.held), refused)
	}
	for _, a := range page.Allocations {
		is := heldAmounts{}
		for _, c := range a.Claims {
			for _, component := range c.Amounts {
				is[[2]string{c.Node, component.Resource}] = component.Amount
			}
		}
		if !maps.Equal(is, p.oracle.held[a.ID]) {
			t.Fatalf("%s holds %v, the oracle says %v", a.ID, is, p.oracle.held[a.ID])
		}
	}
}
