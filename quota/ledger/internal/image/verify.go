package image

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/configure"
	"github.com/quorate/quorate/quota/ledger/internal/state"
	"github.com/quorate/quorate/quota/policy"
)

// verifier recomputes derived state and compares it.
type verifier struct{ state *state.State }

// Check recomputes all derived state and returns the first invariant that is broken, as Ledger.Check promises.
func Check(s *state.State) error {
	v := verifier{s}
	sums := tallies{nodes: map[*state.Node]*tally{}, holds: map[*state.Resource]int{}}
	if err := v.checkHeld(sums); err != nil {
		return err
	}
	if err := v.checkPolicies(); err != nil {
		return err
	}
	nodes := 0
	for name, t := range s.Forest.Trees {
		if t.Name != name {
			return fmt.Errorf("tree %s is filed under %s", t.Name, name)
		}
		if err := checkTree(t, sums, s.Civil.Now); err != nil {
			return err
		}
		if err := v.checkMarks(t); err != nil {
			return err
		}
		nodes += len(t.ByPath)
	}
	if nodes != s.Forest.Nodes {
		return fmt.Errorf("the ledger counts %d nodes but has %d", s.Forest.Nodes, nodes)
	}
	if err := v.checkStocks(); err != nil {
		return err
	}
	if err := v.state.Civil.Check(v.state.Now.At); err != nil {
		return err
	}
	if err := v.checkDue(); err != nil {
		return err
	}
	if err := v.checkCalendar(); err != nil {
		return err
	}
	if err := v.checkBorrowIndexes(); err != nil {
		return err
	}
	if err := v.checkAccounts(); err != nil {
		return err
	}
	if err := v.checkQueue(); err != nil {
		return err
	}
	if err := v.checkSizes(); err != nil {
		return err
	}
	if err := v.checkDenials(); err != nil {
		return err
	}
	if err := v.checkRequests(); err != nil {
		return err
	}
	if err := v.checkWebhooks(); err != nil {
		return err
	}
	if err := v.checkHolds(); err != nil {
		return err
	}
	return v.checkEnded()
}

// tally is the expected usage of a node.
type tally struct {
	own    map[*state.Resource]quota.Amount
	claims int
}

// tallies are the expected usage of all nodes and resources.
type tallies struct {
	nodes map[*state.Node]*tally
	holds map[*state.Resource]int
}

func (v verifier) checkHeld(sums tallies) error {
	for fence, a := range v.state.Allocations.Held.All() {
		switch {
		case a.Fence() != fence || fence > v.state.Allocations.Fence:
			return fmt.Errorf("I8: allocation %q has fence %d, is filed under %d, and the last given is %d", a.ID(),
				a.Fence(), fence, v.state.Allocations.Fence)
		case a.Ended != nil || v.state.Allocations.ByID.Find(a.ID()) != a:
			return fmt.Errorf("allocation %q is held but cannot be found by its id", a.ID())
		case a.Granted.At > v.state.Now.At:
			return fmt.Errorf("I9: allocation %q was granted at %d, and it is %d now", a.ID(), a.Granted.At, v.state.Now.At)
		case a.WaitingResize() != nil && v.state.Queue.ByArrival[a.WaitingResize().More.Waiting.Arrival] == nil:
			return fmt.Errorf("a resize of allocation %q waits, but not in the queue", a.ID())
		}
		for _, c := range a.Claims {
			sums.add(c)
		}
	}
	return nil
}

func (s tallies) add(c state.PlacedClaim) {
	sum := s.nodes[c.At]
	if sum == nil {
		sum = &tally{own: map[*state.Resource]quota.Amount{}}
		s.nodes[c.At] = sum
	}
	sum.claims++
	for _, p := range c.Amounts {
		sum.own[p.Resource] += p.Amount
		s.holds[p.Resource]++
	}
}

// checkTree compares a tree with the sums.
func checkTree(t *state.Tree, sums tallies, now quota.CivilTime) error {
	for i, r := range t.Resources {
		if r.Index != i || r.Holds != sums.holds[r] {
			return fmt.Errorf("resource %s of tree %s is not in its place, or counts %d holds but has %d", r.Name,
				t.Name, r.Holds, sums.holds[r])
		}
	}
	var err error
	claims, nodes := 0, 0
	t.Root.Walk(func(n *state.Node) bool {
		nodes++
		claims += n.Claims
		sum := sums.nodes[n]
		if sum == nil {
			sum = &tally{}
		}
		if err = checkNode(n, t, sum, now); err == nil {
			err = n.CheckThresholds()
		}
		return err == nil
	})
	if err == nil {
		err = checkConfiguredNodes(t)
	}
	if err == nil && (claims != t.Claims || nodes != len(t.ByPath)) {
		err = fmt.Errorf("tree %s counts %d claims and %d nodes but has %d and %d", t.Name, t.Claims,
			len(t.ByPath), claims, nodes)
	}
	return err
}

