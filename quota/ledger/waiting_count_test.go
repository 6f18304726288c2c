package ledger_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/quorate/quorate/internal/verify"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
	"github.com/quorate/quorate/quota/quotatest"
)

// TestListsOfADashboard compares what lists count, select and order with what the whole lists say, after any commands.
func TestListsOfADashboard(t *testing.T) {
	t.Parallel()
	verify.Check(t, listsOfADashboard)
}

func listsOfADashboard(t *rapid.T) {
	l := ledger.New(quota.DefaultBounds())
	for _, name := range []string{"t", "u"} {
		l.Apply(quota.Stamp{}, quotatest.MixedTree(name).Draw(t, "first trees"))
	}
	now := quota.Instant(0)
	for range 40 {
		now += quota.Instant(quotatest.Die(t, 3, "tick")) * quota.RecentDenials / 20
		l.Apply(quota.Stamp{At: now}, quotatest.MixedCommands().Draw(t, "command"))
	}
	reader, refused := l.Reader().ReaderOf(nil)
	if refused != nil {
		t.Fatal(refused)
	}
	queue, refused := l.Sandbox().Waiting(quota.QueueFilter{}, nil, 1000)
	if refused != nil {
		t.Fatal(refused)
	}
	for _, tree := range reader.TreesWithRequests() {
		checkCounts(t, l, tree, queue.Requests)
	}
	checkNewestFirst(t, l)
	checkNames(t, l)
	for _, spec := range l.Reader().Configuration() {
		for _, n := range spec.Nodes {
			checkRevisions(t, reader, spec.Name, n.Path)
		}
	}
}

// checkCounts compares with the whole queue: a request counts at a node if any of its claims is there or below.
func checkCounts(t *rapid.T, l *ledger.Ledger, tree quota.TreeSummary, queue []quota.QueuedInfo) {
	page, refused := l.Reader().Usage(quota.UsageQuery{Tree: tree.Name, Subtree: true, CountWaiting: true, Max: 1000})
	if refused != nil {
		t.Fatal(refused)
	}
	spec, _ := l.Reader().Tree(tree.Name)
	for _, n := range page.Nodes {
		var want quota.WaitingCount
		for _, r := range queue {
			if since, waits := waitsAt(r.Allocation, tree.Name, n.Path); waits {
				want.Add(since)
			}
		}
		configured := slices.ContainsFunc(spec.Nodes, func(s quota.NodeSpec) bool { return s.Path == n.Path })
		if configured && n.Waiting != want {
			t.Fatalf("%s:%s: %+v wait, but %+v are counted", tree.Name, n.Path, want, n.Waiting)
		}
		if n.Path == "" && tree.Requests.Waiting != n.Waiting {
			t.Fatalf("%+v wait in the tree, but %+v at its root", tree.Requests.Waiting, n.Waiting)
		}
	}
	denied := 0
	for _, e := range l.Reader().Events(quota.EventFilter{Kind: quota.EventDenied}, 10_000).Events {
		inTree := e.Request.HasClaim(func(c quota.Claim) bool { return c.Tree == tree.Name })
		if inTree && l.Reader().Now()-e.Stamp.At < quota.RecentDenials {
			denied++
		}
	}
	if tree.Requests.Denied != denied {
		t.Fatalf("%s: %d were denied lately, but %d are counted", tree.Name, denied, tree.Requests.Denied)
	}
}

func waitsAt(a quota.AllocationInfo, tree, node string) (quota.Instant, bool) {
	lists, place := [][]quota.ClaimInfo{a.Claims}, a.Waiting
	if a.Resize != nil {
		lists, place = [][]quota.ClaimInfo{a.Resize.Claims}, &a.Resize.Waiting
	}
	for _, alternative := range place.Alternatives {
		lists = append(lists, alternative.Claims)
	}
	return place.Since, slices.ContainsFunc(lists, func(claims []quota.ClaimInfo) bool {
		return slices.ContainsFunc(claims, func(c quota.ClaimInfo) bool {
			return c.Tree == tree && quota.IsWithin(c.Node, node)
		})
	})
}

// checkNewestFirst reads all events a page at a time.
func checkNewestFirst(t *rapid.T, l *ledger.Ledger) {
	want := l.Reader().Events(quota.EventFilter{}, 10_000).Events
	slices.Reverse(want)
	filter := quota.EventFilter{NewestFirst: true}
	var got []quota.Event
	for range len(want) + 1 {
		page := l.Reader().Events(filter, 3)
		got = append(got, page.Events...)
		if filter.Before = page.Next; page.Next == 0 {
			break
		}
	}
	if diff := cmp.Diff(numbersOf(want), numbersOf(got)); diff != "" {
		t.Fatalf("events newest first (-want +got):\n%s", diff)
	}
}

