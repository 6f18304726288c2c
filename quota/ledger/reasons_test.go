package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestReasons: whatever is preempted or revoked has a reason, on both sides, whose numbers follow from the state before
// the command.
func TestReasons(t *testing.T) {
	counts := map[quota.ReasonKind]int{}
	verify.Check(t, func(t *rapid.T) {
		for range 20 {
			reasonsFollow(t, counts)
		}
	})
	for _, kind := range []quota.ReasonKind{quota.ByPriority, quota.ByShare, quota.ByDrain} {
		if counts[kind] == 0 {
			t.Errorf("no reason of kind %d was compared: %v", kind, counts)
		}
	}
}

func reasonsFollow(t *rapid.T, counts map[quota.ReasonKind]int) {
	l := ledger.New(quota.DefaultBounds())
	for _, name := range []string{"t", "u"} {
		c := quotatest.BorrowingTree(name).Draw(t, "tree")
		c.Trees[0].Leases = quota.LeaseSettings{
			Default: quota.Span(quotatest.Die(t, 2, "leases") * 5), Grace: quota.Span(quotatest.Die(t, 3, "grace")),
		}
		l.Apply(quota.Stamp{}, c)
	}
	now := quota.Instant(0)
	for range 60 {
		now += quota.Instant(quotatest.Die(t, 3, "tick"))
		if quotatest.Die(t, 15, "load") == 0 {
			l = reload(t, l)
		}
		o := &reasonOracle{ledger: l, command: reasonCommand(t), counts: counts, given: map[string]*quota.MadeRoom{}}
		o.before(l.Snapshot())
		l.Apply(quota.Stamp{At: now}, o.command)
		for _, f := range l.TakeFacts() {
			o.check(t, f)
		}
		o.checkRooms(t)
		if err := l.Check(); err != nil {
			t.Fatal(err)
		}
	}
}

// reasonCommand draws requests that preempt, some of which wait, and drains.
func reasonCommand(t *rapid.T) quota.Command {
	switch n := quotatest.Die(t, 20, "kind"); {
	case n < 2:
		return quota.Expire{Most: 5}
	case n < 3:
		return quotatest.HoldCommands().Draw(t, "hold")
	}
	c := quotatest.BorrowingCommands().Draw(t, "command")
	if a, ok := c.(quota.Allocate); ok && a.Mode == quota.Hold && quotatest.Die(t, 2, "wait") == 0 {
		a.Mode = quota.Wait
		return a
	}
	return c
}

// reasonOracle has what was held before a command, in the slowest way.
type reasonOracle struct {
	ledger  *ledger.Ledger
	command quota.Command
	counts  map[quota.ReasonKind]int

	held  map[uint64]ledger.AllocationImage
	paths map[uint64]string // of nodes, by identity
	limit map[string]quota.Amount
	rooms map[string]*quota.MadeRoom

	gone  []*quota.Reason // of the claims that the command has evicted so far
	given map[string]*quota.MadeRoom
}

func (o *reasonOracle) before(image *ledger.Snapshot) {
	o.held, o.paths, o.limit = map[uint64]ledger.AllocationImage{}, map[uint64]string{}, map[string]quota.Amount{}
	o.rooms = map[string]*quota.MadeRoom{}
	for _, tree := range image.Trees() {
		for _, n := range tree.Nodes {
			o.paths[n.ID] = n.Spec.Path
			for _, l := range n.Spec.Limits {
				if l.Limit.Kind == quota.Limited {
					o.limit[quota.Place(tree.Name, n.Spec.Path)+" "+l.Resource] = l.Limit.Amount
				}
			}
		}
	}
	for a := range image.Held() {
		o.held[a.Fence] = a
	}
	for w := range image.Waiting() {
		o.rooms[w.Allocation.Request.ID] = w.Allocation.MadeRoom
	}
}

func (o *reasonOracle) use(tree, node, resource string) (used quota.Amount) {
	for _, a := range o.held {
		for i, c := range a.Request.Claims {
			if c.Tree == tree && quota.IsWithin(o.paths[a.Placed[i]], node) {
				used += amountIn(c.Amounts, resource)
			}
		}
	}
	return used
}

