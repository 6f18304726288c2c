package ledger

import (
	"iter"
	"slices"
	"sort"

	"github.com/quorate/quorate/quota"
)

// firstTurn is before all others.
var firstTurn = quota.QueueTurn{Priority: 1<<63 - 1}

// turnBefore is the order of the queue: the higher priority first, then whoever came first.
func turnBefore(t, other quota.QueueTurn) bool {
	if t.Priority != other.Priority {
		return t.Priority > other.Priority
	}
	return t.Arrival < other.Arrival
}

// turnAfter is the turn right after.
func turnAfter(t quota.QueueTurn) quota.QueueTurn {
	return quota.QueueTurn{Priority: t.Priority, Arrival: t.Arrival + 1}
}

// mostInPiece is how many waiters a piece of ranks may have.
const mostInPiece = 128

// ranks are waiters in the order of the queue. They are cut into pieces, each with the least need in it, so that the next
// one who fits into some room is found without asking everybody, and nobody's coming or going costs the whole length.
type ranks struct {
	pieces []piece
	length int
}

type piece struct {
	waiters []*waiter
	least   quota.Amount
}

// find is where the first waiter stands who is not before a turn, or the end.
func (r *ranks) find(t quota.QueueTurn) (p, i int) {
	p = sort.Search(len(r.pieces), func(p int) bool {
		list := r.pieces[p].waiters
		return !turnBefore(list[len(list)-1].turn, t)
	})
	if p == len(r.pieces) {
		return p, 0
	}
	list := r.pieces[p].waiters
	return p, sort.Search(len(list), func(i int) bool { return !turnBefore(list[i].turn, t) })
}

func (r *ranks) insert(w *waiter) {
	r.length++
	p, i := r.find(w.turn)
	if p == len(r.pieces) {
		if p == 0 {
			r.pieces = []piece{{waiters: []*waiter{w}, least: w.need}}
			return
		}
		p--
		i = len(r.pieces[p].waiters)
	}
	at := &r.pieces[p]
	at.waiters = slices.Insert(at.waiters, i, w)
	at.least = min(at.least, w.need)
	if len(at.waiters) > mostInPiece {
		upper := piece{waiters: slices.Clone(at.waiters[mostInPiece/2:])}
		at.waiters = slices.Delete(at.waiters, mostInPiece/2, len(at.waiters))
		at.settle()
		upper.settle()
		r.pieces = slices.Insert(r.pieces, p+1, upper)
	}
}

func (r *ranks) remove(w *waiter) {
	r.length--
	p, i := r.find(w.turn)
	at := &r.pieces[p]
	at.waiters = slices.Delete(at.waiters, i, i+1)
	switch {
	case len(at.waiters) == 0:
		r.pieces = slices.Delete(r.pieces, p, p+1)
		return
	case p+1 < len(r.pieces) && len(at.waiters)+len(r.pieces[p+1].waiters) <= mostInPiece/2:
		at.waiters = append(at.waiters, r.pieces[p+1].waiters...)
		r.pieces = slices.Delete(r.pieces, p+1, p+2)
	}
	at.settle()
}

// settle finds the least need of a piece.
func (p *piece) settle() {
	p.least = p.waiters[0].need
	for _, w := range p.waiters[1:] {
		p.least = min(p.least, w.need)
	}
}

// head is the first; nil if there is none.
func (r *ranks) head() *waiter {
	if r.length == 0 {
		return nil
	}
	return r.pieces[0].waiters[0]
}

// within is the first one, from a turn on, who needs no more than there is room; nil if there is none.
func (r *ranks) within(room quota.Amount, from quota.QueueTurn) *waiter {
	p, i := r.find(from)
	for ; p < len(r.pieces); p, i = p+1, 0 {
		if r.pieces[p].least > room {
			continue
		}
		for _, w := range r.pieces[p].waiters[i:] {
			if w.need <= room {
				return w
			}
		}
	}
	return nil
}

// before is how many stand before a turn.
func (r *ranks) before(t quota.QueueTurn) int {
	p, i := r.find(t)
	for _, earlier := range r.pieces[:p] {
		i += len(earlier.waiters)
	}
	return i
}

// from yields all from a turn on. Nobody may come or go meanwhile.
func (r *ranks) from(t quota.QueueTurn) iter.Seq[*waiter] {
	return func(yield func(*waiter) bool) {
		p, i := r.find(t)
		for ; p < len(r.pieces); p, i = p+1, 0 {
			for _, w := range r.pieces[p].waiters[i:] {
				if !yield(w) {
					return
				}
			}
		}
	}
}

// list is a copy of all, for whoever makes some come or go.
func (r *ranks) list() []*waiter {
	all := make([]*waiter, 0, r.length)
	for _, p := range r.pieces {
		all = append(all, p.waiters...)
	}
	return all
}
