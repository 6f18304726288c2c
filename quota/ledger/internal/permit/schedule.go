package permit

import (
	"slices"

	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/configure"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// ScheduleLimits makes a scheduled limit, and begins its first window if that is due.
func ScheduleLimits(p configure.Planner, c quota.ScheduleLimits, m state.Mode) state.Outcome {
	s := &state.ScheduledLimit{ScheduledLimit: quota.ScheduledLimit{
		ID: c.ID, Tree: c.Tree, Node: c.Node, Adjustments: c.Adjustments,
		Windows: configure.BeginNow(&p.State.Calendar, c.Windows),
		Rule:    c.Rule, RuleBegins: c.RuleBegins, RuleEnds: c.RuleEnds, Actor: c.Actor, Reason: c.Reason,
	}}
	if s.Rule != "" {
		s.Windows = configure.Remaining(&p.State.Calendar, s.Windows)
	}
	if err := configure.CheckNew(&p.State.Calendar, s); err != nil {
		return state.Outcome{Refused: err}
	}
	t := p.State.Forest.Trees[c.Tree]
	if t == nil {
		return state.Outcome{Refused: quota.Errorf(quota.NotFound, "place.tree", "there is no tree %q", quota.Clip(c.Tree))}
	}
	var err *quota.Error
	if s.Node, err = configure.ConfiguredNode(t, c.Node, "place.node"); err != nil {
		return state.Outcome{Refused: err}
	}
	if out, known := configure.AnswerToRepeatedSchedule(&p.State.Calendar, s, c.Windows); known {
		return out
	}
	if err := configure.CheckPlace(&p.State.Calendar, s); err != nil {
		return state.Outcome{Refused: err}
	}
	changes := configure.ChangesOfScheduled(s, quota.Added)
	if err := permitSchedule(p, s.Node, c.Actor, c.Reason, changes); err != nil {
		return state.Outcome{Refused: err}
	}
	if err := configure.CheckAttached(&p.State.Calendar, s, s.Windows, s.Attach, s.Detach); err != nil {
		return state.Outcome{Refused: err}
	}
	if m == state.CarryOut {
		p.State.Calendar.Add(s)
		p.State.Calendar.Note(quota.EventLimitScheduled, s, c.Actor, nil)
		p.State.Calendar.BeginIfDue(s)
		p.State.Journal.Changes = changes
	}
	info := s.Info()
	return state.Outcome{ScheduledLimit: &info}
}

func permitSchedule(p configure.Planner, n *state.Node, actor, reason string, changes []quota.Change) *quota.Error {
	out, _ := judgeChange(p, quota.ChangeMeta{Actor: actor, Reason: reason}, configure.Plan{
		Changes: changes,
		Locate: func(quota.Change) configure.ChangedNode {
			return configure.ChangedNode{Was: n, Above: n.Parent, IsRoot: n.Parent == nil}
		},
	})
	return out.Refused
}

// CancelScheduled ends a scheduled limit with all its windows.
func CancelScheduled(p configure.Planner, c quota.CancelScheduledLimit, m state.Mode) state.Outcome {
	s := p.State.Calendar.Find(c.ID)
	if s == nil {
		return state.Outcome{Refused: configure.NoScheduledLimit(c.ID)}
	}
	changes := configure.ChangesOfScheduled(s, quota.Removed)
	if err := permitSchedule(p, s.Node, c.Actor, c.Reason, changes); err != nil {
		return state.Outcome{Refused: err}
	}
	place := slices.Clone(s.Node.Scheduled)
	reattach := func() { s.Node.Scheduled = place }
	if err := configure.CheckAttached(&p.State.Calendar, s, s.Windows, s.Detach, reattach); err != nil {
		return state.Outcome{Refused: err}
	}
	info := s.Info()
	if m == state.CarryOut {
		p.State.Calendar.Remove(s, c.Actor)
		p.State.Journal.Changes = changes
	}
	return state.Outcome{ScheduledLimit: &info}
}
