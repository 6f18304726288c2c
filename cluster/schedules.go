package cluster

import (
	"time"

	"github.com/quorate/quorate/cluster/recurrence"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

const (
	// extendInterval is how often the leader looks for recurring limits that need windows. A limit has half of its windows
	// left then, so that the interval is short in any case.
	extendInterval = time.Minute
	// extendRetry is how long the leader leaves a limit alone that it could not extend.
	extendRetry = time.Hour
)

// runSchedules adds windows to recurring scheduled limits for as long as the leadership lasts: the ledger knows no time
// zones, so the proposer computes windows from rules (docs/adr/0101). What an earlier leader has added or skipped is in
// the ledger, and what two leaders propose for the same windows counts once.
func (l *leadership) runSchedules() {
	later := map[string]time.Time{}
	for {
		l.extendSchedules(later)
		if !sleepContext(l.ctx, extendInterval) {
			return
		}
	}
}

// extendSchedules adds windows to all limits that need them, except those that are to be left alone until later.
func (l *leadership) extendSchedules(later map[string]time.Time) {
	var list []quota.ScheduledLimit
	if _, err := l.node.ledger.View(func(v ledger.View) { list = v.SchedulesToExtend() }); err != nil {
		return
	}
	now := l.node.CivilTime()
	for _, s := range list {
		if time.Now().Before(later[s.ID]) {
			continue
		}
		if !l.extendSchedule(s, now) {
			later[s.ID] = time.Now().Add(extendRetry)
		}
	}
}

// extendSchedule adds windows to one limit, and returns false if it is of no use to try that again soon.
func (l *leadership) extendSchedule(s quota.ScheduledLimit, now quota.CivilTime) (again bool) {
	windows, err := nextWindows(l.node.zones, s, now)
	if err != nil {
		l.node.log.Error("cannot extend a recurring limit: this node does not understand its rule",
			"id", s.ID, "rule", s.Rule, "error", err)
		return false
	}
	if len(windows) == 0 {
		return false
	}
	out, _, err := l.propose(WithSystemCaller(l.ctx), []quota.Command{quota.ExtendSchedule{ID: s.ID, Windows: windows}},
		false)
	switch {
	case l.ctx.Err() != nil:
		return false
	case err != nil:
		l.node.log.Warn("cannot extend a recurring limit, trying again", "id", s.ID, "error", err)
		return true
	case out[0].Refused != nil:
		l.node.log.Warn("a recurring limit is not extended", "id", s.ID, "error", out[0].Refused)
		return false
	}
	return !out[0].Repeated
}

// nextWindows are the windows of a recurring limit behind those that it has or has skipped, as many as it has room for.
func nextWindows(zones *recurrence.Zones, s quota.ScheduledLimit, now quota.CivilTime) ([]quota.CivilWindow, error) {
	rule, err := zones.Parse(s.Rule)
	if err != nil {
		return nil, err
	}
	after := max(now, s.RuleBegins)
	if n := len(s.Windows); n > 0 {
		after = max(after, s.Windows[n-1].Until)
	}
	if n := len(s.Skipped); n > 0 {
		after = max(after, s.Skipped[n-1].Until)
	}
	return rule.Windows(after, s.RuleEnds, quota.MaxWindows-len(s.Windows)-len(s.Skipped)), nil
}
