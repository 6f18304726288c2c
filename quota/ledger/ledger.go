package ledger

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// Apply is ApplyFrom for a command without an origin.
func (l *Ledger) Apply(s quota.Stamp, c quota.Command) Outcome {
	return l.ApplyFrom(s, Origin{Index: 1}, c)
}

// ApplyFrom carries out one command at a point of ledger time and returns its outcome. It carries out all of a command
// or nothing. The outcome depends only on the ledger and the arguments.
func (l *Ledger) ApplyFrom(s quota.Stamp, from Origin, c quota.Command) (out Outcome) {
	l.advanceTime(s)
	l.journal.facts, l.journal.changes = l.journal.facts[:0], nil
	l.forest.forgetUses()
	out = l.executeFrom(from, c, carryOut)
	if l.queue.dirty.Len() > 0 || len(l.forest.idleCandidates) > 0 || len(l.forest.onHold) > 0 {
		l.afterCommand()
	}
	if len(l.forest.usedCells)+len(l.forest.rewarned) > 0 {
		l.judgeThresholds()
	}
	l.markHolders()
	l.selfCheck()
	out.Now = l.now.At
	return out
}

// executeFrom executes a command for its caller.
func (l *Ledger) executeFrom(from Origin, c quota.Command, m mode) (out Outcome) {
	l.index = from.Index
	judge := l.guard()
	if out.Refused = judge.beginCaller(from); out.Refused == nil {
		out.Refused = judge.permit(c)
	}
	if out.Refused == nil {
		out = l.execute(judge.completed(c), m)
	}
	if l.book.Mode() == access.Guarded && l.caller.rights != nil && l.caller.rights.Kind() != access.System {
		out = Reader{ledger: l, id: l.caller.rights}.RedactOutcome(out)
	}
	out.WouldRefuse = judge.endCaller()
	return out
}

// execute decides a command, and unless it is a dry run commits it. This is the only switch over all commands.
func (l *Ledger) execute(c quota.Command, m mode) Outcome {
	p := planner{l}
	switch c := c.(type) {
	case quota.Allocate:
		return l.allocate(&c, m)
	case quota.Release:
		return l.releaseAllocation(c, m)
	case quota.Resize:
		return l.resizeAllocation(c, m)
	case quota.Transfer:
		return l.transferAllocation(c, m)
	case quota.Split:
		return l.splitAllocation(c, m)
	case quota.Renew:
		return l.renewLease(c, m)
	case quota.UpdateItems:
		return l.updateItems(c, m)
	case quota.ResetItems:
		return l.resetItems(c, m)
	case quota.Confirm:
		return l.confirmReservation(c, m)
	case quota.Cancel:
		return l.cancelReservation(c, m)
	case quota.Expire:
		return l.expireDue(c, m)
	case quota.SetCivilOffset:
		return l.setCivilOffset(c, m)
	case quota.ScheduleLimits:
		return p.scheduleLimits(c, m)
	case quota.CancelScheduledLimit:
		return p.cancelScheduled(c, m)
	case quota.ExtendSchedule:
		return l.calendar.extendSchedule(c, m)
	case quota.ApplyTrees:
		return p.commitPlan(c.Meta, p.planApply(c), m)
	case quota.SetLimits:
		return p.commitPlan(c.Meta, p.planLimits(c), m)
	case quota.MoveNode:
		return p.commitPlan(c.Meta, p.planMove(c), m)
	case quota.SetMaintenance:
		return p.commitPlan(c.Meta, p.planMaintenance(c), m)
	case quota.HoldNode:
		return p.commitPlan(c.Meta, p.planHold(c), m)
	case quota.ResumeNode:
		return p.commitPlan(c.Meta, p.planResume(c), m)
	case quota.RollBack:
		return p.commitPlan(c.Meta, p.planRollBack(c), m)
	case quota.DeleteTree:
		return p.commitPlan(c.Meta, p.planDelete(c), m)
	case quota.ChangeAccess:
		return l.guard().changeAccess(c, m)
	case quota.AdoptAllocations:
		return l.guard().adoptAllocations(c, m)
	case quota.RequestLimits:
		return l.guard().requestLimits(c, m)
	case quota.ApproveRequest:
		return l.guard().approveRequest(c, m)
	case quota.RejectRequest:
		return l.guard().rejectRequest(c, m)
	case quota.WithdrawRequest:
		return l.guard().withdrawRequest(c, m)
	case quota.SetWebhook:
		return l.webhooks.set(c, l.guard().webhookOwner(), m)
	case quota.ManageWebhook:
		return l.webhooks.manage(c, m)
	case quota.AdvanceWebhooks:
		return l.webhooks.advance(c, m)
	}
	panic("ledger: a command outside the closed list")
}

