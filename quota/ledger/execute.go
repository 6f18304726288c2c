package ledger

import (
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/admit"
	"github.com/quorate/quorate/quota/ledger/internal/configure"
	"github.com/quorate/quorate/quota/ledger/internal/permit"
	"github.com/quorate/quorate/quota/ledger/internal/read"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

func applyFrom(s *state.State, at quota.Stamp, from state.Origin, c quota.Command) (out state.Outcome) {
	advanceTime(s, at)
	s.Journal.Facts, s.Journal.Changes = s.Journal.Facts[:0], nil
	s.Forest.ForgetUses()
	out = executeFrom(s, from, c, state.CarryOut)
	if s.Queue.Dirty.Len() > 0 || len(s.Forest.IdleCandidates) > 0 || len(s.Forest.OnHold) > 0 {
		admit.AfterCommand(s)
	}
	if len(s.Forest.UsedCells)+len(s.Forest.Rewarned) > 0 {
		s.JudgeThresholds()
	}
	read.MarkHolders(s)
	selfCheck(s)
	out.Now = s.Now.At
	return out
}

func executeFrom(s *state.State, from state.Origin, c quota.Command, m state.Mode) (out state.Outcome) {
	s.Index = from.Index
	judge := permit.NewGuard(s)
	if out.Refused = judge.BeginCaller(from); out.Refused == nil {
		out.Refused = judge.Permit(c)
	}
	if out.Refused == nil {
		out = execute(s, judge.Completed(c), m)
	}
	if s.Book.Mode() == access.Guarded && s.Caller.Rights != nil && s.Caller.Rights.Kind() != access.System {
		out = read.New(s, s.Caller.Rights).RedactOutcome(out)
	}
	out.WouldRefuse = judge.EndCaller()
	return out
}

// execute decides a command, and unless it is a dry run commits it. This is the only switch over all commands.
func execute(s *state.State, c quota.Command, m state.Mode) state.Outcome {
	p := configure.Planner{State: s}
	switch c := c.(type) {
	case quota.Allocate:
		return admit.Allocate(s, &c, m)
	case quota.Release:
		return admit.Release(s, c, m)
	case quota.Resize:
		return admit.Resize(s, c, m)
	case quota.Transfer:
		return admit.Transfer(s, c, m)
	case quota.Split:
		return admit.Split(s, c, m)
	case quota.Renew:
		return admit.Renew(s, c, m)
	case quota.UpdateItems:
		return admit.UpdateItems(s, c, m)
	case quota.ResetItems:
		return admit.ResetItems(s, c, m)
	case quota.Confirm:
		return admit.Confirm(s, c, m)
	case quota.Cancel:
		return admit.Cancel(s, c, m)
	case quota.Expire:
		return expireDue(s, c, m)
	case quota.SetCivilOffset:
		return s.SetCivilOffset(c, m)
	case quota.ScheduleLimits:
		return permit.ScheduleLimits(p, c, m)
	case quota.CancelScheduledLimit:
		return permit.CancelScheduled(p, c, m)
	case quota.ExtendSchedule:
		return configure.ExtendSchedule(&s.Calendar, c, m)
	case quota.ApplyTrees:
		return permit.CommitPlan(p, c.Meta, permit.PlanApply(p, c), m)
	case quota.SetLimits:
		return permit.CommitPlan(p, c.Meta, p.PlanLimits(c), m)
	case quota.MoveNode:
		return permit.CommitPlan(p, c.Meta, p.PlanMove(c), m)
	case quota.CordonNode:
		return permit.CommitPlan(p, c.Meta, p.PlanHold(c), m)
	case quota.UncordonNode:
		return permit.CommitPlan(p, c.Meta, p.PlanResume(c), m)
	case quota.RollBack:
		return permit.CommitPlan(p, c.Meta, p.PlanRollBack(c), m)
	case quota.DeleteTree:
		return permit.CommitPlan(p, c.Meta, p.PlanDelete(c), m)
	case quota.ChangeAccess:
		return permit.NewGuard(s).ChangeAccess(c, m)
	case quota.RequestLimits:
		return permit.NewGuard(s).RequestLimits(c, m)
	case quota.ApproveRequest:
		return permit.NewGuard(s).ApproveRequest(c, m)
	case quota.RejectRequest:
		return permit.NewGuard(s).RejectRequest(c, m)
	case quota.WithdrawRequest:
		return permit.NewGuard(s).WithdrawRequest(c, m)
	case quota.SetWebhook:
		return s.Webhooks.Set(c, permit.NewGuard(s).WebhookOwner(), m)
	case quota.ManageWebhook:
		return s.Webhooks.Manage(c, m)
	case quota.AdvanceWebhooks:
		return s.Webhooks.Advance(c, m)
	}
	panic("ledger: a command outside the closed list")
}

// advanceTime advances ledger time, which never goes back, and drops a few tombstones whose span is over. It depends on
// the sequence of commands only, not on their grouping into entries (I10).
func advanceTime(s *state.State, at quota.Stamp) {
	s.Now.At = max(s.Now.At, at.At)
	s.Now.Wall = at.Wall
	s.Civil.Advance(s.Now.At)
	for range min(2, s.Allocations.Ended.Len()) {
		s.Allocations.ForgetOldestTombstone()
	}
}
