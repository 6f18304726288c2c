package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestCancelIsIdentity: if nothing comes in between, the state after a reservation was cancelled or has lapsed is the
// state before it was made: every placement, arrival number, item, waiting request, user and group, also where nodes
// are over their limits, and also if the ledger was loaded in between. Only fences and other counters, events, which
// thresholds are crossed, and the record of the reservation itself differ.
func TestCancelIsIdentity(t *testing.T) {
	var all identitySeen
	var mu sync.Mutex
	worlds := identityWorlds()
	t.Cleanup(func() {
		if t.Logf("%+v", all); all.worlds == len(worlds) && all.isTooLittle() {
			t.Errorf("the test has seen too little: %+v", all)
		}
	})
	for name, w := range worlds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen identitySeen
			verify.Check(t, func(t *rapid.T) { cancelIsIdentity(t, w, &seen) })
			mu.Lock()
			defer mu.Unlock()
			all.add(seen)
		})
	}
}

// identityWorld is how to fill a ledger, and what is reserved in it.
type identityWorld struct {
	trees    func(*rapid.T) []quota.ApplyTrees
	commands *rapid.Generator[quota.Command]
}

type identitySeen struct{ undone, lapsed, restored, whileOver, between, worlds int }

func (s *identitySeen) isTooLittle() bool {
	share := verify.Scale(10, 1) // a fifth of the runs, with room for luck
	return s.undone < 500/share || s.lapsed < 100/share || s.restored < 50/share || s.whileOver < 10/share
}

func (s *identitySeen) add(more identitySeen) {
	s.undone += more.undone
	s.lapsed += more.lapsed
	s.restored += more.restored
	s.whileOver += more.whileOver
	s.between += more.between
	s.worlds++
}

func identityWorlds() map[string]identityWorld {
	two := func(tree func(string) *rapid.Generator[quota.ApplyTrees]) func(*rapid.T) []quota.ApplyTrees {
		return func(t *rapid.T) []quota.ApplyTrees {
			return []quota.ApplyTrees{tree("t").Draw(t, "t"), tree("u").Draw(t, "u")}
		}
	}
	waiting := func(commands *rapid.Generator[quota.Command]) *rapid.Generator[quota.Command] {
		return rapid.Custom(func(t *rapid.T) quota.Command { return patient(t, commands.Draw(t, "command")) })
	}
	return map[string]identityWorld{
		"mixed":     {trees: two(quotatest.MixedTree), commands: quotatest.MixedCommands()},
		"borrowing": {trees: two(quotatest.BorrowingTree), commands: waiting(quotatest.BorrowingCommands())},
		"forest":    {trees: forestTrees, commands: quotatest.MixedCommands()},
		"items":     {trees: two(quotatest.ItemTree), commands: quotatest.ItemCommands()},
		"queue for items": {
			trees:    func(t *rapid.T) []quota.ApplyTrees { return []quota.ApplyTrees{itemTree(t)} },
			commands: waiting(itemCommands()),
		},
		"cohorts": {
			trees:    func(t *rapid.T) []quota.ApplyTrees { return []quota.ApplyTrees{cohortTree(t)} },
			commands: waiting(cohortCommands()),
		},
		"all":     {trees: two(quotatest.Tree), commands: waiting(quotatest.AllCommands())},
		"dynamic": {trees: dynamicTrees, commands: dynamicCommands()},
	}
}

func forestTrees(t *rapid.T) []quota.ApplyTrees {
	var list []quota.ApplyTrees
	for _, name := range []string{"t", "u"} {
		c := quotatest.MixedTree(name).Draw(t, name)
		c.Trees[0].Forest = "f"
		list = append(list, c)
	}
	return list
}

// dynamicTrees are a tree in which claims borrow, and one whose nodes are made on demand.
func dynamicTrees(t *rapid.T) []quota.ApplyTrees {
	projects := quota.TreeSpec{
		Name: "u", Resources: []quota.Resource{{Name: "cpu", Unit: quota.Count}},
		Nodes: []quota.NodeSpec{
			{
				Policy: "project", Limits: []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(9)}},
				Defaults: []quota.ResourceLimit{{Resource: "cpu", Limit: quota.AtMost(4)}},
			},
		},
	}
	return []quota.ApplyTrees{quotatest.BorrowingTree("t").Draw(t, "t"), {Trees: []quota.TreeSpec{projects}}}
}

