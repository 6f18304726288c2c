package ledger

import (
	"fmt"
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// verifier recomputes derived state and compares it.
type verifier struct{ ledger *Ledger }

// Check recomputes all derived state and returns the first invariant that does not hold. It visits the whole ledger:
// use it in tests, after a restore, and in builds with the tag "invariants".
func (l *Ledger) Check() error {
	v := verifier{l}
	sums := tallies{nodes: map[*node]*tally{}, holds: map[*resource]int{}}
	if err := v.checkHeld(sums); err != nil {
		return err
	}
	if err := v.checkPolicies(); err != nil {
		return err
	}
	nodes := 0
	for name, t := range l.forest.trees {
		if t.name != name {
			return fmt.Errorf("tree %s is filed under %s", t.name, name)
		}
		if err := t.check(sums, l.civil.now); err != nil {
			return err
		}
		if err := v.checkMarks(t); err != nil {
			return err
		}
		nodes += len(t.byPath)
	}
	if nodes != l.forest.nodes {
		return fmt.Errorf("the ledger counts %d nodes but has %d", l.forest.nodes, nodes)
	}
	if err := v.checkStocks(); err != nil {
		return err
	}
	if err := v.ledger.civil.check(v.ledger.now.At); err != nil {
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
	own    map[*resource]quota.Amount
	claims int
}

// tallies are the expected usage of all nodes and resources.
type tallies struct {
	nodes map[*node]*tally
	holds map[*resource]int
}

func (v verifier) checkHeld(sums tallies) error {
	for fence, a := range v.ledger.allocations.held.All() {
		switch {
		case a.fence != fence || fence > v.ledger.allocations.fence:
			return fmt.Errorf("I8: allocation %q has fence %d, is filed under %d, and the last given is %d", a.id,
				a.fence, fence, v.ledger.allocations.fence)
		case a.ended != nil || v.ledger.allocations.byID.Find(a.id) != a:
			return fmt.Errorf("allocation %q is held but cannot be found by its id", a.id)
		case a.granted.At > v.ledger.now.At:
			return fmt.Errorf("I9: allocation %q was granted at %d, and it is %d now", a.id, a.granted.At, v.ledger.now.At)
		case a.waitingResize() != nil && v.ledger.queue.byArrival[a.waitingResize().more.waiting.arrival] == nil:
			return fmt.Errorf("a resize of allocation %q waits, but not in the queue", a.id)
		}
		for _, c := range a.claims {
			sums.add(c)
		}
	}
	return nil
}

func (s tallies) add(c placedClaim) {
	sum := s.nodes[c.at]
	if sum == nil {
		sum = &tally{own: map[*resource]quota.Amount{}}
		s.nodes[c.at] = sum
	}
	sum.claims++
	for _, p := range c.amounts {
		sum.own[p.resource] += p.amount
		s.holds[p.resource]++
	}
}

// check compares a tree with the sums.
func (t *tree) check(sums tallies, now quota.CivilTime) error {
	for i, r := range t.resources {
		if r.index != i || r.holds != sums.holds[r] {
			return fmt.Errorf("resource %s of tree %s is not in its place, or counts %d holds but has %d", r.Name,
				t.name, r.holds, sums.holds[r])
		}
	}
	var err error
	claims, nodes := 0, 0
	t.root.walk(func(n *node) bool {
		nodes++
		claims += n.claims
		sum := sums.nodes[n]
		if sum == nil {
			sum = &tally{}
		}
		if err = n.check(t, sum, now); err == nil {
			err = n.checkThresholds()
		}
		return err == nil
	})
	if err == nil {
		err = t.checkConfigured()
	}
	if err == nil && (claims != t.claims || nodes != len(t.byPath)) {
		err = fmt.Errorf("tree %s counts %d claims and %d nodes but has %d and %d", t.name, t.claims,
			len(t.byPath), claims, nodes)
	}
	return err
}

// checkConfigured verifies what is derived from the configuration alone.
func (t *tree) checkConfigured() error {
	governed, soft := false, false
	var err error
	t.root.walk(func(n *node) bool {
		governed, soft = governed || len(n.spec.Admins) > 0, soft || n.borrows == policy.BorrowSoft
		fresh := *n
		fresh.deriveSettings()
		switch {
		case n.spec.Path != n.path || n.from != nil:
			err = fmt.Errorf("%s is configured as %q, or still a draft", n.place(), n.spec.Path)
		case n.parent != nil && (n.parent.path != quota.ParentPath(n.path) || t.byPath[n.parent.path] != n.parent):
			err = fmt.Errorf("%s stands below %s", n.place(), n.parent.place())
		case n.dynamic && n.isIdle():
			err = fmt.Errorf("%s was made on demand, and nothing is held there", n.place())
		case fresh.policy != n.policy || fresh.strict != n.strict || fresh.borrows != n.borrows ||
			fresh.special != n.special || !slices.Equal(fresh.fallbacks, n.fallbacks):
			err = fmt.Errorf(
				"%s has not the policy, the queueing or the defaults that it is configured to have", n.place())
		case !slices.IsSortedFunc(n.children, byPath):
			err = fmt.Errorf("the children of %s are out of order", n.place())
		}
		return err == nil
	})
	if err == nil && soft != t.soft {
		err = fmt.Errorf("tree %s borrows softly somewhere: %v, but says %v", t.name, soft, t.soft)
	}
	if err == nil && governed != t.governed {
		err = fmt.Errorf("tree %s names admins: %v, but counts as governed: %v", t.name, governed, t.governed)
	}
	return err
}

func (n *node) check(t *tree, sum *tally, now quota.CivilTime) error {
	if n.tree != t || t.byPath[n.path] != n || n.claims != sum.claims {
		return fmt.Errorf("%s is not in its place, or counts %d claims but has %d", n.place(), n.claims, sum.claims)
	}
	for i, r := range t.resources {
		below := n.own[i]
		for _, child := range n.children {
			below += child.subtree[i]
		}
		switch {
		case n.own[i] != sum.own[r]:
			return fmt.Errorf("I2: %s says it holds %d %s itself, but its claims add up to %d", n.place(), n.own[i],
				r.Name, sum.own[r])
		case n.subtree[i] != below:
			return fmt.Errorf("I1: %s says its subtree holds %d %s, but own use and children add up to %d", n.place(),
				n.subtree[i], r.Name, below)
		case n.own[i] < 0 || n.subtree[i] < 0 || n.subtree[i] > quota.MaxAmount:
			return fmt.Errorf("%s holds %d %s itself and %d in its subtree, less than nothing or more than can be",
				n.place(), n.own[i], r.Name, n.subtree[i])
		case n.ceilings[i] != n.ceiling(i):
			return fmt.Errorf("%s is admitted up to %d %s, but its limit is %s", n.place(), n.ceilings[i],
				r.Name, n.effective(i))
		}
		if err := n.checkPool(i); err != nil {
			return err
		}
		if n.policy.Sum == policy.SumWithinLimit {
			// The limits are those that the calendar gives at this time. While some windows that begin or end at one instant
			// wait for the next Expire, what is in force is between two families, and no policy was asked about that.
			if text := n.policy.CheckFamily(n.familyAt(i, n.own[i], nil, now)); text != "" {
				return fmt.Errorf("I6: %s for %s: %s", n.place(), r.Name, text)
			}
		}
	}
	return nil
}

func (v verifier) checkEnded() error {
	last, youngest := quota.Instant(0), map[string]*Allocation{}
	for _, a := range v.ledger.allocations.ended.All() {
		if a.ended == nil || a.ended.At < last || a.ended.At > v.ledger.now.At {
			return fmt.Errorf("I9: ended allocations are out of order at %q, or it ended in the future", a.id)
		}
		last, youngest[a.id] = a.ended.At, a
	}
	ids := v.ledger.allocations.held.Len() + v.ledger.queue.all.Len()
	for w := range v.ledger.queue.all.All() {
		if w.isResize() {
			ids-- // that of its allocation
		}
	}
	for id, a := range youngest {
		switch known := v.ledger.allocations.byID.Find(id); {
		case known == a:
			ids++
		case known == nil || known.ended != nil:
			return fmt.Errorf("ended allocation %q cannot be found by its id", id)
		}
	}
	if ids != v.ledger.allocations.byID.Len() {
		return fmt.Errorf("%d ids are known, but %d allocations are held or ended", v.ledger.allocations.byID.Len(), ids)
	}
	return nil
}
