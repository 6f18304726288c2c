package ledger

import (
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// CivilTime is civil time as of the last command, so that it never decreases, whatever leader is asked; 0 if the
// members have not agreed on it yet.
func (r Reader) CivilTime() quota.CivilTime { return r.ledger.civil.now }

// CivilOffset is what SetCivilOffset has set last: 0 if it has set nothing. Civil time is later than ledger time plus
// the offset while it stands still.
func (r Reader) CivilOffset() quota.Span { return r.ledger.civil.offset }

// NextDue returns when the ledger needs its next Expire, which may be in the past; false if it needs none.
func (r Reader) NextDue() (quota.Instant, bool) {
	first, waits := r.nextDeadline()
	if scheduled, ok := r.ledger.calendar.due.next(); ok {
		at := r.ledger.civil.instantOf(quota.CivilTime(scheduled.at), r.ledger.now.At)
		if !waits || at < first {
			return at, true
		}
	}
	return first, waits
}

// nextDeadline is the next deadline in ledger time.
func (r Reader) nextDeadline() (quota.Instant, bool) {
	next, ok := r.ledger.deadlines.next()
	return next.at, ok
}

// allScheduledLimits are those at or below a node of a tree, in the order in which they were made; with an empty tree
// those of all trees. They must not be changed.
func (r Reader) allScheduledLimits(tree, node string) []quota.ScheduledLimit {
	var list []quota.ScheduledLimit
	for _, s := range r.ledger.calendar.all {
		if tree == "" || s.node.treeName == tree && quota.IsWithin(s.node.path, node) {
			is := s.info()
			is.Skipped = s.skippedAfter(r.ledger.civil.now)
			list = append(list, is)
		}
	}
	return list
}

// SchedulesToExtend are the recurring scheduled limits, at nodes whose configuration the caller may read, that have
// less than half of the windows that they may have. They must not be changed.
func (r Reader) SchedulesToExtend() []quota.ScheduledLimit {
	var list []quota.ScheduledLimit
	now := r.ledger.civil.now
	for _, s := range r.ledger.calendar.all {
		isShort := s.recurs(now) && len(s.Windows)+len(s.skippedAfter(now)) < quota.MaxWindows/2
		if isShort && r.mayAt(access.ConfigRead, s.node) {
			is := s.info()
			is.Skipped = s.skippedAfter(now)
			list = append(list, is)
		}
	}
	return list
}