// dynamicCommands hold in the tree that borrows, and mostly at nodes made on demand of the other one too.
func dynamicCommands() *rapid.Generator[quota.Command] {
	return rapid.Custom(func(t *rapid.T) quota.Command {
		c, ok := quotatest.BorrowingCommands().Draw(t, "command").(quota.Allocate)
		if !ok {
			return quota.Release{ID: fmt.Sprintf("b%d", die(t, 40))}
		}
		c.Claims, c.AnyOf = c.Lists()[0][:1], nil
		c.Claims[0].Tree, c.Claims[0].Amounts = "t", c.Claims[0].Amounts[:1]
		if die(t, 4) > 0 {
			node := []string{"p", "q", "p/x", "p/y", "q/x/z"}[die(t, 5)]
			c.Claims = append(
				c.Claims, quota.Claim{
					Tree: "u", Node: node,
					Amounts: quota.Vector{{Resource: "cpu", Amount: quota.Amount(die(t, 3))}},
				})
		}
		return c
	})
}

// cancelIsIdentity fills a ledger, and then reserves and takes back again and again, with other commands in between the
// rounds.
func cancelIsIdentity(t *rapid.T, w identityWorld, seen *identitySeen) {
	bounds := quota.DefaultBounds()
	l, stamp := ledger.New(bounds), quota.Stamp{At: 1}
	for _, c := range w.trees(t) {
		l.Apply(stamp, c)
	}
	for range 50 {
		stamp.At += quota.Instant(quotatest.Die(t, 2, "tick"))
		l.Apply(stamp, w.commands.Draw(t, "command"))
	}
	for round := range 8 {
		if quotatest.Die(t, 3, "other limit") == 0 {
			l.Apply(stamp, otherLimit(t))
		}
		if c := candidate(t, l, w.commands, round); c != nil {
			l = reserveAndCancel(t, l, &stamp, *c, seen)
		}
		l.Apply(stamp, w.commands.Draw(t, "command"))
	}
}

// candidate is a reservation that would be granted, if one is found soon: better one that would preempt others.
func candidate(t *rapid.T, l *ledger.Ledger, commands *rapid.Generator[quota.Command],
	round int,
) (best *quota.Allocate) {
	for range 8 {
		c, ok := commands.Draw(t, "reserved").(quota.Allocate)
		if !ok {
			continue
		}
		c = reservationOf(t, c, round)
		switch d := l.Sandbox().DryRun(c).Decision; {
		case d == nil || !d.Granted:
		case len(d.Preempted) > 0:
			return &c
		default:
			best = &c
		}
	}
	return best
}

// reservationOf makes a request one that only reserves, mostly of a priority that preempts others.
func reservationOf(t *rapid.T, c quota.Allocate, round int) quota.Allocate {
	c.ID, c.Mode, c.WaitFor, c.Keep = fmt.Sprintf("r%d", round), quota.Reserve, 0, 0
	c.ReserveFor = []quota.Span{1, 1000}[quotatest.Die(t, 2, "span")]
	c.Claims = slices.Clone(c.Claims)
	for i := range c.Claims {
		c.Claims[i].Priority += int64(quotatest.Die(t, 4, "more"))
	}
	return c
}

func otherLimit(t *rapid.T) quota.SetLimits {
	return quota.SetLimits{
		Tree: quotatest.TreeNames[quotatest.Die(t, 2, "tree")],
		Node: []string{"", "a", "b", "a/x", "a/y", "a+", "a/x/p"}[quotatest.Die(t, 7, "node")],
		Limits: []quota.ResourceLimit{
			{Resource: "cpu", Limit: quota.AtMost(quota.Amount(quotatest.Die(t, 10, "limit")))},
		},
	}
}

