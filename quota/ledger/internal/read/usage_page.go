package read

import (
	"cmp"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// usageCells bounds the nodes times resources of one page, so that a reader keeps the lock for a short time only.
const usageCells = 10_000

func seesTotals(*state.Node) quota.TenantsSee { return quota.SeeTotals }

// usagePage names only nodes of which the reader sees something, in the page and in its continuation, and its order
// follows no number that the reader does not see.
func (r Reader) usagePage(
	q quota.UsageQuery, seenOf func(*state.Node) quota.TenantsSee, usageOf func(*state.Node) quota.NodeUsage,
) (quota.UsagePage, *quota.Error) {
	top, refused := r.nodeOfUsage(q.Tree, q.Node)
	if refused != nil {
		return quota.UsagePage{}, refused
	}
	l := usageList{query: q, top: top, seenOf: seenOf, most: min(q.Max, 1+usageCells/len(top.Tree.Resources))}
	l.collect()
	var page quota.UsagePage
	if len(l.entries) > l.most {
		l.entries = l.entries[:l.most]
		page.Next = &l.entries[l.most-1].UsagePosition
	}
	page.Nodes = slices.Grow(page.Nodes, len(l.entries))
	for _, e := range l.entries {
		page.Nodes = append(page.Nodes, usageOf(e.node))
	}
	if q.CountWaiting {
		counts := r.state.Queue.CountIn(top.Tree)
		for i, e := range l.entries {
			page.Nodes[i].Waiting = counts[e.node]
		}
	}
	return page, nil
}

func (r Reader) nodeOfUsage(treeName, path string) (*state.Node, *quota.Error) {
	t := r.state.Forest.Trees[treeName]
	if t == nil {
		return nil, quota.Errorf(quota.NotFound, "tree", "there is no tree %q", quota.Clip(treeName))
	}
	top := t.ByPath[path]
	if top == nil {
		return nil, quota.Errorf(quota.NotFound, "node", "tree %s has no node %q; the nearest that exists is %s",
			treeName, quota.Clip(path), t.Nearest(quota.Clip(path)).Place())
	}
	return top, nil
}

// usageList finds one node more than a page has, if there is one.
type usageList struct {
	query   quota.UsageQuery
	top     *state.Node
	seenOf  func(*state.Node) quota.TenantsSee
	most    int
	entries []usageEntry
}

type usageEntry struct {
	node *state.Node
	quota.UsagePosition
}

// expectedEntries is how many entries a list has room for at first: those of a page of usual size.
const expectedEntries = 101

func (l *usageList) collect() {
	q := l.query
	if q.Subtree {
		l.entries = make([]usageEntry, 0, min(l.most+1, expectedEntries))
	}
	switch {
	case !q.Subtree:
		l.add(l.top)
	case !q.FullestFirst && q.After != nil && state.ComparePaths(l.top.Path, q.After.Path) <= 0:
		walkAfter(l.top, q.After.Path, l.add) // does not visit the nodes of all pages before this one
	default:
		l.top.Walk(l.add)
	}
	if q.FullestFirst {
		slices.SortFunc(l.entries, func(a, b usageEntry) int { return compareFullest(&a.UsagePosition, &b.UsagePosition) })
	}
}

// add takes a node only if the query selects it, and reports whether others may follow.
func (l *usageList) add(n *state.Node) bool {
	q := &l.query
	if q.MaxDepth > 0 && levelsBelow(l.top.Path, n.Path) > q.MaxDepth {
		return true
	}
	seen := l.seenOf(n)
	if seen == quota.SeeNothing || !nameContains(n, q.NameContains) {
		return true
	}
	e := usageEntry{node: n, UsagePosition: quota.UsagePosition{Path: n.Path}}
	if q.FullestFirst || q.AtLeastPercent > 0 {
		share := quota.Share{Limit: 1}
		if seen == quota.SeeTotals {
			share = largestShare(n)
		}
		if !share.IsAtLeast(q.AtLeastPercent) {
			return true
		}
		e.Share = share
	}
	if q.FullestFirst {
		if q.After == nil || compareFullest(q.After, &e.UsagePosition) < 0 {
			l.entries = append(l.entries, e)
		}
		return true // any other node can be fuller
	}
	l.entries = append(l.entries, e)
	return len(l.entries) <= l.most
}

// nameContains is true if the name of the node has a text in it, see [quota.UsageQuery].
func nameContains(n *state.Node, text string) bool {
	if text == "" {
		return true
	}
	name := n.Path[strings.LastIndexByte(n.Path, '/')+1:]
	if n.Parent == nil {
		name = n.TreeName
	}
	for from := 0; from+len(text) <= len(name); from++ { // names are ASCII
		if strings.EqualFold(name[from:from+len(text)], text) {
			return true
		}
	}
	return false
}

// largestShare is the largest share that the subtree uses of its limits in force, advisory ones included, of the
// resources.
func largestShare(n *state.Node) quota.Share {
	most := quota.Share{Limit: 1}
	for i := range n.Tree.Resources {
		if n.Subtree[i] == 0 {
			continue
		}
		if share := quota.ShareOf(n.Subtree[i], n.Effective(i)); share.Compare(most) > 0 {
			most = share
		}
	}
	return most
}

// compareFullest orders by share, largest first, and then by path.
func compareFullest(a, b *quota.UsagePosition) int {
	return cmp.Or(b.Share.Compare(a.Share), state.ComparePaths(a.Path, b.Path))
}

func levelsBelow(top, path string) int {
	switch {
	case path == top:
		return 0
	case top == "":
		return 1 + strings.Count(path, "/")
	}
	return strings.Count(path[len(top):], "/")
}