func (o *reasonOracle) check(t *rapid.T, f ledger.Fact) {
	if f.Allocation == nil {
		return
	}
	info := f.Allocation.Info()
	if f.Kind == ledger.FactGranted && o.rooms[info.ID] != nil && o.given[info.ID] == nil {
		o.given[info.ID] = &quota.MadeRoom{} // it keeps what was revoked for it
	}
	winnerID, lost := info.RevokedBy, f.Kind == ledger.FactRevoked
	if f.Kind == ledger.FactEnded && info.State == quota.WasPreempted {
		winnerID, lost = info.PreemptedBy, info.RevokedBy == ""
		if info.Reason == nil {
			t.Fatalf("%+v preempted %q without a reason", o.command, info.ID)
		}
	}
	r := info.Reason
	switch {
	case !lost, winnerID != quota.DrainedBy && o.held[info.Fence].RevokedBy == winnerID:
		return // a drain has brought its end forward
	case r == nil:
		t.Fatalf("%+v revoked %q without a reason", o.command, info.ID)
		return
	}
	o.counts[r.Kind]++
	if r.Kind == quota.ByDrain {
		if winnerID != quota.DrainedBy || !o.isDrained(info, r) {
			t.Fatalf("%q was revoked by %q because of %+v", info.ID, winnerID, r)
		}
		return
	}
	if o.given[winnerID] == nil {
		o.given[winnerID] = &quota.MadeRoom{}
	}
	o.given[winnerID].Add(r)
	winner, refused := o.ledger.Reader().Allocation(winnerID)
	if refused != nil {
		t.Fatal(refused)
	}
	if problem := o.compare(info, winner, r); problem != "" {
		t.Fatalf("%+v ended %q for %q because of %+v: %s", o.command, info.ID, winnerID, r, problem)
	}
	o.gone = append(o.gone, r)
}

func (o *reasonOracle) isDrained(a quota.AllocationInfo, r *quota.Reason) bool {
	for _, h := range o.ledger.Reader().Holds(r.Tree, r.Node) {
		if h.Node == r.Node && h.Drain && h.Actor == r.Actor && h.Reason == r.Text && h.Grace == r.Grace {
			return slices.ContainsFunc(a.Claims, func(c quota.ClaimInfo) bool {
				return c.Tree == r.Tree && quota.IsWithin(c.Node, r.Node)
			})
		}
	}
	return false
}

func (o *reasonOracle) compare(victim, winner quota.AllocationInfo, r *quota.Reason) string {
	mine, theirs := claimIn(victim, r.Tree), claimIn(winner, r.Tree)
	switch {
	case r.Priority != mine.Priority || r.RequestPriority != theirs.Priority:
		return fmt.Sprintf("the priorities are %d and %d", mine.Priority, theirs.Priority)
	case r.Kind == quota.ByPriority && r.RequestPriority <= r.Priority:
		return "the priority is not higher"
	case r.Kind == quota.ByShare && (r.Share == r.Node || !quota.IsWithin(theirs.Node, r.Share) ||
		!quota.IsWithin(r.Share, r.Node)):
		return "the share is not that of a node between the request and where capacity was missing"
	case r.Kind == quota.ByShare && r.Borrower != "" && quota.IsWithin(r.Borrower, r.Share) &&
		r.RequestPriority > r.Priority:
		return "it lost its own share by priority"
	case r.Borrower != "" && r.Borrower != mine.Node, r.Kind == quota.ByShare && r.Borrower == "" &&
		o.hadBorrowed(victim, r.Tree):
		return fmt.Sprintf("it belongs to %q and was counted at %q", mine.Node, mine.Placed)
	case len(r.Amounts) == 0:
		return "nothing was missing"
	}
	for _, a := range r.Amounts {
		requested, given := amountIn(theirs.Amounts, a.Resource), amountIn(mine.Amounts, a.Resource)
		if a.Given != given || a.Requested > requested || len(theirs.Ranges) == 0 && a.Requested != requested {
			return fmt.Sprintf("%d %s were requested and %d given", requested, a.Resource, given)
		}
		// Below the root the request may first have pushed claims up that borrow; less is missing then.
		missing := o.missing(r, a)
		if o.isAlone(winner.ID) && (a.Missing > missing || a.Missing <= 0 || r.Node == "" && a.Missing < missing) {
			return fmt.Sprintf("%d %s were missing", missing, a.Resource)
		}
	}
	return ""
}

