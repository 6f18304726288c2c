package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// holdViolations are the holds at the homes of the claims and above them, each once.
func (f *forest) holdViolations(claims []placedClaim) []quota.Violation {
	var list []quota.Violation
	for i := range claims {
		for n := claims[i].home(); n != nil; n = n.parent {
			if hold := n.currentHold(); hold != nil && !slices.ContainsFunc(list, n.isHeldIn) {
				list = append(list, n.holdViolation(hold))
			}
		}
	}
	return list
}

// currentHold is the hold of the node; nil if there is none. A node of a draft has that of its predecessor.
func (n *node) currentHold() *HoldImage {
	if n.from != nil {
		return n.from.hold
	}
	return n.hold
}

func (n *node) holdViolation(hold *HoldImage) quota.Violation {
	return quota.Violation{Kind: quota.OfHold, Tree: n.treeName, Node: n.path, Reason: hold.Reason}
}

func (n *node) isHeldIn(v quota.Violation) bool { return v.Tree == n.treeName && v.Node == n.path }

// deniesWaiting is true if one of the holds in the way of a request denies requests that would wait for its end.
func (f *forest) deniesWaiting(violations []quota.Violation) bool {
	return slices.ContainsFunc(violations, func(v quota.Violation) bool {
		return v.Kind == quota.OfHold && f.trees[v.Tree].byPath[v.Node].hold.Deny
	})
}

// holdViolations are the holds at levels whose use a change of a holding would raise, wherever the claims are counted.
// It must be asked before anything is charged.
func (h *holdingChange) holdViolations() []quota.Violation {
	if len(h.ledger.forest.onHold) == 0 {
		return nil
	}
	var claims []placedClaim
	for _, a := range h.records() {
		claims = append(claims, a.claims...)
	}
	before := demandsOf(h.was.claims, (*placedClaim).home)
	var list []quota.Violation
	for _, d := range demandsOf(claims, (*placedClaim).home) {
		if d.node.hold != nil && d.risesFrom(before) {
			list = append(list, d.node.holdViolation(d.node.hold))
		}
	}
	return list
}

// risesFrom is true if the demand asks for more of its node than one of the former demands did, or if none was of it.
func (d *demand) risesFrom(before []demand) bool {
	i := slices.IndexFunc(before, func(b demand) bool { return b.node == d.node })
	return i < 0 || slices.ContainsFunc(d.amounts, func(p placedAmount) bool {
		return p.amount > amountOf(before[i].amounts, p.resource.index)
	})
}

// setHold gives a node another hold, or none. Records of holds are never changed in place: snapshots share them.
func (l *Ledger) setHold(n *node, hold *HoldImage) {
	n.hold = hold
	l.forest.markNode(n)
	if hold == nil {
		l.forgetHold(n.id)
		return
	}
	l.forest.onHold[n.id] = n
	l.deadlines.set(dueKey{dueHold, n.id}, hold.Until)
	l.deadlines.set(dueKey{dueDrain, n.id}, hold.DrainAt)
}

func (l *Ledger) forgetHold(node uint64) {
	delete(l.forest.onHold, node)
	l.deadlines.drop(dueKey{dueHold, node})
	l.deadlines.drop(dueKey{dueDrain, node})
}
