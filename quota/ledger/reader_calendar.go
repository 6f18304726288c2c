package ledger

import "github.com/quorate/quorate/quota"

// CivilTime is civil time as of the last command, so that it never decreases, whatever leader is asked; 0 if the
// members have not agreed on it yet.
func (v View) CivilTime() quota.CivilTime { return v.ledger.civil.now }

// CivilOffset is what SetCivilOffset has set last: 0 if it has set nothing. Civil time is later than ledger time plus
// the offset while it stands still.
func (v View) CivilOffset() quota.Span { return v.ledger.civil.offset }

// NextDue returns when the ledger needs its next Expire, which may be in the past; false if it needs none.
func (v View) NextDue() (quota.Instant, bool) {
	first, waits := v.nextDeadline()
	if scheduled, ok := v.ledger.calendar.due.next(); ok {
		at := v.ledger.civil.instantOf(quota.CivilTime(scheduled.at), v.ledger.now.At)
		if !waits || at < first {
			return at, true
		}
	}
	return first, waits
}

// nextDeadline is the next deadline in ledger time.
func (v View) nextDeadline() (quota.Instant, bool) {
	next, ok := v.ledger.deadlines.next()
	return next.at, ok
}

// ScheduledLimits are those at or below a node of a tree, in the order in which they were made; with an empty tree
// those of all trees. They must not be changed.
func (v View) ScheduledLimits(tree, node string) []quota.ScheduledLimit {
	var list []quota.ScheduledLimit
	for _, s := range v.ledger.calendar.all {
		if tree == "" || s.node.treeName == tree && quota.IsWithin(s.node.path, node) {
			is := s.info()
			is.Skipped = s.skippedAfter(v.ledger.civil.now)
			list = append(list, is)
		}
	}
	return list
}

// SchedulesToExtend are the recurring scheduled limits that have less than half of the windows that they may have. They
// must not be changed.
func (v View) SchedulesToExtend() []quota.ScheduledLimit {
	var list []quota.ScheduledLimit
	now := v.ledger.civil.now
	for _, s := range v.ledger.calendar.all {
		if s.recurs(now) && len(s.Windows)+len(s.skippedAfter(now)) < quota.MaxWindows/2 {
			is := s.info()
			is.Skipped = s.skippedAfter(now)
			list = append(list, is)
		}
	}
	return list
}