func (o *reasonOracle) hadBorrowed(victim quota.AllocationInfo, tree string) bool {
	a := o.held[victim.Fence]
	i := slices.IndexFunc(a.Request.Claims, func(c quota.Claim) bool { return c.Tree == tree })
	return len(a.Homes) > 0 && a.Homes[i] != 0
}

// isAlone is true if the command is the winning request itself, with one claim: then nothing else has happened since
// the state before. The grant of another request may come first.
func (o *reasonOracle) isAlone(winner string) bool {
	c, ok := o.command.(quota.Allocate)
	return ok && c.ID == winner && len(c.Claims) == 1
}

func (o *reasonOracle) missing(r *quota.Reason, a quota.ReasonAmount) quota.Amount {
	missing := o.use(r.Tree, r.Node, a.Resource) + a.Requested - o.limit[quota.Place(r.Tree, r.Node)+" "+a.Resource]
	for _, earlier := range o.gone {
		for _, gone := range earlier.Amounts {
			if gone.Resource == a.Resource {
				missing -= gone.Given
			}
		}
	}
	return missing
}

func claimIn(a quota.AllocationInfo, tree string) quota.ClaimInfo {
	return a.Claims[slices.IndexFunc(a.Claims, func(c quota.ClaimInfo) bool { return c.Tree == tree })]
}

// checkRooms compares what the winners remember with the reasons of those who ended for them.
func (o *reasonOracle) checkRooms(t *rapid.T) {
	for winnerID, given := range o.given {
		want := *given
		if before := o.rooms[winnerID]; before != nil {
			want = *before
			want.Totals = slices.Clone(before.Totals)
			want.Count += given.Count
			for _, total := range given.Totals {
				want.Totals = addTotal(want.Totals, total)
			}
		}
		winner, _ := o.ledger.Reader().Allocation(winnerID)
		if winner.MadeRoom == nil || !cmp.Equal(*winner.MadeRoom, want) || len(winner.Preempted) != want.Count {
			t.Fatalf("after %+v %q says that %+v made room, %+v; but it was %+v", o.command, winnerID, winner.Preempted,
				winner.MadeRoom, want)
		}
	}
}

func addTotal(list []quota.RoomTotal, t quota.RoomTotal) []quota.RoomTotal {
	for i := range list {
		if list[i].Tree == t.Tree && list[i].Resource == t.Resource {
			list[i].Amount += t.Amount
			return list
		}
	}
	list = append(list, t)
	slices.SortFunc(list, func(a, b quota.RoomTotal) int {
		return strings.Compare(a.Tree+" "+a.Resource, b.Tree+" "+b.Resource)
	})
	return list
}

func claimRanked(id, node string, amount quota.Amount, priority int64) quota.Allocate {
	c := claimCores(id, node, amount)
	c.Claims[0].Priority = priority
	return c
}

func borrowingTree(bindings ...access.Binding) []quota.TreeSpec {
	return []quota.TreeSpec{{
		Name: "cern", Resources: []quota.Resource{{Name: "cores", Unit: quota.Count}},
		Nodes: []quota.NodeSpec{
			{Policy: "borrowing", Limits: cores(200)},
			{Path: "a", Limits: cores(100), Bindings: access.CanonicalBindings(bindings)},
			{Path: "b", Limits: cores(100)},
		},
	}}
}

