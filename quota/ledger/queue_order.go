package ledger

import (
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/rankqueue"
	"github.com/quorate/quorate/quota/policy"
)

// asker is the turn of a request that must not overtake others, with the present time.
type asker struct {
	rankqueue.Rank
	now quota.Instant
}

func (e *environment) askerFor(a *Allocation) asker { return asker{a.queueTurn(), e.now.At} }

// overtakeViolations appends a violation if the asker must not overtake requests in the queue.
func (by asker) overtakeViolations(violations []quota.Violation, list []*blockerQueue,
	key blocker,
) []quota.Violation {
	bq := findQueueIn(list, key)
	if bq == nil {
		return violations
	}
	head := bq.blockingHead(by.now)
	if head == nil || !head.turn.Before(by.Rank) {
		return violations
	}
	return append(violations, bq.overtakeViolation(bq.waiters.CountBefore(by.Rank)))
}

// overtakeViolation is the violation of a request with earlier requests ahead of it in the queue.
func (bq *blockerQueue) overtakeViolation(earlier int) quota.Violation {
	v := quota.Violation{
		Kind: quota.OfQueue, Tree: bq.tree.name, Holder: bq.holder, Item: bq.state + bq.item,
		Used: quota.Amount(earlier),
	}
	if bq.node != nil {
		v.Node = bq.node.path
	}
	if bq.resource != nil {
		v.Resource = bq.resource.Name
	}
	return v
}

// appendOvertaking is overtakeViolations at a node for a resource.
func (by asker) appendOvertaking(violations []quota.Violation, n *node, r *resource) []quota.Violation {
	if n.queues == nil {
		return violations
	}
	return by.overtakeViolations(violations, n.queues, blocker{tree: n.tree, node: n, resource: r})
}

// softOvertakeViolations returns, for every claim with soft borrowing, the requests that it must not overtake on its
// path.
func (by asker) softOvertakeViolations(claims []placedClaim) []quota.Violation {
	var violations []quota.Violation
	for i := range claims {
		c := &claims[i]
		if !c.isSoft() || len(c.at.tree.queues) == 0 {
			continue
		}
		for n := c.home(); n != nil; n = n.parent {
			if n.queues == nil {
				continue
			}
			if n.borrows == policy.BorrowSoft {
				violations = by.overtakeViolations(violations, n.queues, blocker{tree: n.tree, node: n})
				continue
			}
			for _, p := range c.amounts {
				violations = by.appendOvertaking(violations, n, p.resource)
			}
		}
	}
	return violations
}

// overtakeByName is overtakeViolations for each named item.
func (by asker) overtakeByName(violations []quota.Violation, t *tree, p quota.Pick) []quota.Violation {
	r := t.resource(p.Resource)
	for _, name := range p.Names {
		violations = by.overtakeViolations(violations, r.queues, blocker{tree: t, resource: r, item: name})
	}
	return violations
}

// anyQueued is true if requests wait in a tree of the allocation.
func (a *Allocation) anyQueued() bool {
	for i := range a.claims {
		if len(a.claims[i].at.tree.queues) > 0 {
			return true
		}
	}
	return false
}
