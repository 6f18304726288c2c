package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/quorate/quorate/cluster/recurrence"
	"github.com/quorate/quorate/fsm"
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

type windowExtender struct {
	log    hclog.Logger
	ctx    context.Context //nolint:containedctx // that of the leadership
	zones  *recurrence.Zones
	ledger *fsm.FSM
	times  *timeSource
	commit *groupCommit
}

// run adds windows to recurring scheduled limits for as long as the leadership lasts: the ledger knows no time
// zones, so the proposer computes windows from rules (docs/adr/0101). What an earlier leader has added or skipped is in
// the ledger, and what two leaders propose for the same windows counts once.
func (w *windowExtender) run() {
	later := map[string]time.Time{}
	for {
		w.extendAll(later)
		if !sleepContext(w.ctx, extendInterval) {
			return
		}
	}
}

func (w *windowExtender) extendAll(later map[string]time.Time) {
	var list []quota.ScheduledLimit
	if _, err := w.ledger.View(func(v ledger.Reader) { list = v.SchedulesToExtend() }); err != nil {
		return
	}
	now := w.times.civilTime()
	for _, s := range list {
		if time.Now().Before(later[s.ID]) {
			continue
		}
		if !w.extend(s, now) {
			later[s.ID] = time.Now().Add(extendRetry)
		}
	}
}

// extend is false if it is of no use to try again soon.
func (w *windowExtender) extend(s quota.ScheduledLimit, now quota.CivilTime) (again bool) {
	windows, err := nextWindows(w.zones, s, now)
	if err != nil {
		w.log.Error("cannot extend a recurring limit: this node does not understand its rule",
			"id", s.ID, "rule", s.Rule, "error", err)
		return false
	}
	if len(windows) == 0 {
		return false
	}
	extension := quota.ExtendSchedule{ID: s.ID, Windows: windows}
	out, _, err := w.commit.propose(WithSystemCaller(w.ctx), []quota.Command{extension}, false)
	switch {
	case w.ctx.Err() != nil:
		return false
	case err != nil:
		w.log.Warn("cannot extend a recurring limit, trying again", "id", s.ID, "error", err)
		return true
	case out[0].Refused != nil:
		w.log.Warn("a recurring limit is not extended", "id", s.ID, "error", out[0].Refused)
		return false
	}
	return !out[0].Repeated
}

// nextWindows returns as many as the limit has room for, behind those that it has or has skipped.
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

func (c Config) openZones() (*recurrence.Zones, error) {
	if c.TimeZones == "" {
		return recurrence.CompiledZones(), nil
	}
	return recurrence.OpenZones(c.TimeZones)
}

// Zones is the table of time zones of this node. Windows of recurring limits follow that of the leader.
func (n *Node) Zones() *recurrence.Zones { return n.zones }

// DescribeZones says that a member has another table of time zones than the leader; empty if it has the same, or if
// either has not reported one. Such a member would compute other windows of recurring limits as
// soon as it leads.
func DescribeZones(member, version, leader, leaderVersion string) string {
	if version == leaderVersion || version == "" || leaderVersion == "" {
		return ""
	}
	return fmt.Sprintf("%s has version %s of the time zones, and the leader %s version %s: recurring limits follow the "+
		"leader's (docs/configuration.md)", member, version, leader, leaderVersion)
}