func checkConfiguredNodes(t *state.Tree) error {
	soft := false
	var err error
	t.Root.Walk(func(n *state.Node) bool {
		soft = soft || n.Borrows == policy.BorrowSoft
		fresh := *n
		admit.DeriveSettings(&fresh)
		switch {
		case n.Spec.Path != n.Path || n.From != nil:
			err = fmt.Errorf("%s is configured as %q, or still a draft", n.Place(), n.Spec.Path)
		case n.Parent != nil && (n.Parent.Path != quota.ParentPath(n.Path) || t.ByPath[n.Parent.Path] != n.Parent):
			err = fmt.Errorf("%s stands below %s", n.Place(), n.Parent.Place())
		case n.Dynamic && n.IsIdle():
			err = fmt.Errorf("%s was made on demand, and nothing is held there", n.Place())
		case fresh.Policy != n.Policy || fresh.Strict != n.Strict || fresh.Borrows != n.Borrows ||
			fresh.Special != n.Special || !slices.Equal(fresh.Fallbacks, n.Fallbacks):
			err = fmt.Errorf(
				"%s has not the policy, the queueing or the defaults that it is configured to have", n.Place())
		case !slices.IsSortedFunc(n.Children, state.ByPath):
			err = fmt.Errorf("the children of %s are out of order", n.Place())
		}
		return err == nil
	})
	if err == nil && soft != t.Soft {
		err = fmt.Errorf("tree %s borrows softly somewhere: %v, but says %v", t.Name, soft, t.Soft)
	}
	return err
}

func checkNode(n *state.Node, t *state.Tree, sum *tally, now quota.CivilTime) error {
	if n.Tree != t || t.ByPath[n.Path] != n || n.Claims != sum.claims {
		return fmt.Errorf("%s is not in its place, or counts %d claims but has %d", n.Place(), n.Claims, sum.claims)
	}
	for i, r := range t.Resources {
		below := n.Own[i]
		for _, child := range n.Children {
			below += child.Subtree[i]
		}
		switch {
		case n.Own[i] != sum.own[r]:
			return fmt.Errorf("I2: %s says it holds %d %s itself, but its claims add up to %d", n.Place(), n.Own[i],
				r.Name, sum.own[r])
		case n.Subtree[i] != below:
			return fmt.Errorf("I1: %s says its subtree holds %d %s, but own use and children add up to %d", n.Place(),
				n.Subtree[i], r.Name, below)
		case n.Own[i] < 0 || n.Subtree[i] < 0 || n.Subtree[i] > quota.MaxAmount:
			return fmt.Errorf("%s holds %d %s itself and %d in its subtree, less than nothing or more than can be",
				n.Place(), n.Own[i], r.Name, n.Subtree[i])
		case n.Ceilings[i] != n.Ceiling(i):
			return fmt.Errorf("%s is admitted up to %d %s, but its limit is %s", n.Place(), n.Ceilings[i],
				r.Name, n.Effective(i))
		}
		if err := admit.CheckPool(n, i); err != nil {
			return err
		}
		if n.Policy.Sum == policy.SumWithinLimit {
			// The limits are those that the calendar gives at this time. While some windows that begin or end at one instant
			// wait for the next Expire, what is in force is between two families, and no policy was asked about that.
			if text := n.Policy.CheckFamily(configure.FamilyAt(n, i, n.Own[i], nil, now)); text != "" {
				return fmt.Errorf("I6: %s for %s: %s", n.Place(), r.Name, text)
			}
		}
	}
	return nil
}

func (v verifier) checkEnded() error {
	last, youngest := quota.Instant(0), map[string]*state.Allocation{}
	for _, a := range v.state.Allocations.Ended.All() {
		if a.Ended == nil || a.Ended.At < last || a.Ended.At > v.state.Now.At {
			return fmt.Errorf("I9: ended allocations are out of order at %q, or it ended in the future", a.ID())
		}
		last, youngest[a.ID()] = a.Ended.At, a
	}
	ids := v.state.Allocations.Held.Len() + v.state.Queue.All.Len()
	for w := range v.state.Queue.All.All() {
		if w.IsResize() {
			ids-- // that of its allocation
		}
	}
	for id, a := range youngest {
		switch known := v.state.Allocations.ByID.Find(id); {
		case known == a:
			ids++
		case known == nil || known.Ended != nil:
			return fmt.Errorf("ended allocation %q cannot be found by its id", id)
		}
	}
	if ids != v.state.Allocations.ByID.Len() {
		return fmt.Errorf("%d ids are known, but %d allocations are held or ended", v.state.Allocations.ByID.Len(), ids)
	}
	return nil
}
