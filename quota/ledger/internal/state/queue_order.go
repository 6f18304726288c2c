package state

import (
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/rankqueue"
	"github.com/quorate/quorate/quota/policy"
)

// Asker is the turn of a request that must not overtake others, with the present time.
type Asker struct {
	rankqueue.Rank
	now quota.Instant
}

func (e *Environment) AskerFor(a *Allocation) Asker { return Asker{a.QueueTurn(), e.Now.At} }

// OvertakeViolations appends a violation if the asker must not overtake requests in the queue.
func (asker Asker) OvertakeViolations(violations []quota.Violation, list []*BlockerQueue,
	key Blocker,
) []quota.Violation {
	bq := findQueueIn(list, key)
	if bq == nil {
		return violations
	}
	head := bq.BlockingHead(asker.now)
	if head == nil || !head.Turn.Before(asker.Rank) {
		return violations
	}
	return append(violations, bq.overtakeViolation(bq.Waiters.CountBefore(asker.Rank)))
}

func (bq *BlockerQueue) overtakeViolation(earlier int) quota.Violation {
	v := quota.Violation{
		Kind: quota.OfQueue, Tree: bq.Tree.Name, Holder: bq.Holder, Item: bq.State + bq.Item,
		Used: quota.Amount(earlier),
	}
	if bq.Node != nil {
		v.Node = bq.Node.Path
	}
	if bq.Resource != nil {
		v.Resource = bq.Resource.Name
	}
	return v
}

// AppendOvertaking is OvertakeViolations at a node for a resource.
func (asker Asker) AppendOvertaking(violations []quota.Violation, n *Node, r *Resource) []quota.Violation {
	if n.Queues == nil {
		return violations
	}
	return asker.OvertakeViolations(violations, n.Queues, Blocker{Tree: n.Tree, Node: n, Resource: r})
}

// SoftOvertakeViolations returns, for every claim with soft borrowing, the requests that it must not overtake on its
// path.
func (asker Asker) SoftOvertakeViolations(claims []PlacedClaim) []quota.Violation {
	var violations []quota.Violation
	for i := range claims {
		c := &claims[i]
		if !c.IsSoft() || len(c.At.Tree.Queues) == 0 {
			continue
		}
		for n := c.Home(); n != nil; n = n.Parent {
			if n.Queues == nil {
				continue
			}
			if n.Borrows == policy.BorrowSoft {
				violations = asker.OvertakeViolations(violations, n.Queues, Blocker{Tree: n.Tree, Node: n})
				continue
			}
			for _, p := range c.Amounts {
				violations = asker.AppendOvertaking(violations, n, p.Resource)
			}
		}
	}
	return violations
}

// OvertakeByName is OvertakeViolations for each named item.
func (asker Asker) OvertakeByName(violations []quota.Violation, t *Tree, p quota.Pick) []quota.Violation {
	r := t.Resource(p.Resource)
	for _, name := range p.Names {
		violations = asker.OvertakeViolations(violations, r.Queues, Blocker{Tree: t, Resource: r, Item: name})
	}
	return violations
}

// AnyQueued is true if requests wait in a tree of the allocation.
func (a *Allocation) AnyQueued() bool {
	for i := range a.Claims {
		if len(a.Claims[i].At.Tree.Queues) > 0 {
			return true
		}
	}
	return false
}
