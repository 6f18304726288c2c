package ledger

import (
	"sort"

	"github.com/quorate/quorate/quota"
)

// HeldClaims counts the held claims of a tree at up to max nodes, parents before children, siblings by name. It continues
// after the path that the page before gave as Next; pass "" and more=false to begin. It costs the nodes of the page, and
// little for those before it. NotFound if there is no such tree.
func (v View) HeldClaims(tree string, more bool, after string, max int) (quota.HeldClaims, *quota.Error) {
	t := v.ledger.forest.trees[tree]
	if t == nil {
		return quota.HeldClaims{}, quota.Errorf(quota.NotFound, "tree", "there is no tree %q", quota.Clip(tree))
	}
	var page quota.HeldClaims
	looked := 0
	look := func(n *node) bool {
		if page.More = looked == max; page.More {
			return false
		}
		looked++
		page.Next = n.path
		if n.claims > 0 {
			page.Nodes = append(page.Nodes, quota.NamedCount{Name: n.path, Count: n.claims})
		}
		return true
	}
	if more {
		t.root.walkAfter(after, look)
	} else {
		t.root.walk(look)
	}
	return page, nil
}

// walkAfter is walk for those of the nodes below that come after a path in it.
func (n *node) walkAfter(path string, yield func(*node) bool) bool {
	behind := sort.Search(len(n.children), func(i int) bool { return comparePaths(n.children[i].path, path) > 0 })
	if behind > 0 && !n.children[behind-1].walkAfter(path, yield) {
		return false
	}
	for _, child := range n.children[behind:] {
		if !child.walk(yield) {
			return false
		}
	}
	return true
}

// ItemClaims counts, for each itemized resource of a tree on which there are any, the held claims. NotFound if there is no such
// tree.
func (v View) ItemClaims(tree string) ([]quota.NamedCount, *quota.Error) {
	t := v.ledger.forest.trees[tree]
	if t == nil {
		return nil, quota.Errorf(quota.NotFound, "tree", "there is no tree %q", quota.Clip(tree))
	}
	var list []quota.NamedCount
	for _, r := range t.resources {
		if r.Unit == quota.Items && r.holds > 0 {
			list = append(list, quota.NamedCount{Name: r.Name, Count: r.holds})
		}
	}
	return list, nil
}

// WaitingClaims lists the claims of up to max requests that wait, in the order of the queue, after a turn (nil: from the
// first); next continues, and is nil on the last page. It costs the requests of the page.
func (v View) WaitingClaims(after *quota.QueueTurn, max int) (list []quota.WaitingClaim, next *quota.QueueTurn) {
	from := firstTurn
	if after != nil {
		from = turnAfter(*after)
	}
	looked, last := 0, from
	for w := range v.ledger.queue.all.from(from) {
		if looked == max {
			return list, &last
		}
		looked, last = looked+1, w.turn
		for i := range w.record.claims {
			at := w.record.claims[i].at
			list = append(list, quota.WaitingClaim{Tree: at.treeName, Node: at.path, Picks: w.request.Claims[i].Picks})
		}
	}
	return list, nil
}