// advanceTime advances ledger time, which never goes back, and drops a few tombstones whose span is over. It depends on
// the sequence of commands only, not on their grouping into entries (I10).
func (l *Ledger) advanceTime(s quota.Stamp) {
	l.now.At = max(l.now.At, s.At)
	l.now.Wall = s.Wall
	l.civil.advance(l.now.At)
	for range min(2, l.allocations.ended.Len()) {
		l.allocations.forgetOldestTombstone()
	}
}

// SetFormat sets the format of the cluster's log, whose rules the ledger follows from then on. It must be called
// between the same two commands on every replica. The format is not part of a snapshot: the caller keeps it and calls
// SetFormat after a restore.
func (l *Ledger) SetFormat(format uint32) { l.format = format }

// Format is the format whose rules the ledger follows; the first in a new ledger.
func (l *Ledger) Format() uint32 { return l.format }

// Supersede prepares a ledger that was restored from a backup to replace another one, which has the header former.
// Time, revisions and all numbers continue from the larger value of the two ledgers, and fences from gap beyond it, so
// that no fence that was assigned after the backup is assigned again. Civil time continues from the later one too.
//
// Webhooks begin anew with what is remembered of events, and tell their receivers of the gap.
//
// Open requests for limits become stale: nobody knows which of them were rejected or withdrawn after the backup.
//
// Leases get their whole TTL again, and waiting requests their whole keep span, because their callers could not renew
// them here and renewals after the backup are not known.
func (l *Ledger) Supersede(former Header, gap uint64) {
	l.now = quota.Stamp{At: max(l.now.At, former.Now.At), Wall: max(l.now.Wall, former.Now.Wall)}
	l.civil.continueFrom(max(l.civil.now, former.Civil), l.now.At)
	l.history.revision, l.journal.lastEvent = max(l.history.revision, former.Revision),
		max(l.journal.lastEvent, former.Event)
	l.forest.nodeID, l.allocations.lastArrivalSeq, l.inventory.lastStateSeq = max(l.forest.nodeID, former.NodeID),
		max(l.allocations.lastArrivalSeq, former.Seat), max(l.inventory.lastStateSeq, former.Turn)
	l.queue.arrival, l.forest.version = max(l.queue.arrival, former.Arrival), max(l.forest.version, former.TreeVersion)
	l.allocations.fence = max(l.allocations.fence, former.Fence) + gap
	l.requests.last = max(l.requests.last, former.LimitRequest)
	l.webhooks.version = max(l.webhooks.version, former.Webhook)
	l.webhooks.restart()
	l.calendar.last = max(l.calendar.last, former.Scheduled)
	l.requests.closeAll("the state was replaced by a backup; ask again")
	l.extendDeadlines()
	l.selfCheck()
}

// extendDeadlines restarts the TTL of all leases and the keep spans of all waiting requests. A lease under revocation
// keeps its end, if that is in the future.
func (l *Ledger) extendDeadlines() {
	var leases []*Allocation
	for _, a := range l.allocations.held.All() {
		if b := a.lease(); b.expires != 0 && b.revokedBy == "" {
			leases = append(leases, a)
		}
	}
	for _, a := range leases {
		b := a.lease()
		if b.begin(l.now); b.ttl == 0 {
			b.expires = l.now.At + quota.Instant(cmp.Or(a.more.keep, quota.DefaultKeep))
		}
		l.replaceLease(a.withLease(b))
	}
	for _, w := range slices.Collect(l.queue.all.All()) {
		l.queue.touch(w)
	}
}
