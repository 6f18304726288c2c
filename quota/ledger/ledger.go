package ledger

import "github.com/quorate/quorate/quota"

// Ledger is the whole replicated state. It is not safe for concurrent use: fsm owns the lock.
type Ledger struct {
	bounds quota.Bounds
	now    quota.Stamp
	level  uint32 // see SetLevel

	trees  map[string]*tree
	nodes  int    // in all trees
	nodeID uint64 // last given

	revision  uint64            // of the configuration; counts changes
	revisions []*quota.Revision // oldest first
	// historyNodes is what the revisions take of Bounds.HistoryNodes.
	historyNodes int
	requests     map[string]*quota.Revision

	byID  map[string]*Allocation // held and ended
	held  sizedMap[*Allocation]  // by fence
	ended sizedMap[*Allocation]  // in the order of their ends
	// endings counts ends; it orders the ended allocations and is not part of the state.
	endings uint64
	// neededUpTo is the number of a tombstone up to which all are kept for reservations beyond their span. It follows from the rest.
	neededUpTo uint64
	fence      uint64 // last given
	seat       uint64 // last given, see claimParticulars
	// treeVersion is the last one given to a tree, see markChanged.
	treeVersion uint64
	// itemTrace is nil but while a reservation is decided.
	itemTrace *itemTrace
	// vacated are nodes made on demand that a claim has left in the present command.
	vacated []*node

	queue queue
	items sizedMap[*item] // by turn
	turn  uint64          // last given to an item

	due       due
	facts     []Fact         // of the last command
	events    []*quota.Event // oldest first
	lastEvent uint64         // number of the last one

	// What trees, history and events take, see Sizes.
	treeBytes, historyBytes, eventBytes int64
	// loading is true while an image is read: then nothing is forgotten for its size, as it was not when it was written.
	loading bool
}

// New returns an empty ledger that follows the newest rules.
func New(b quota.Bounds) *Ledger {
	return &Ledger{
		bounds:   b,
		level:    quota.LevelFive,
		trees:    map[string]*tree{},
		requests: map[string]*quota.Revision{},
		byID:     map[string]*Allocation{},
		held:     newSizedMap[*Allocation](b.FreeBytes),
		ended:    newSizedMap[*Allocation](b.FreeBytes),
		items:    newSizedMap[*item](b.FreeBytes),
	}
}

// Apply carries out one command at a point of ledger time and says what it did. A command is carried out whole or not
// at all. The outcome depends on nothing but the ledger, the stamp and the command.
func (l *Ledger) Apply(s quota.Stamp, c quota.Command) Outcome {
	l.advance(s)
	l.facts = l.facts[:0]
	out := l.dispatch(c)
	l.finish()
	l.selfCheck()
	out.Now = l.now.At
	return out
}

func (l *Ledger) dispatch(c quota.Command) Outcome {
	switch c := c.(type) {
	case quota.Allocate:
		return l.allocate(c)
	case quota.Release:
		return l.release(c)
	case quota.Renew:
		return l.renew(c)
	case quota.UpdateItems:
		return l.updateItems(c)
	case quota.ResetItems:
		return l.resetItems(c)
	case quota.Confirm:
		return l.confirm(c)
	case quota.Cancel:
		return l.cancel(c)
	case quota.Expire:
		return l.expire(c)
	case quota.ApplyTrees:
		return l.configure(c.Meta, l.planTrees(c))
	case quota.SetLimits:
		return l.configure(c.Meta, l.planLimits(c))
	case quota.MoveNode:
		return l.configure(c.Meta, l.planMove(c))
	case quota.SetMaintenance:
		return l.configure(c.Meta, l.planMaintenance(c))
	case quota.RollBack:
		return l.configure(c.Meta, l.planRollBack(c))
	case quota.DeleteTree:
		return l.configure(c.Meta, l.planDelete(c))
	}
	panic("quota: a command outside the closed list")
}

// advance moves ledger time, never back, and forgets a few tombstones whose span is over. It depends on the command
// sequence only, not on how commands were gathered into entries (I10).
func (l *Ledger) advance(s quota.Stamp) {
	l.now.At = max(l.now.At, s.At)
	l.now.Wall = s.Wall
	for range 2 {
		l.forgetOldest()
	}
}
