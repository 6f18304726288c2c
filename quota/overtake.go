package quota

// asker is who asks for something at which others may wait: its turn, and the time.
type asker struct {
	QueueTurn
	now Instant
}

func (l *Ledger) asker(a *Allocation) asker { return asker{a.turn(), l.now.At} }

// behind appends a violation if requests wait in the line that the asker must not overtake.
func (who asker) behind(violations []Violation, lines []*line, key lineKey) []Violation {
	ln := findLine(lines, key)
	if ln == nil {
		return violations
	}
	head := ln.firm(who.now)
	if head == nil || !head.turn.before(who.QueueTurn) {
		return violations
	}
	return append(violations, ln.violation(ln.before(who.QueueTurn)))
}

// violation says that so many requests are before one that wants the same as a line.
func (ln *line) violation(earlier int) Violation {
	v := Violation{Kind: OfQueue, Tree: ln.tree.name, Holder: ln.holder, Item: ln.state + ln.item, Used: Amount(earlier)}
	if ln.node != nil {
		v.Node = ln.node.path
	}
	if ln.resource != nil {
		v.Resource = ln.resource.Name
	}
	return v
}

// behindFor is behind at a node for a resource.
func (who asker) behindFor(violations []Violation, n *node, r *resource) []Violation {
	if n.lines == nil {
		return violations
	}
	return who.behind(violations, n.lines, lineKey{tree: n.tree, node: n, resource: r})
}

// behindSoftly says for every claim that borrows softly whom it must not overtake on its way up.
func (l *Ledger) behindSoftly(a *Allocation) []Violation {
	var violations []Violation
	who := l.asker(a)
	for i := range a.claims {
		c := &a.claims[i]
		if !c.soft() || len(c.at.tree.lines) == 0 {
			continue
		}
		for n := c.home(); n != nil; n = n.parent {
			if n.lines == nil {
				continue
			}
			if n.borrows == BorrowSoftly {
				violations = who.behind(violations, n.lines, lineKey{tree: n.tree, node: n})
				continue
			}
			for _, p := range c.amounts {
				violations = who.behindFor(violations, n, p.resource)
			}
		}
	}
	return violations
}

// behindNames is behind for each item that is named.
func (who asker) behindNames(violations []Violation, t *tree, p Pick) []Violation {
	r := t.resource(p.Resource)
	for _, name := range p.Names {
		violations = who.behind(violations, r.lines, lineKey{tree: t, resource: r, item: name})
	}
	return violations
}

// anyWaits is true if requests wait in a tree that the allocation claims in.
func (a *Allocation) anyWaits() bool {
	for i := range a.claims {
		if len(a.claims[i].at.tree.lines) > 0 {
			return true
		}
	}
	return false
}
