package read

import (
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/configure"
)

// CivilTime is civil time as of the last command, so that it never decreases, whatever leader is asked; 0 if the
// members have not agreed on it yet.
func (r Reader) CivilTime() quota.CivilTime { return r.state.Civil.Now }

// CivilOffset is what SetCivilOffset has set last: 0 if it has set nothing. Civil time is later than ledger time plus
// the offset while it stands still.
func (r Reader) CivilOffset() quota.Span { return r.state.Civil.Offset }

// NextDue returns when the ledger needs its next Expire, which may be in the past; false if it needs none.
func (r Reader) NextDue() (quota.Instant, bool) {
	first, waits := r.nextDeadline()
	if scheduled, ok := r.state.Calendar.Due.Next(); ok {
		at := r.state.Civil.InstantOf(quota.CivilTime(scheduled.At), r.state.Now.At)
		if !waits || at < first {
			return at, true
		}
	}
	return first, waits
}

func (r Reader) nextDeadline() (quota.Instant, bool) {
	next, ok := r.state.Deadlines.Next()
	return next.At, ok
}

// allScheduledLimits are those at or below a node of a tree, in the order in which they were made; with an empty tree
// those of all trees. They must not be changed.
func (r Reader) allScheduledLimits(tree, node string) []quota.ScheduledLimit {
	var list []quota.ScheduledLimit
	for _, s := range r.state.Calendar.All {
		if tree == "" || s.Node.TreeName == tree && quota.IsWithin(s.Node.Path, node) {
			limit := s.Info()
			limit.Skipped = configure.SkippedAfter(s, r.state.Civil.Now)
			list = append(list, limit)
		}
	}
	return list
}

// SchedulesToExtend are the recurring scheduled limits, at nodes whose configuration the caller may read, that have
// less than half of the windows that they may have. They must not be changed.
func (r Reader) SchedulesToExtend() []quota.ScheduledLimit {
	var list []quota.ScheduledLimit
	now := r.state.Civil.Now
	for _, s := range r.state.Calendar.All {
		isShort := s.Recurs(now) && len(s.Windows)+len(configure.SkippedAfter(s, now)) < quota.MaxWindows/2
		if isShort && r.MayAt(access.ConfigRead, s.Node) {
			limit := s.Info()
			limit.Skipped = configure.SkippedAfter(s, now)
			list = append(list, limit)
		}
	}
	return list
}