func numbersOf(events []quota.Event) []uint64 {
	numbers := []uint64{}
	for _, e := range events {
		numbers = append(numbers, e.Number)
	}
	return numbers
}

func checkNames(t *rapid.T, l *ledger.Ledger) {
	text := rapid.SampledFrom([]string{"a", "B", "T", "1", "a/", "zz"}).Draw(t, "name")
	all, _ := l.Reader().Usage(quota.UsageQuery{Tree: "t", Subtree: true, Max: 1000})
	want := slices.DeleteFunc(pathsOf(all.Nodes), func(path string) bool {
		name := path[strings.LastIndex(path, "/")+1:]
		if path == "" {
			name = "t"
		}
		return !strings.Contains(strings.ToLower(name), strings.ToLower(text))
	})
	found, _ := l.Reader().Usage(quota.UsageQuery{Tree: "t", Subtree: true, NameContains: text, Max: 1000})
	if diff := cmp.Diff(want, pathsOf(found.Nodes)); diff != "" {
		t.Fatalf("nodes with %q in their names (-want +got):\n%s", text, diff)
	}
}

// checkRevisions compares the changes of one node with those of all.
func checkRevisions(t *rapid.T, reader ledger.Reader, tree, node string) {
	var want []quota.Revision
	for _, r := range reader.Revisions(0, 1000) {
		if r.Keep(func(c *quota.Change) bool { return c.Tree == tree && c.Node == node }) {
			want = append(want, r)
		}
	}
	got := reader.RevisionsOf(tree, node, 0, 1000)
	if len(got) != len(want) {
		t.Fatalf("%s:%s has %d changes, but %d are found", tree, node, len(want), len(got))
	}
	for i := range got {
		if diff := cmp.Diff(want[i].Changes, got[i].Changes); diff != "" || want[i].Number != got[i].Number {
			t.Fatalf("%s:%s, revision %d (-want +got):\n%s", tree, node, want[i].Number, diff)
		}
	}
}

// TestCountsOfUsage checks that who may read the usage of one node learns how many wait there and not above, and counts
// only the nodes that it sees.
func TestCountsOfUsage(t *testing.T) {
	g := newGuarded(t, seenTree(0, quota.SeeTotals), "reader", "other")
	for _, node := range []string{"lab/a", "lab/b"} {
		c := claimAt("", node, 25)
		c.Mode, c.WaitFor = quota.Wait, 60_000
		for _, c.ID = range []string{node + "-first", node + "-second"} {
			if out := g.apply("other", c); out.Refused != nil {
				t.Fatal(out.Refused)
			}
		}
	}
	both := claimAt("both", "lab/a", 10)
	both.Mode, both.WaitFor = quota.Wait, 60_000
	both.Claims = append(both.Claims, claimAt("", "lab/b", 10).Claims...)
	if out := g.apply("other", both); out.Refused != nil {
		t.Fatal(out.Refused)
	}
	for who, want := range map[string]string{
		"reader": ": 1 below, 0 wait; lab: 1 below, 0 wait; lab/a: 0 below, 2 wait",
		"other":  ": 1 below, 4 wait; lab: 2 below, 4 wait; lab/a: 0 below, 2 wait; lab/b: 0 below, 3 wait",
	} {
		reader, refused := g.ledger.Reader().ReaderOf(callerOf(who))
		if refused != nil {
			t.Fatal(refused)
		}
		page, refused := reader.Usage(quota.UsageQuery{Tree: "t", Subtree: true, CountWaiting: true, Max: 10})
		if refused != nil {
			t.Fatal(refused)
		}
		var seen []string
		for _, n := range page.Nodes {
			seen = append(seen, fmt.Sprintf("%s: %d below, %d wait", n.Path, n.Children, n.Waiting.Requests))
		}
		if got := strings.Join(seen, "; "); got != want {
			t.Errorf("%s sees %s, want %s", who, got, want)
		}
		if waiting := reader.TreesWithRequests()[0].Requests.Waiting.Requests; (waiting == 0) != (who == "reader") {
			t.Errorf("%s sees that %d wait in the tree", who, waiting)
		}
	}
}

// TestOldestOfACount checks that a count has the instant of the oldest, in whatever order they come.
func TestOldestOfACount(t *testing.T) {
	var count quota.WaitingCount
	for _, since := range []quota.Instant{5, 3, 9} {
		count.Add(since)
	}
	count.AddAll(quota.WaitingCount{})
	if want := (quota.WaitingCount{Requests: 3, Since: 3}); count != want {
		t.Errorf("%+v, want %+v", count, want)
	}
}
