package ledger

import "github.com/quorate/quorate/quota"

// freed stirs whoever may have room now that an allocation holds nothing any more.
func (q *waitQueue) freed(a *Allocation) {
	if q.all.length == 0 || a.fence == 0 {
		return
	}
	if len(q.full) > 0 {
		q.stir(q.full[0])
	}
	for i := range a.claims {
		if c := &a.claims[i]; len(c.at.tree.lines) > 0 {
			q.stirAbove(a, c)
		}
	}
}

// took stirs whoever may be granted because an allocation holds something now: where claims borrow softly somebody can be
// preempted who could not before, and of an application that runs more may run.
func (q *waitQueue) took(a *Allocation) {
	if q.all.length == 0 {
		return
	}
	for i := range a.claims {
		c := &a.claims[i]
		switch {
		case len(c.at.tree.lines) == 0:
		case c.at.tree.soft:
			q.stirTree(c.at.tree)
		case a.principal().Application != "":
			q.stirMembers(c.at.tree)
		}
	}
}

// stirAbove stirs the lines of everything that a claim held, from its node up.
func (q *waitQueue) stirAbove(a *Allocation, c *placedClaim) {
	if c.at.tree.soft {
		q.stirTree(c.at.tree)
		return
	}
	if a.principal().Application != "" {
		q.stirMembers(c.at.tree)
	}
	for n := c.at; n != nil; n = n.parent {
		for _, ln := range n.lines {
			if ln.concerns(a, c) {
				q.stir(ln)
			}
		}
	}
}

// concerns is true if a claim of an allocation counts against what the line waits for.
func (ln *line) concerns(a *Allocation, c *placedClaim) bool {
	if !a.countsFor(c, ln.holder) {
		return false
	}
	if ln.resource == nil {
		return true
	}
	for _, p := range c.amounts {
		if p.resource == ln.resource {
			return true
		}
	}
	return false
}

// stirTree makes everybody be tried who waits in the tree.
func (q *waitQueue) stirTree(t *tree) {
	for _, ln := range t.lines {
		q.stirThoroughly(ln)
	}
}

// stirMembers makes everybody be tried whose own application or group may have changed what is in his way.
func (q *waitQueue) stirMembers(t *tree) {
	for _, ln := range t.lines {
		if ln.node != nil && (ln.resource == nil || ln.holder.Kind == quota.AGroup) {
			q.stirThoroughly(ln)
		}
	}
}

func (q *waitQueue) stirThoroughly(ln *line) {
	q.stir(ln)
	ln.thorough = true
}

// raisedAt stirs whoever waits for room at a node whose limits have changed, or further up in its cohort.
func (q *waitQueue) raisedAt(n *node) {
	if n.tree.soft {
		q.stirTree(n.tree)
		return
	}
	for at := n; at != nil && (at == n || at.pools != nil); at = at.parent {
		for _, ln := range at.lines {
			if ln.resource != nil && ln.holder.Kind == quota.TheNode {
				q.stir(ln)
			}
		}
	}
}

// stirItems stirs those who wait for items of a resource in a state, or for one of a name.
func (q *waitQueue) stirItems(r *resource, state, item string) {
	for _, ln := range r.lines {
		if state != "" && ln.state == state || item != "" && ln.item == item {
			q.stir(ln)
		}
	}
}
