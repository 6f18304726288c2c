package ledger

import (
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/rankqueue"
	"github.com/quorate/quorate/quota/policy"
)

// maxLookedAhead bounds the requests ahead of one that a search looks at, for those that the asker sees.
const maxLookedAhead = 1000

// queueOf is the queue of the requests that the limit of a violation blocks; nil if none wait there.
func queueOf(f *forest, v quota.Violation) *blockerQueue {
	t := f.trees[v.Tree]
	if t == nil { // removed after a denial
		return nil
	}
	if v.Kind == quota.OfItems || v.Kind == quota.OfQueue && v.Item != "" {
		if r := t.resource(v.Resource); r != nil {
			for _, bq := range r.queues {
				if bq.state+bq.item == v.Item && !bq.isAside {
					return bq
				}
			}
		}
		return nil
	}
	for _, bq := range t.nearest(v.Node).queues {
		if isQueueOf(bq, v) {
			return bq
		}
	}
	return nil
}

// isQueueOf is true if a queue at a node is that of a violation there.
func isQueueOf(bq *blockerQueue, v quota.Violation) bool {
	if bq.holder != v.Holder || bq.isHold != (v.Kind == quota.OfHold) || bq.isAside {
		return false
	}
	resource := v.Resource
	if bq.node.borrows == policy.BorrowSoft && v.Holder.Kind == quota.TheNode {
		resource = ""
	}
	if bq.resource == nil {
		return resource == ""
	}
	return bq.resource.Name == resource
}

// addAhead adds the requests of a queue whose turn is before another one.
func (s *blockerSearch) addAhead(level *quota.LevelHolders, bq *blockerQueue, v quota.Violation, turn rankqueue.Rank) {
	level.OtherAhead = bq.waiters.CountBefore(turn)
	position := 0
	for alt := range bq.waiters.All() {
		if !alt.turn.Before(turn) || len(level.Ahead) == quota.MaxBlockers || position == maxLookedAhead {
			break
		}
		position++
		if s.seesWaiter(alt.of) {
			b := blockerOfAlternative(alt, v)
			b.Position = position
			level.Ahead = append(level.Ahead, b)
			level.OtherAhead--
		}
	}
}

// seesWaiter is true if the asker sees a request, or a resize, in the queue.
func (s *blockerSearch) seesWaiter(w *waiter) bool {
	l := s.reader.ledger
	if !w.isResize() {
		info := l.currentInfo(w.record)
		return s.reader.sees(&info)
	}
	a, _ := l.allocations.held.Get(w.resizes)
	info := l.currentInfo(a)
	return s.reader.sees(&info) && s.reader.sees(&quota.AllocationInfo{Owner: info.Owner, Claims: info.Resize.Claims})
}

// blockerOfAlternative is the request with what it needs of the limit that blocks another.
func blockerOfAlternative(alt *alternative, v quota.Violation) quota.Blocker {
	b, place := blockerOf(alt.of.record), alt.of.record.more.waiting
	b.Since, b.SinceWall, b.ExpiresAt = place.since.At, place.since.Wall, place.endsAt()
	b.Amount, b.Alternative = alt.need, alt.number
	sum := quota.Amount(0)
	for i := range alt.claims {
		c := &alt.claims[i]
		if c.at.treeName != v.Tree || !quota.IsWithin(c.placed.path, v.Node) {
			continue
		}
		if b.Node == "" {
			b.Node = c.placed.path
		}
		for _, p := range c.amounts {
			if p.resource.Name == v.Resource {
				sum = sum.Plus(p.amount)
			}
		}
	}
	if alt.need == 0 { // it waits for several resources
		b.Amount = sum
	}
	return b
}
