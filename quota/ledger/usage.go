package ledger

import "github.com/quorate/quorate/quota"

// usageCells bounds how many nodes times resources one page shows, so that a reader never keeps the lock for long.
const usageCells = 10_000

// Usage shows the standing of a node, or with subtree of all nodes from it down, at most max at a time: parents before
// children, siblings by name. It continues after the path that the page before gave as Next; pass "" and more=false
// to begin. A page of a tree with many resources has fewer nodes. NotFound names what does not exist.
func (v View) Usage(treeName, path string, subtree, more bool, after string, max int) (quota.UsagePage, *quota.Error) {
	t := v.ledger.forest.trees[treeName]
	if t == nil {
		return quota.UsagePage{}, quota.Errorf(quota.NotFound, "tree", "there is no tree %q", quota.Clip(treeName))
	}
	top := t.byPath[path]
	if top == nil {
		return quota.UsagePage{}, quota.Errorf(quota.NotFound, "node", "tree %s has no node %q; the nearest that exists is %s", treeName, quota.Clip(path), t.nearest(quota.Clip(path)).place())
	}
	if !subtree {
		return quota.UsagePage{Nodes: []quota.NodeUsage{top.usage()}}, nil
	}
	max = min(max, 1+usageCells/len(t.resources))
	var page quota.UsagePage
	top.walk(func(n *node) bool {
		switch {
		case more && comparePaths(n.path, after) <= 0:
		case len(page.Nodes) == max:
			page.More = true
		default:
			page.Nodes = append(page.Nodes, n.usage())
			page.Next = n.path
		}
		return !page.More
	})
	return page, nil
}

// comparePaths orders paths as a walk visits them: by name at each level, which is byte order with the slash first.
func comparePaths(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i] != b[i] {
			return rank(a[i]) - rank(b[i])
		}
	}
	return len(a) - len(b)
}

func rank(c byte) int {
	if c == '/' {
		return 0
	}
	return int(c)
}

func (n *node) usage() quota.NodeUsage {
	u := quota.NodeUsage{
		Path: n.path, Policy: n.policy.Name, Resources: make([]quota.ResourceUsage, len(n.tree.resources)),
		Applications: n.applications, MaxApplications: n.spec.Applications,
	}
	for i, r := range n.tree.resources {
		headroom, bounded := n.headroom(i)
		u.Resources[i] = quota.ResourceUsage{
			Resource: r.Resource, Set: n.limits[i], Effective: n.effective(i), Own: n.own[i], Subtree: n.subtree[i],
			Headroom: headroom, Bounded: bounded, Over: n.overBy(i, n.subtree[i]),
		}
	}
	return u
}

// headroom is the least room from the node up to the root, and whether anything limits it. In a cohort a level sees only
// what the levels below it cannot take from what they do not lend.
func (n *node) headroom(r int) (quota.Amount, bool) {
	least, bounded := quota.MaxAmount, false
	unlent := quota.Amount(0)
	for at := n; at != nil; at = at.parent {
		least = min(least, at.ceilings[r]-at.subtree[r])
		if at.pools == nil {
			unlent = 0
		} else {
			room := at.pools[r].room() + at.mayOwe(r)
			if room >= 0 {
				room = room.Plus(unlent)
			}
			least = min(least, room)
			unlent = unlent.Plus(at.pools[r].unlent())
		}
		bounded = bounded || at.effective(r).Kind == quota.Limited
	}
	return max(0, least), bounded
}
