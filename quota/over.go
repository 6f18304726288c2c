package quota

// overAfter lists the nodes that would hold more than a limit if draft took the place of old, at most room of them.
func overAfter(draft, old *tree, room int) []Overuse {
	if old == nil || old.claims == 0 {
		return nil
	}
	draft.repoolAs(old)
	var list []Overuse
	draft.root.walk(func(n *node) bool {
		if was := old.byPath[n.path]; was != nil {
			list = append(list, was.over(n)...)
		}
		return len(list) < room
	})
	return list[:min(len(list), room)]
}

// over lists the limits of next that the node's usage is above.
func (n *node) over(next *node) []Overuse {
	var list []Overuse
	for _, r := range next.tree.resources {
		known := n.tree.resource(r.Name)
		if known == nil {
			continue
		}
		used := n.subtree[known.index]
		if over := next.overBy(r.index, used); over > 0 {
			list = append(list, Overuse{Tree: n.treeName, Node: n.path, Resource: r.Name, Limit: used - over, Used: used})
		}
	}
	return list
}
