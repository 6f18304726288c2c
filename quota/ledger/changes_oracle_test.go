package ledger_test

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestChangesAgainstOracle gives random commands to a ledger, looks at all that can be read of it after each, and
// compares it with what could be read after an earlier one: what differs must be named by the changes in between.
func TestChangesAgainstOracle(t *testing.T) {
	t.Parallel()
	verify.Check(t, changesAreNamed)
}

// FuzzChanges does the same with what a fuzzer finds.
func FuzzChanges(f *testing.F) { quotatest.Fuzz(f, changesAreNamed) }

// changingCommands are the mixtures of commands, and the trees that they are about.
var changingCommands = []struct {
	trees func(string) *rapid.Generator[quota.ApplyTrees]
	next  func() *rapid.Generator[quota.Command]
}{
	{quotatest.MixedTree, quotatest.MixedCommands},
	{quotatest.ItemTree, quotatest.ItemCommands},
	{quotatest.ReshapingTree, quotatest.ReshapingCommands},
	{quotatest.Tree, quotatest.AllCommands},
	{itemTrees, itemCommands},
}

func itemTrees(string) *rapid.Generator[quota.ApplyTrees] { return rapid.Custom(itemTree) }

func changesAreNamed(t *rapid.T) {
	kind := changingCommands[quotatest.Die(t, len(changingCommands), "kind")]
	l, now := ledger.New(quota.DefaultBounds()), quota.Instant(0)
	seen := []readable{readAll(l)}
	apply := func(c quota.Command) {
		system := access.SystemCaller()
		from := ledger.Origin{Caller: &system, Index: uint64(len(seen))}
		l.Sandbox().DryRun(c)
		l.ApplyFrom(quota.Stamp{At: now}, from, c)
		l.TakeFacts()
		if err := l.Check(); err != nil {
			t.Fatal(err)
		}
		seen = append(seen, readAll(l))
	}
	for _, name := range quotatest.TreeNames[:2] {
		tree := kind.trees(name).Draw(t, "trees")
		tree.Trees[0].Leases.Grace = quota.Span(die(t, 5))
		apply(tree)
	}
	for range 40 {
		now += quota.Instant(quotatest.Die(t, 3, "tick"))
		command := kind.next().Draw(t, "command")
		if die(t, 2) == 0 {
			command = patient(t, command)
		}
		if resize, ok := resizeOfHeld(t, l); ok && die(t, 8) == 0 {
			command = resize
		}
		t.Logf("entry %d at %d: %s", len(seen), now, brief(command))
		apply(command)
		for _, after := range []int{len(seen) - 2, quotatest.Die(t, len(seen)-1, "after")} {
			checkNamed(t, l, after, seen[after], seen[len(seen)-1])
		}
	}
}

// readable is what can be read of a ledger: by tree, node and resource, as text.
type readable struct {
	configuration string
	// usage of nodes is without headroom and holds, which inherited has: they follow from the nodes above.
	usage, inherited, holders map[quota.ItemName]string
	waiting, items            map[quota.ItemName]string
	nodes                     map[quota.ItemName]bool
}

func readAll(l *ledger.Ledger) readable {
	v := l.Reader()
	r := readable{
		configuration: asJSON(v.Configuration()) + asJSON(v.Policies()), nodes: map[quota.ItemName]bool{},
		usage: map[quota.ItemName]string{}, inherited: map[quota.ItemName]string{}, holders: map[quota.ItemName]string{},
		waiting: map[quota.ItemName]string{}, items: map[quota.ItemName]string{},
	}
	for _, tree := range v.Trees() {
		page, _ := v.Usage(quota.UsageQuery{Tree: tree.Name, Subtree: true, Max: 10_000})
		for _, n := range page.Nodes {
			r.addUsage(quota.ItemName{Tree: tree.Name, Name: n.Path}, n)
		}
		r.addItems(v, tree.Name)
	}
	held, _ := v.Allocations(quota.AllocationFilter{}, 0, 10_000)
	for _, info := range held.Allocations {
		for _, c := range info.Claims {
			var items []string // their states are those of the items
			for _, item := range c.Items {
				items = append(items, item.Resource+" "+item.Name)
			}
			r.holders[quota.ItemName{Tree: c.Tree, Name: c.Placed}] += asJSON([]any{
				info.ID, info.State, info.Fence, info.RevokedBy, c.Amounts, items,
			})
		}
	}
	r.addWaiting(l)
	return r
}

func (r *readable) addUsage(at quota.ItemName, n quota.NodeUsage) {
	inherited := []any{n.Hold}
	n.Hold, n.Resources = nil, slices.Clone(n.Resources)
	for i := range n.Resources {
		inherited = append(inherited, n.Resources[i].Headroom, n.Resources[i].Bounded)
		n.Resources[i].Headroom, n.Resources[i].Bounded = 0, false
	}
	r.nodes[at], r.usage[at], r.inherited[at] = true, asJSON(n), asJSON(inherited)
}

