package explain

import (
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/rankqueue"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/read"
	"github.com/quorate/quorate/quota/ledger/internal/state"
	"github.com/quorate/quorate/quota/policy"
)

// maxLookedAhead bounds the requests ahead of one that a search looks at, for those that the asker sees.
const maxLookedAhead = 1000

// queueOf is the queue of the requests that the limit of a violation blocks; nil if none wait there.
func queueOf(f *state.Forest, v quota.Violation) *state.BlockerQueue {
	t := f.Trees[v.Tree]
	if t == nil { // removed after a denial
		return nil
	}
	if v.Kind == quota.OfItems || v.Kind == quota.OfQueue && v.Item != "" {
		if r := t.Resource(v.Resource); r != nil {
			for _, bq := range r.Queues {
				if bq.State+bq.Item == v.Item && !bq.IsAside {
					return bq
				}
			}
		}
		return nil
	}
	for _, bq := range t.Nearest(v.Node).Queues {
		if isQueueOf(bq, v) {
			return bq
		}
	}
	return nil
}

func isQueueOf(bq *state.BlockerQueue, v quota.Violation) bool {
	if bq.Holder != v.Holder || bq.IsHold != (v.Kind == quota.OfHold) || bq.IsAside {
		return false
	}
	resource := v.Resource
	if bq.Node.Borrows == policy.BorrowSoft && v.Holder.Kind == quota.TheNode {
		resource = ""
	}
	if bq.Resource == nil {
		return resource == ""
	}
	return bq.Resource.Name == resource
}

func (s *blockerSearch) addAhead(
	level *quota.LevelHolders, bq *state.BlockerQueue, v quota.Violation, turn rankqueue.Rank,
) {
	level.OtherAhead = bq.Waiters.CountBefore(turn)
	position := 0
	for alt := range bq.Waiters.All() {
		if !alt.Turn.Before(turn) || len(level.Ahead) == quota.MaxBlockers || position == maxLookedAhead {
			break
		}
		position++
		if s.seesWaiter(alt.Of) {
			b := blockerOfAlternative(alt, v)
			b.Position = position
			level.Ahead = append(level.Ahead, b)
			level.OtherAhead--
		}
	}
}

func (s *blockerSearch) seesWaiter(w *state.Waiter) bool {
	st := read.StateOf(s.reader)
	if !w.IsResize() {
		info := admit.CurrentInfo(st, w.Record)
		return s.reader.Sees(&info)
	}
	a, _ := st.Allocations.Held.Get(w.Resizes)
	info := admit.CurrentInfo(st, a)
	return s.reader.Sees(&info) && s.reader.Sees(&quota.AllocationInfo{Owner: info.Owner, Claims: info.Resize.Claims})
}

// blockerOfAlternative is the request with what it needs of the limit that blocks another.
func blockerOfAlternative(alt *state.Alternative, v quota.Violation) quota.Blocker {
	b, place := blockerOf(alt.Of.Record), alt.Of.Record.More.Waiting
	b.Since, b.SinceWall, b.ExpiresAt = place.Since.At, place.Since.Wall, place.EndsAt()
	b.Amount, b.Alternative = alt.Need, alt.Number
	sum := quota.Amount(0)
	for i := range alt.Claims {
		c := &alt.Claims[i]
		if c.At.TreeName != v.Tree || !quota.IsWithin(c.Placed.Path, v.Node) {
			continue
		}
		if b.Node == "" {
			b.Node = c.Placed.Path
		}
		for _, p := range c.Amounts {
			if p.Resource.Name == v.Resource {
				sum = sum.Plus(p.Amount)
			}
		}
	}
	if alt.Need == 0 { // it waits for several resources
		b.Amount = sum
	}
	return b
}
