package quota

// over lists the nodes of a draft that hold more than a limit, at most room of them.
func (s *succession) over(room int) []Overuse {
	if s.draft == nil || s.old == nil {
		return nil
	}
	return s.draft.over(room)
}

func (t *tree) over(room int) []Overuse {
	var list []Overuse
	t.root.walk(func(n *node) bool {
		list = append(list, n.over()...)
		return len(list) < room
	})
	return list[:min(len(list), room)]
}

// over lists the limits that the node's usage is above.
func (n *node) over() []Overuse {
	var list []Overuse
	for i, r := range n.tree.resources {
		used := n.subtree[i]
		if over := n.overBy(i, used); over > 0 {
			list = append(list, Overuse{Tree: n.treeName, Node: n.path, Resource: r.Name, Limit: used - over, Used: used})
		}
	}
	return list
}
