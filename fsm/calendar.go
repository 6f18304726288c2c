package fsm

import (
	logv1 "github.com/quorate/quorate/gen/quorate/log/v1"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger"
)

func encodeCalendarCommand(c quota.Command) *logv1.Command {
	switch c := c.(type) {
	case quota.SetCivilOffset:
		return &logv1.Command{Command: &logv1.Command_SetCivilOffset{SetCivilOffset: &logv1.SetCivilOffset{
			OffsetMs: int64(c.Offset),
		}}}
	case quota.ScheduleLimits:
		return &logv1.Command{Command: &logv1.Command_ScheduleLimits{ScheduleLimits: encodeScheduled(quota.ScheduledLimit{
			ID: c.ID, Tree: c.Tree, Node: c.Node, Adjustments: c.Adjustments, Windows: c.Windows, Rule: c.Rule,
			RuleBegins: c.RuleBegins, RuleEnds: c.RuleEnds, Actor: c.Actor, Reason: c.Reason,
		})}}
	case quota.CancelScheduledLimit:
		return &logv1.Command{Command: &logv1.Command_CancelScheduledLimit{
			CancelScheduledLimit: &logv1.CancelScheduledLimit{Id: c.ID, Actor: c.Actor, Reason: c.Reason},
		}}
	case quota.ExtendSchedule:
		return &logv1.Command{Command: &logv1.Command_ExtendSchedule{
			ExtendSchedule: &logv1.ExtendSchedule{Id: c.ID, Windows: each(c.Windows, encodeWindow)},
		}}
	}
	return nil
}

// decodeCalendarCommand returns nil if it is another command.
func decodeCalendarCommand(c *logv1.Command) quota.Command {
	switch c := c.GetCommand().(type) {
	case *logv1.Command_SetCivilOffset:
		return quota.SetCivilOffset{Offset: quota.Span(c.SetCivilOffset.GetOffsetMs())}
	case *logv1.Command_ScheduleLimits:
		s := decodeScheduled(c.ScheduleLimits)
		return quota.ScheduleLimits{
			ID: s.ID, Tree: s.Tree, Node: s.Node, Adjustments: s.Adjustments, Windows: s.Windows, Rule: s.Rule,
			RuleBegins: s.RuleBegins, RuleEnds: s.RuleEnds, Actor: s.Actor, Reason: s.Reason,
		}
	case *logv1.Command_CancelScheduledLimit:
		s := c.CancelScheduledLimit
		return quota.CancelScheduledLimit{ID: s.GetId(), Actor: s.GetActor(), Reason: s.GetReason()}
	case *logv1.Command_ExtendSchedule:
		s := c.ExtendSchedule
		return quota.ExtendSchedule{ID: s.GetId(), Windows: each(s.GetWindows(), decodeWindow)}
	}
	return nil
}

// encodeScheduled encodes what a command says of a scheduled limit, and not what has become of it.
func encodeScheduled(s quota.ScheduledLimit) *logv1.ScheduleLimits {
	return &logv1.ScheduleLimits{
		Id: s.ID, Tree: s.Tree, Node: s.Node, Windows: each(s.Windows, encodeWindow), Rule: s.Rule,
		Adjustments: each(s.Adjustments, func(a quota.LimitAdjustment) *logv1.LimitAdjustment {
			return &logv1.LimitAdjustment{Resource: a.Resource, Kind: uint32(a.Kind), Amount: int64(a.Amount)}
		}),
		RuleBeginsMs: int64(s.RuleBegins), RuleEndsMs: int64(s.RuleEnds), Actor: s.Actor, Reason: s.Reason,
	}
}

func decodeScheduled(s *logv1.ScheduleLimits) quota.ScheduledLimit {
	return quota.ScheduledLimit{
		ID: s.GetId(), Tree: s.GetTree(), Node: s.GetNode(), Windows: each(s.GetWindows(), decodeWindow),
		Adjustments: each(s.GetAdjustments(), func(a *logv1.LimitAdjustment) quota.LimitAdjustment {
			return quota.LimitAdjustment{
				Resource: a.GetResource(), Kind: quota.AdjustmentKind(min(a.GetKind(), 255)), Amount: quota.Amount(a.GetAmount()),
			}
		}),
		Rule: s.GetRule(), RuleBegins: quota.CivilTime(s.GetRuleBeginsMs()),
		RuleEnds: quota.CivilTime(s.GetRuleEndsMs()), Actor: s.GetActor(), Reason: s.GetReason(),
	}
}

func encodeWindow(w quota.CivilWindow) *logv1.CivilWindow {
	return &logv1.CivilWindow{FromMs: int64(w.From), UntilMs: int64(w.Until)}
}

func decodeWindow(w *logv1.CivilWindow) quota.CivilWindow {
	return quota.CivilWindow{From: quota.CivilTime(w.GetFromMs()), Until: quota.CivilTime(w.GetUntilMs())}
}

func encodeSkipped(w quota.SkippedWindow) *logv1.SkippedWindow {
	return &logv1.SkippedWindow{Window: encodeWindow(w.CivilWindow), Reason: w.Reason}
}

func decodeSkipped(w *logv1.SkippedWindow) quota.SkippedWindow {
	return quota.SkippedWindow{CivilWindow: decodeWindow(w.GetWindow()), Reason: w.GetReason()}
}

func encodeScheduledImage(s ledger.ScheduledImage) *logv1.ScheduledLimitRecord {
	return &logv1.ScheduledLimitRecord{
		Limit: encodeScheduled(s.ScheduledLimit), Number: s.Number, NodeId: s.NodeID, InForce: s.InForce, Warned: s.Warned,
		Skipped: each(s.Skipped, encodeSkipped),
	}
}

func decodeScheduledImage(r *logv1.ScheduledLimitRecord) ledger.ScheduledImage {
	image := ledger.ScheduledImage{
		ScheduledLimit: decodeScheduled(r.GetLimit()), Number: r.GetNumber(), NodeID: r.GetNodeId(), Warned: r.GetWarned(),
	}
	image.InForce, image.Skipped = r.GetInForce(), each(r.GetSkipped(), decodeSkipped)
	return image
}

func encodeScheduledEvent(e *quota.ScheduledLimitEvent) *logv1.ScheduledLimitEvent {
	if e == nil {
		return nil
	}
	return &logv1.ScheduledLimitEvent{
		Limit: encodeScheduled(e.Limit), InForce: e.Limit.InForce, Skipped: each(e.Limit.Skipped, encodeSkipped),
		Over: each(e.Over, func(o quota.Overuse) *logv1.OveruseRecord {
			return &logv1.OveruseRecord{
				Tree: o.Tree, Node: o.Node, Resource: o.Resource, Limit: int64(o.Limit), Used: int64(o.Used),
			}
		}),
	}
}

func decodeScheduledEvent(r *logv1.ScheduledLimitEvent) *quota.ScheduledLimitEvent {
	if r == nil {
		return nil
	}
	e := &quota.ScheduledLimitEvent{
		Limit: decodeScheduled(r.GetLimit()),
		Over: each(r.GetOver(), func(o *logv1.OveruseRecord) quota.Overuse {
			return quota.Overuse{
				Tree: o.GetTree(), Node: o.GetNode(), Resource: o.GetResource(), Limit: quota.Amount(o.GetLimit()),
				Used: quota.Amount(o.GetUsed()),
			}
		}),
	}
	e.Limit.InForce, e.Limit.Skipped = r.GetInForce(), each(r.GetSkipped(), decodeSkipped)
	return e
}