func (r *readable) addItems(v ledger.Reader, tree string) {
	page, refused := v.Items(quota.ItemFilter{Tree: tree}, nil, 10_000, true)
	if refused != nil {
		return // the tree has none
	}
	for _, item := range page.Items {
		item.Updated, item.UpdatedWall, item.HeldUntil = 0, 0, 0 // those of a renewal
		r.items[quota.ItemName{Tree: tree, Resource: item.Resource}] += asJSON(item)
	}
}

func (r *readable) addWaiting(l *ledger.Ledger) {
	page, _ := l.Sandbox().Waiting(quota.QueueFilter{}, nil, 10_000)
	for _, q := range page.Requests {
		lists := [][]quota.ClaimInfo{q.Allocation.Claims}
		if q.Allocation.Resize != nil {
			lists[0] = q.Allocation.Resize.Claims
		} else {
			for _, alternative := range q.Allocation.Waiting.Alternatives {
				lists = append(lists, alternative.Claims)
			}
		}
		for _, claims := range lists {
			for _, c := range claims {
				r.waiting[quota.ItemName{Tree: c.Tree, Name: q.Allocation.ID + " at " + c.Node}] += asJSON(c.Amounts)
			}
		}
	}
}

// checkNamed compares what could be read after an entry with what can be read now.
func checkNamed(t *rapid.T, l *ledger.Ledger, after int, before, now readable) {
	reader, refused := l.Reader().ReaderOf(nil)
	if refused != nil {
		t.Fatal(refused)
	}
	named := reader.Changes(quota.ChangesQuery{After: uint64(after)})
	if named.Everything {
		t.Fatalf("after entry %d everything may have changed", after)
	}
	if before.configuration != now.configuration && !named.Configuration {
		t.Fatalf("after entry %d the configuration has changed, and is not named: %+v", after, named)
	}
	n := namedChanges{Changes: named, now: now}
	for _, c := range named.Trees {
		for _, path := range c.Nodes {
			if !now.nodes[quota.ItemName{Tree: c.Tree, Name: path}] {
				t.Fatalf("%s:%s is named and does not exist: %+v", c.Tree, path, named)
			}
		}
	}
	for what, check := range map[string]struct {
		before, now map[quota.ItemName]string
		isNamed     func(quota.ItemName) bool
	}{
		"the usage of":         {before.usage, now.usage, n.namesNode},
		"the holders at":       {before.holders, now.holders, n.namesNode},
		"what is inherited at": {before.inherited, now.inherited, n.namesAbove},
		"items of":             {before.items, now.items, n.namesItems},
		"waiting":              {before.waiting, now.waiting, n.namesQueue},
	} {
		for at := range differing(check.before, check.now) {
			if !check.isNamed(at) {
				t.Fatalf("after entry %d %s %+v has changed, and is not named: %+v\nbefore %s\nnow    %s",
					after, what, at, named, check.before[at], check.now[at])
			}
		}
	}
}

// differing are the keys of which the values differ.
func differing(before, now map[quota.ItemName]string) map[quota.ItemName]bool {
	keys := map[quota.ItemName]bool{}
	for _, of := range []map[quota.ItemName]string{before, now} {
		for key := range maps.Keys(of) {
			if before[key] != now[key] {
				keys[key] = true
			}
		}
	}
	return keys
}

// namedChanges answers whether a change is named.
type namedChanges struct {
	quota.Changes
	now readable
}

// tree is what has changed in a tree; of one that was deleted the configuration says it.
func (n namedChanges) tree(name string) quota.TreeChanges {
	i := slices.IndexFunc(n.Trees, func(c quota.TreeChanges) bool { return c.Tree == name })
	switch {
	case i >= 0:
		return n.Trees[i]
	case !n.now.nodes[quota.ItemName{Tree: name}]:
		return quota.TreeChanges{Many: n.Configuration, Queue: n.Configuration}
	}
	return quota.TreeChanges{}
}

// namesNode is true if a node is named, or the nearest above it that exists.
func (n namedChanges) namesNode(at quota.ItemName) bool {
	for !n.now.nodes[at] && at.Name != "" {
		at.Name = quotatest.Above(at.Name)
	}
	c := n.tree(at.Tree)
	return c.Many || !slices.ContainsFunc(quotatest.Upwards(at.Name), func(path string) bool {
		return !slices.Contains(c.Nodes, path)
	})
}

// namesAbove is true if a node at or above is named.
func (n namedChanges) namesAbove(at quota.ItemName) bool {
	c := n.tree(at.Tree)
	return c.Many || slices.ContainsFunc(quotatest.Upwards(at.Name), func(path string) bool {
		return slices.Contains(c.Nodes, path)
	})
}

func (n namedChanges) namesItems(at quota.ItemName) bool {
	c := n.tree(at.Tree)
	return c.Many || slices.Contains(c.Items, at.Resource)
}

func (n namedChanges) namesQueue(at quota.ItemName) bool { return n.tree(at.Tree).Queue }
