package ledger_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestAgainstOracle gives random commands to the ledger and to the oracle, which must agree on every outcome and on
// everything that can be read afterwards.
func TestAgainstOracle(t *testing.T) {
	t.Parallel()
	verify.Check(t, agree)
}

// FuzzLedger does the same with commands that a fuzzer finds; its seeds make it a test too. Inputs are long: fuzz with
// -fuzzminimizetime=1x.
func FuzzLedger(f *testing.F) {
	for seed := range uint64(8) {
		data := make([]byte, 16<<10)
		random := rand.NewChaCha8([32]byte{byte(seed)})
		if _, err := random.Read(data); err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(rapid.MakeFuzz(agree))
}

func agree(t *rapid.T) {
	bounds := quotatest.Bounds().Draw(t, "bounds")
	p := &pair{ledger: ledger.New(bounds), oracle: newOracle(bounds)}
	for _, name := range slices.Repeat(quotatest.TreeNames, 3) {
		if p.oracle.trees[name].Name == "" {
			p.apply(t, quotatest.Tree(name).Draw(t, "first trees"))
		}
	}
	p.steps(t, 60, func() quota.Command { return quotatest.Commands().Draw(t, "command") })
}

// TestBorrowingAgainstOracle does the same with claims that borrow, push each other up and out, and slide down.
func TestBorrowingAgainstOracle(t *testing.T) {
	t.Parallel()
	verify.Check(t, agreeOnBorrowing)
}

func agreeOnBorrowing(t *rapid.T) {
	bounds := quota.DefaultBounds()
	bounds.TombstoneSpan = 2
	p := &pair{ledger: ledger.New(bounds), oracle: newOracle(bounds)}
	for _, name := range []string{"t", "u"} {
		p.apply(t, quotatest.BorrowingTree(name).Draw(t, "first trees"))
	}
	p.steps(t, 100, func() quota.Command {
		if quotatest.Die(t, 25, "grow") == 0 {
			return p.grown(t, quotatest.TreeNames[quotatest.Die(t, 2, "tree")])
		}
		return quotatest.BorrowingCommands().Draw(t, "command")
	})
}

// grown is a tree with one more node, so that claims which borrow there may have to go home, or with one less.
func (p *pair) grown(t *rapid.T, name string) quota.ApplyTrees {
	spec := p.oracle.trees[name]
	spec.Nodes = slices.Clone(spec.Nodes)
	at := quotatest.Die(t, len(spec.Nodes), "node")
	if at > 0 && p.oracle.isLeaf(name, spec.Nodes[at].Path) && quotatest.Die(t, 3, "less") == 0 {
		spec.Nodes = slices.Delete(spec.Nodes, at, at+1)
	} else {
		n := quota.NodeSpec{Path: strings.TrimPrefix(spec.Nodes[at].Path+"/new", "/")}
		for _, r := range spec.Resources {
			n.Limits = append(n.Limits, quota.ResourceLimit{Resource: r.Name, Limit: quota.AtMost(quota.Amount(quotatest.Die(t, 4, "limit")))})
		}
		spec.Nodes = append(spec.Nodes, n)
	}
	return quota.ApplyTrees{Trees: []quota.TreeSpec{spec}}
}

// steps plays commands, and looks at everything now and then.
func (p *pair) steps(t *rapid.T, n int, next func() quota.Command) {
	for range n {
		switch quotatest.Die(t, 10, "step") {
		case 0:
			p.tick(t)
		case 1:
			p.freeze(t)
		case 2:
			p.apply(t, p.said[quotatest.Die(t, len(p.said), "again")])
		default:
			p.apply(t, next())
		}
		if err := p.ledger.Check(); err != nil {
			t.Fatal(err)
		}
		if quotatest.Die(t, 4, "look") == 0 {
			p.compareViews(t)
		}
	}
	p.compareViews(t)
	for i, image := range p.images {
		if picture(image) != p.pictures[i] {
			t.Fatal("an image changed when the ledger went on")
		}
	}
}

// pair is a ledger and the oracle that watches it.
type pair struct {
	ledger *ledger.Ledger
	oracle *oracle
	now    quota.Stamp
	said   []quota.Command
	// images were taken on the way, pictures are what they showed.
	images   []*ledger.Snapshot
	pictures []string
}

// tick moves time, sometimes back, which the ledger must not follow; a release of an unknown id carries it.
func (p *pair) tick(t *rapid.T) {
	p.now.At += quota.Instant(rapid.Int64Range(-3, 7).Draw(t, "tick"))
	p.now.Wall += rapid.Int64Range(-3, 7).Draw(t, "wall")
	p.apply(t, quota.Release{ID: "nobody"})
	if p.ledger.View().Now() != p.oracle.now.At {
		t.Fatalf("it is %d, want %d", p.ledger.View().Now(), p.oracle.now.At)
	}
}

// freeze goes on with a ledger loaded from an image.
func (p *pair) freeze(t *rapid.T) {
	image := p.ledger.Snapshot()
	loaded, err := load(image, p.oracle.bounds)
	if err != nil {
		t.Fatalf("an image cannot be loaded: %v", err)
	}
	if diff := cmp.Diff(picture(image), picture(loaded.Snapshot())); diff != "" {
		t.Fatalf("a loaded ledger has another image (-before +after):\n%s", diff)
	}
	p.images, p.pictures = append(p.images, image), append(p.pictures, picture(image))
	if rapid.Bool().Draw(t, "go on with the loaded one") {
		p.ledger = loaded
	}
}

// apply tries a command, applies it, and compares.
func (p *pair) apply(t *rapid.T, c quota.Command) {
	p.said = append(p.said, c)
	dry := p.dryRun(t, c)
	sameTime := p.now.At <= p.ledger.View().Now()
	got := p.ledger.Apply(p.now, c)
	want := p.oracle.apply(p.now, c)
	if diff := cmp.Diff(want, verdictOf(c, got), verdictOptions); diff != "" {
		t.Fatalf("%T %+v (-oracle +ledger):\n%s\n%+v", c, c, diff, got.Refused)
	}
	if want.configured && !want.repeated && len(want.changes) > 0 {
		p.oracle.history[len(p.oracle.history)-1].Changes = got.Configuration.Changes // the same, in the order of the ledger
	}
	if sameTime {
		compareDry(t, c, dry, got)
	}
}

// dryRun tries a command, and now and then makes sure that this changed nothing.
func (p *pair) dryRun(t *rapid.T, c quota.Command) ledger.Outcome {
	if quotatest.Die(t, 4, "watch") > 0 {
		return p.ledger.Sandbox().DryRun(c)
	}
	before := picture(p.ledger.Snapshot())
	out := p.ledger.Sandbox().DryRun(c)
	if diff := cmp.Diff(before, picture(p.ledger.Snapshot())); diff != "" {
		t.Fatalf("a dry run of %+v changed the ledger:\n%s", c, diff)
	}
	return out
}

// verdictOptions ignore orders that are not promised.
var verdictOptions = cmp.Options{
	cmp.AllowUnexported(verdict{}), cmpopts.EquateEmpty(),
	cmpopts.SortSlices(func(a, b string) bool { return a < b }),
	cmpopts.SortSlices(func(a, b quota.Change) bool {
		return strings.Join([]string{a.Tree, a.Node, a.Field}, "|") < strings.Join([]string{b.Tree, b.Node, b.Field}, "|")
	}),
}

// verdictOf says an outcome as the oracle does, which names the fields of requests but not of configurations.
func verdictOf(c quota.Command, out ledger.Outcome) verdict {
	v := verdict{repeated: out.Repeated, expired: out.Expired}
	if e := out.Refused; e != nil {
		v.refused = e.Kind
		switch c.(type) {
		case quota.Allocate, quota.Release, quota.Confirm, quota.Cancel, quota.Expire, quota.Renew, quota.UpdateItems, quota.ResetItems:
			v.field = e.Field
		}
		for _, b := range e.Breaches {
			v.breaches = append(v.breaches, quota.Place(b.Tree, b.Node)+" "+b.Resource)
		}
	}
	if d := out.Decision; d != nil {
		v.decided, v.violations, v.preempted = true, d.Violations, d.Preempted
	}
	if out.Allocation != nil {
		v.fence = out.Allocation.Fence()
	}
	if c := out.Configuration; c != nil {
		v.configured, v.revision, v.changes, v.over = true, c.Revision, withoutItemTexts(c.Changes), c.Over
	}
	for _, it := range out.Items {
		v.items = append(v.items, itemText(it))
	}
	return v
}

// compareDry: a dry run says what the command then did, but makes neither an allocation nor a revision.
func compareDry(t *rapid.T, c quota.Command, dry, real ledger.Outcome) {
	if d := dry.Decision; d != nil {
		told := *d
		told.Placements = nil // only a dry run has them
		dry.Decision = &told
	}
	if !cmp.Equal(dry.Refused, real.Refused) || !cmp.Equal(dry.Decision, real.Decision) || dry.Repeated != real.Repeated {
		t.Fatalf("a dry run of %+v said %+v, then it was %+v", c, verdictOf(c, dry), verdictOf(c, real))
	}
	if _, ok := c.(quota.Allocate); ok && !dry.Repeated && dry.Allocation != nil {
		t.Fatalf("a dry run of %+v allocated", c)
	}
	if dry.Configuration == nil || dry.Repeated {
		return
	}
	made := uint64(0)
	if len(real.Configuration.Changes) > 0 {
		made = 1
	}
	if dry.Configuration.Revision+made != real.Configuration.Revision || !cmp.Equal(dry.Configuration.Changes, real.Configuration.Changes) ||
		!cmp.Equal(dry.Configuration.Over, real.Configuration.Over) {
		t.Fatalf("a dry run of %+v said %+v, then it was %+v", c, *dry.Configuration, *real.Configuration)
	}
}

// same compares what has no pointers; an empty list is as good as none.
func same[T any](t *rapid.T, what string, want, got T) {
	if fmt.Sprintf("%+v", want) != fmt.Sprintf("%+v", got) {
		t.Fatalf("%s (-oracle +ledger):\n%s", what, cmp.Diff(want, got, cmpopts.EquateEmpty()))
	}
}

// compareViews reads everything that can be read.
func (p *pair) compareViews(t *rapid.T) {
	v, o := p.ledger.View(), p.oracle
	counts := v.Counts()
	if counts.Trees != len(o.trees) || counts.Held != len(o.held()) || v.Revision() != o.revision {
		t.Fatalf("counts are %+v and the revision %d, want %d trees, %d held, %d", counts, v.Revision(), len(o.trees), len(o.held()), o.revision)
	}
	want := slices.Clone(o.history)
	slices.Reverse(want)
	got := v.Revisions(0, math.MaxInt)
	for i := range got {
		got[i].Undo, got[i].Undoable = nil, false // rolling back shows whether they are right
	}
	same(t, "history", want, got)
	var summaries []quota.TreeSummary
	for _, name := range quotatest.TreeNames {
		if spec, known := o.trees[name]; known {
			summaries = append(summaries, o.summary(spec))
			p.compareTree(t, name)
		}
	}
	slices.SortFunc(summaries, func(a, b quota.TreeSummary) int { return strings.Compare(a.Name, b.Name) })
	same(t, "trees", summaries, v.Trees())
	p.compareAllocations(t)
	p.compareItems(t)
	p.compareLapses(t)
}

func (o *oracle) summary(spec quota.TreeSpec) quota.TreeSummary {
	return quota.TreeSummary{
		Name: spec.Name, Policy: policyOf(spec, ""), Resources: spec.Resources, Nodes: len(spec.Nodes), Claims: o.claimsIn(spec.Name, ""),
	}
}

func (p *pair) compareTree(t *rapid.T, name string) {
	want := p.oracle.trees[name]
	got, refused := p.ledger.View().Tree(name)
	if refused != nil {
		t.Fatal(refused)
	}
	same(t, "tree "+name, want, got)
	var usage []quota.NodeUsage
	for _, n := range want.Nodes {
		usage = append(usage, p.oracle.usage(want, n))
		same(t, "sitting at "+name+":"+n.Path, ids(p.oracle.sitting(name, n.Path)), strings.Join(p.ledger.View().Sitting(name, n.Path), " "))
	}
	page, refused := p.ledger.View().Usage(name, "", true, false, "", 3)
	nodes := page.Nodes
	for refused == nil && page.More {
		page, refused = p.ledger.View().Usage(name, "", true, true, page.Next, 3)
		nodes = append(nodes, page.Nodes...)
	}
	if refused != nil {
		t.Fatal(refused)
	}
	same(t, "usage of "+name, usage, nodes)
	if n := nodes[quotatest.Die(t, len(nodes), "node")]; n.Policy != "borrowing" { // where room can be made
		p.probeHeadroom(t, name, n)
	}
}

// probeHeadroom: what is said to be free can be had, and not one more.
func (p *pair) probeHeadroom(t *rapid.T, tree string, n quota.NodeUsage) {
	r := n.Resources[quotatest.Die(t, len(n.Resources), "resource")]
	ask := func(a quota.Amount) ledger.Outcome {
		return p.ledger.Sandbox().DryRun(quota.Allocate{ID: "probe", Claims: []quota.Claim{
			{Tree: tree, Node: n.Path, Amounts: quota.Vector{{Resource: r.Resource.Name, Amount: a}}},
		}})
	}
	if out := ask(r.Headroom); r.Headroom > 0 && out.Refused == nil && !out.Decision.Granted {
		t.Fatalf("%s has room for %d, but a claim of that is %s", n.Path, r.Headroom, out.Decision.Explain())
	}
	if out := ask(r.Headroom + 1); out.Refused == nil && out.Decision.Granted {
		t.Fatalf("%s has room for %d, but could get one more", n.Path, r.Headroom)
	}
}

func (o *oracle) usage(spec quota.TreeSpec, n quota.NodeSpec) quota.NodeUsage {
	u := quota.NodeUsage{Path: n.Path, Policy: policyOf(spec, n.Path)}
	for _, r := range spec.Resources {
		ru := quota.ResourceUsage{
			Resource: r, Effective: effective(spec, n.Path, r.Name), Own: o.own(spec.Name, n.Path, r.Name),
			Subtree: quota.Amount(o.used(spec.Name, n.Path, r.Name).Int64()), Headroom: quota.MaxAmount,
		}
		for _, l := range n.Limits {
			if l.Resource == r.Name {
				ru.Set = l.Limit
			}
		}
		for _, path := range upwards(n.Path) {
			used := quota.Amount(o.used(spec.Name, path, r.Name).Int64())
			ru.Headroom = max(0, min(ru.Headroom, o.ceiling(spec.Name, path, r.Name)-used))
			ru.Bounded = ru.Bounded || effective(spec, path, r.Name).Kind == quota.Limited
		}
		ru.Over = max(0, ru.Subtree-o.ceiling(spec.Name, n.Path, r.Name))
		u.Resources = append(u.Resources, ru)
	}
	return u
}

func (p *pair) compareAllocations(t *rapid.T) {
	var want, got []quota.AllocationInfo
	for _, g := range p.oracle.held() {
		want = append(want, p.oracle.info(g))
	}
	for after, more := uint64(0), true; more; more = after != 0 {
		page, refused := p.ledger.View().Allocations(quota.AllocationFilter{}, after, 2)
		if refused != nil {
			t.Fatal(refused)
		}
		got, after = append(got, page.Allocations...), page.Next
	}
	same(t, "held", want, got)
	for _, id := range quotatest.IDs {
		info, refused := p.ledger.View().Allocation(id)
		g := p.oracle.find(id)
		if (g == nil) != (refused != nil) {
			t.Fatalf("allocation %s: the oracle knows %v, the ledger says %v", id, g, refused)
		}
		if g != nil {
			same(t, "allocation "+id, p.oracle.info(g), info)
		}
	}
}

func (o *oracle) info(g *grant) quota.AllocationInfo {
	info := quota.AllocationInfo{ID: g.request.ID, Labels: g.request.Labels, Fence: g.fence, GrantedAt: g.granted.At, GrantedWall: g.granted.Wall, State: g.state, ReservedUntil: g.until}
	for i, c := range g.request.Claims {
		asked := g.asked.Claims[i]
		info.Claims = append(info.Claims, quota.ClaimInfo{Tree: c.Tree, Node: c.Node, Amounts: asked.Amounts, Picks: asked.Picks, Placed: g.placed[i], Standing: c.Standing})
	}
	o.addLease(g, &info)
	info.Forced, info.Preempted = g.request.Mode == quota.Force, g.preempted
	if g.ended != nil {
		info.PreemptedBy = g.by
		info.Ended, info.EndedAt, info.EndedWall = true, g.ended.At, g.ended.Wall
	}
	return info
}
