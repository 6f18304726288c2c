package ledger

import (
	"slices"

	"github.com/quorate/quorate/quota"
)

// trial is an admission that changes the ledger step by step and can take every step back.
type trial struct {
	ledger *Ledger
	fence  uint64 // the newcomer's
	undo   []func()
	// victims have lost their places, but are ended only when the newcomer is granted; preempted says where they stood.
	victims   []*Allocation
	preempted []quota.Preempted
	displaced []displacement
	dynamic   []*node // where what is displaced had been
	// told are the leases among them that must not be ended at once; see graciously.
	told  []toBeTold
	known map[sitter]bool // displaced already
}

// try begins a trial with the newcomer among the held, so that it can be found by its fence.
func (l *Ledger) try(a *Allocation) *trial {
	t := &trial{ledger: l, fence: a.fence}
	seat := l.allocations.seat
	l.allocations.held.Set(a.fence, a)
	t.onUndo(func() {
		l.allocations.held.Delete(a.fence)
		l.allocations.seat = seat
	})
	return t
}

func (t *trial) onUndo(step func()) { t.undo = append(t.undo, step) }

// rollback takes every step back, the last one first.
func (t *trial) rollback() {
	if t == nil {
		return
	}
	for _, step := range slices.Backward(t.undo) {
		step()
	}
	t.undo, t.victims, t.preempted, t.displaced, t.dynamic, t.known = nil, nil, nil, nil, nil, nil
}

// book counts a claim of the newcomer.
func (t *trial) book(i int) {
	a := t.newcomer()
	t.ledger.book(a, i)
	t.onUndo(func() { t.ledger.unbook(a, i) })
}

// newcomer is the present record of the allocation that is tried.
func (t *trial) newcomer() *Allocation {
	a, _ := t.ledger.allocations.held.Get(t.fence)
	return a
}

// put files the record of a held allocation.
func (s *allocations) put(a *Allocation) {
	s.held.Set(a.fence, a)
	if known := s.byID[a.id]; known != nil && known.fence == a.fence {
		s.byID[a.id] = a
	}
}

// commit makes the newcomer held and ends its victims.
func (t *trial) commit() *Allocation {
	l, a := t.ledger, t.newcomer()
	if len(t.preempted) > 0 || a.more != nil && a.more.until != 0 {
		if a.more == nil {
			a.more = &particulars{}
		}
		a.more.preempted = t.preempted
		if a.more.until != 0 {
			a.more.displaced = t.settleDisplaced()
		}
	}
	for _, v := range t.victims {
		l.allocations.held.Delete(v.fence)
		l.bury(v, quota.WasPreempted, a.id)
		l.journal.note(quota.Event{Kind: quota.EventPreempted, ID: v.id, By: a.id})
	}
	l.allocations.byID[a.id] = a
	return a
}
