package quota

// HeldClaims says where in a tree claims are held, and on which itemized resources. Each claim counts once at its node, not
// again above it, and once for each resource; an allocation that has several there counts for each.
type HeldClaims struct {
	// Nodes are counts by path, in the order of a walk, Resources by name. Zeros are left out.
	Nodes, Resources []NamedCount
}

// HeldClaims counts the held claims of a tree. It costs the nodes of the tree. NotFound if there is no such tree.
func (v View) HeldClaims(tree string) (HeldClaims, *Error) {
	t := v.ledger.trees[tree]
	if t == nil {
		return HeldClaims{}, refuse(NotFound, "tree", "there is no tree %q", clip(tree))
	}
	var held HeldClaims
	t.root.walk(func(n *node) bool {
		if n.claims > 0 {
			held.Nodes = append(held.Nodes, NamedCount{n.path, n.claims})
		}
		return true
	})
	for _, r := range t.resources {
		if r.Unit == Items && r.holds > 0 {
			held.Resources = append(held.Resources, NamedCount{r.Name, r.holds})
		}
	}
	return held, nil
}

// WaitingClaim is a claim of a request that waits.
type WaitingClaim struct {
	// Node is the path of the nearest node that exists now.
	Tree, Node string
	// Picks are the items asked for. They are never changed in place.
	Picks []Pick
}

// WaitingClaims lists the claims of all requests that wait, in the order of the queue. It costs the length of the queue.
func (v View) WaitingClaims() []WaitingClaim {
	queue := &v.ledger.queue.all
	list := make([]WaitingClaim, 0, queue.length)
	for w := range queue.from(firstTurn) {
		for i := range w.record.claims {
			at := w.record.claims[i].at
			list = append(list, WaitingClaim{at.treeName, at.path, w.request.Claims[i].Picks})
		}
	}
	return list
}