// TestReasonsAreBounded: an allocation names a hundred of those who made room for it and counts all of them, with what
// they gave; a reservation names all until it is confirmed, also after a restore.
func TestReasonsAreBounded(t *testing.T) {
	const count = 150
	l := ledger.New(quota.DefaultBounds())
	l.Apply(quota.Stamp{}, quota.ApplyTrees{Trees: borrowingTree()})
	for i := range count {
		l.Apply(quota.Stamp{}, claimRanked(fmt.Sprint("v", i), "a", 1, 0))
	}
	c := claimRanked("large", "a", 200, 1)
	c.Mode, c.ReserveFor = quota.Reserve, 1000
	if out := l.Apply(quota.Stamp{}, c); out.Refused != nil || !out.Decision.Granted {
		t.Fatal(out.Refused, out.Decision)
	}
	first, _ := l.Reader().Allocation("v0")
	if first.Reason == nil || first.State != quota.WasPreempted {
		t.Errorf("%s for %v", first.PreemptedBy, first.Reason)
	}
	named := func(l *ledger.Ledger, most int) {
		a, _ := l.Reader().Allocation("large")
		if len(a.Preempted) != most || a.MadeRoom == nil || a.MadeRoom.Count != count ||
			a.MadeRoom.Totals[0] != (quota.RoomTotal{Tree: "cern", Resource: "cores", Amount: count}) {
			t.Errorf("it names %d, and sums up %+v", len(a.Preempted), a.MadeRoom)
		}
	}
	named(l, count)
	named(reload(t, l), count)
	l.Apply(quota.Stamp{}, quota.Confirm{ID: "large"})
	named(l, quota.MaxPreempted)
	named(reload(t, l), quota.MaxPreempted)
	if err := l.Check(); err != nil {
		t.Error(err)
	}
}

// TestReasonsShown: the owner of a victim learns what it gave, and nothing of the request that needed it; who may read
// holders at the node where capacity was missing learns all. A release by another caller says so.
func TestReasonsShown(t *testing.T) {
	holds := bind("holder", "hans", "heidi")
	holds.MaxPriority = 9
	trees := borrowingTree(holds)
	trees[0].Nodes[2].Bindings = trees[0].Nodes[1].Bindings
	g := newGuarded(t, trees, "hans", "heidi")
	g.must("hans", claimRanked("mine", "b", 150, 1))
	g.must("heidi", claimRanked("theirs", "a", 100, 2))
	shown := func(account, id string) quota.AllocationInfo {
		r, refused := g.ledger.Reader().At(wallNow).ReaderOf(callerOf(account))
		if refused != nil {
			t.Fatal(refused)
		}
		a, refused := r.Allocation(sharedID(id))
		if refused != nil {
			t.Fatal(refused)
		}
		return a
	}
	full := &quota.Reason{
		Kind: quota.ByShare, Tree: "cern", Share: "a", Borrower: "b", Priority: 1, RequestPriority: 2,
		Amounts: []quota.ReasonAmount{{Resource: "cores", Requested: 100, Missing: 50, Given: 150}},
	}
	owner := &quota.Reason{
		Kind: quota.ByShare, Tree: "cern", Borrower: "b", Priority: 1,
		Amounts: []quota.ReasonAmount{{Resource: "cores", Given: 150}},
	}
	if diff := cmp.Diff(full, shown("root", "mine").Reason); diff != "" {
		t.Errorf("(-want +shown to root):\n%s", diff)
	}
	if diff := cmp.Diff(owner, shown("hans", "mine").Reason); diff != "" {
		t.Errorf("(-want +shown to the owner):\n%s", diff)
	}
	other := *full
	other.Borrower, other.Priority = "", 0
	want := []quota.Preempted{{Tree: "cern", Reason: &other}}
	if diff := cmp.Diff(want, shown("heidi", "theirs").Preempted); diff != "" {
		t.Errorf("(-want +shown to the other side):\n%s", diff)
	}
	g.must("root", quota.Release{ID: "theirs"})
	if r := shown("root", "theirs").Reason; r == nil || r.Kind != quota.ByRelease || r.Actor != "account/root" {
		t.Errorf("it was released by %+v", r)
	}
	if r := shown("heidi", "theirs").Reason; r == nil || r.Kind != quota.ByRelease || r.Actor != "" {
		t.Errorf("its owner learns that %+v", r)
	}
}
