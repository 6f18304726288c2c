package ledger

import (
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// asker is who asks for something at which others may wait: its turn, and the time.
type asker struct {
	quota.QueueTurn
	now quota.Instant
}

func (e *environment) asker(a *Allocation) asker { return asker{a.turn(), e.now.At} }

// behind appends a violation if requests wait in the line that the asker must not overtake.
func (who asker) behind(violations []quota.Violation, lines []*line, key lineKey) []quota.Violation {
	ln := findLine(lines, key)
	if ln == nil {
		return violations
	}
	head := ln.firm(who.now)
	if head == nil || !turnBefore(head.turn, who.QueueTurn) {
		return violations
	}
	return append(violations, ln.violation(ln.before(who.QueueTurn)))
}

// violation says that so many requests are before one that wants the same as a line.
func (ln *line) violation(earlier int) quota.Violation {
	v := quota.Violation{Kind: quota.OfQueue, Tree: ln.tree.name, Holder: ln.holder, Item: ln.state + ln.item, Used: quota.Amount(earlier)}
	if ln.node != nil {
		v.Node = ln.node.path
	}
	if ln.resource != nil {
		v.Resource = ln.resource.Name
	}
	return v
}

// behindFor is behind at a node for a resource.
func (who asker) behindFor(violations []quota.Violation, n *node, r *resource) []quota.Violation {
	if n.lines == nil {
		return violations
	}
	return who.behind(violations, n.lines, lineKey{tree: n.tree, node: n, resource: r})
}

// behindSoftly says for every claim that borrows softly whom it must not overtake on its way up.
func (l *Ledger) behindSoftly(a *Allocation) []quota.Violation {
	var violations []quota.Violation
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
			if n.borrows == policy.BorrowSoft {
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
func (who asker) behindNames(violations []quota.Violation, t *tree, p quota.Pick) []quota.Violation {
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