// reserveAndCancel returns the ledger, which may have been loaded.
func reserveAndCancel(t *rapid.T, l *ledger.Ledger, stamp *quota.Stamp, c quota.Allocate,
	seen *identitySeen,
) *ledger.Ledger {
	before, over := stateBut(l, c.ID), len(overOf(l)) > 0
	l.TakeFacts()
	if out := l.Apply(*stamp, c); out.Allocation == nil {
		return l
	}
	waitersGranted := grantsOf(l) > 1
	if quotatest.Die(t, 4, "load") == 0 {
		l = reload(t, l)
	}
	if other, ok := quotatest.MixedCommands().Draw(t, "within").(quota.Allocate); ok &&
		quotatest.Die(t, 2, "nested") == 0 {
		other.ID, other.Mode, other.ReserveFor = c.ID+"-within", quota.Reserve, 1000
		l.Apply(*stamp, other)
		waitersGranted = waitersGranted || grantsOf(l) > 1
		l.Apply(*stamp, quota.Cancel{ID: other.ID})
	}
	restored, lapsed, between := undoReservation(t, l, stamp, c)
	// one that the reservation has moved to another line of the queue (ADR 0059)
	waitersGranted = waitersGranted || grantsOf(l) > 0
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	if waitersGranted || between {
		seen.between++ // a waiting request was granted what a victim held elsewhere; that came in between
		return l
	}
	if seen.undone++; lapsed {
		seen.lapsed++
	}
	if restored > 0 {
		if seen.restored++; over {
			seen.whileOver++
		}
	}
	if diff := cmp.Diff(before, stateBut(l, c.ID)); diff != "" {
		t.Fatalf("at %d %s was cancelled (lapsed: %t), and not all is as before (-before +after):\n%s", stamp.At,
			brief(c), lapsed, diff)
	}
	return l
}

func grantsOf(l *ledger.Ledger) (granted int) {
	for _, f := range l.TakeFacts() {
		if f.Kind == ledger.FactGranted {
			granted++
		}
	}
	return granted
}

// undoReservation cancels a reservation, or lets it lapse if nothing else happens until then. It answers how many hold
// again. between is true if something else happened at the same time.
func undoReservation(t *rapid.T, l *ledger.Ledger, stamp *quota.Stamp,
	c quota.Allocate,
) (restored int, lapsed, between bool) {
	end := stamp.At + quota.Instant(c.ReserveFor)
	if next, _ := l.Reader().NextDue(); next == end && quotatest.Die(t, 2, "lapse") == 0 {
		stamp.At = end
		restored, between = len(l.Apply(*stamp, quota.Expire{Most: 1}).Restored), true
	}
	a, refused := l.Reader().Allocation(c.ID)
	if refused != nil {
		t.Fatal(refused)
	}
	if a.Ended {
		return restored, true, false
	}
	return restored + len(l.Apply(*stamp, quota.Cancel{ID: c.ID}).Restored), false, between
}

// stateBut is all that a ledger holds but for counters, events, and the records of reservations that are cancelled.
func stateBut(l *ledger.Ledger, id string) []string {
	image := l.Snapshot()
	h := image.Header
	list := []string{asJSON([]any{h.Revision, image.Revisions()})}
	for _, tree := range image.Trees() {
		tree.ItemNumbers = nil
		forgetCrossed(&tree)
		list = append(list, asJSON(tree))
		page, refused := l.Reader().Usage(quota.UsageQuery{Tree: tree.Name, Subtree: true, Max: 1000})
		if refused != nil {
			panic(refused)
		}
		for _, n := range page.Nodes {
			list = append(list, asJSON(n))
		}
		for _, kind := range []quota.HolderKind{quota.AUser, quota.AGroup} {
			principals, _, refused := l.Reader().Principals(tree.Name, kind, "", "", 1000)
			if refused != nil {
				panic(refused)
			}
			list = append(list, asJSON(principals))
		}
	}
	for a := range image.Held() {
		if a.Expires != 0 && a.RevokedBy == "" {
			a.Expires = 1 // what was preempted gets the time back that it was out
		}
		if len(a.Data) == 0 {
			a.Data = nil // an empty list is none in a ledger that was loaded
		}
		list = append(list, asJSON(a))
	}
	for a := range image.Ended() {
		a.Data = nil // an empty list is none in a ledger that was loaded
		if !strings.HasPrefix(a.Request.ID, id) {
			list = append(list, asJSON(a))
		}
	}
	for it := range image.Items() {
		list = append(list, asJSON(it))
	}
	for w := range image.Waiting() {
		// which of the things in its way it is listed under; the order is that of the list
		w.Line, w.HeadSince = ledger.BlockerImage{}, 0
		for i := range w.Others {
			w.Others[i].Line, w.Others[i].HeadSince = ledger.BlockerImage{}, 0
		}
		list = append(list, asJSON(w))
	}
	return list
}
