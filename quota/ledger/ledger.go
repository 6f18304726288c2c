package ledger

import (
	"cmp"
	"slices"

	"github.com/quorate/quorate/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/heap"
)

// Ledger is the replicated state: components that each own their part, and the commands that cross them. A component
// uses only those that stand above it in this list, so that each can be read without the ones below. It is not safe for
// concurrent use: fsm owns the lock.
type Ledger struct {
	environment

	journal     journal
	history     history
	deadlines   deadlines
	forest      forest
	allocations allocations
	queue       waitQueue
	inventory   inventory
	calendar    calendar
	requests    limitRequests
	webhooks    webhooks
	// identified is the last identity of a caller.
	identified identified
	// reserved are the prefixes of ids in the bindings of the book and of all nodes.
	reserved access.ReservedIDs
	// owners are names of owners, so that their allocations share the text. It is not part of the state.
	owners map[string]string
	// accessPath is memory for pathOf.
	accessPath access.Path
}

// environment is what every component must know, and what a request can be checked against without any other state.
type environment struct {
	bounds quota.Bounds
	now    quota.Stamp
	civil  civilClock
	level  uint32 // see SetLevel
	// book has accounts, tokens, roles and the mode. A change of access replaces it as a whole.
	book *access.Book
	// index is the log index of the command that is being carried out, caller who asks for it.
	index  uint64
	caller caller
	// restoring is true while a snapshot is read: then nothing is dropped for its size, as it was not when the snapshot
	// was taken.
	restoring bool
	// isCopy is true for one made by CopyForPlans.
	isCopy bool
}

// New returns an empty ledger that follows the newest rules.
func New(b quota.Bounds) *Ledger {
	l := &Ledger{environment: environment{bounds: b, level: quota.LevelTen, book: access.NewBook(access.Open)}}
	env := &l.environment
	l.journal.environment = env
	l.history.environment = env
	l.history.requests = map[string]*quota.Revision{}
	l.forest.environment = env
	l.forest.trees, l.forest.policies, l.forest.onHold = map[string]*tree{}, &policySet{}, map[uint64]*node{}
	l.allocations = newAllocations(env)
	l.allocations.forest = &l.forest
	l.deadlines = newDeadlines()
	l.queue = waitQueue{environment: env, deadlines: &l.deadlines, forest: &l.forest, allocations: &l.allocations}
	l.queue.dirty = heap.New(
		func(a, b *blockerQueue) bool { return a.next.Before(b.next) },
		func(bq *blockerQueue) *int { return &bq.at },
	)
	l.inventory = newInventory(env)
	l.inventory.deadlines, l.inventory.forest = &l.deadlines, &l.forest
	l.inventory.allocations, l.inventory.queue = &l.allocations, &l.queue
	l.calendar = calendar{
		environment: env, journal: &l.journal, forest: &l.forest, queue: &l.queue, due: newDeadlines(),
	}
	l.requests = limitRequests{environment: env, deadlines: &l.deadlines, changed: map[uint64]uint64{}}
	l.webhooks = webhooks{environment: env, journal: &l.journal}
	return l
}

// Origin is where a command comes from.
type Origin struct {
	// Caller asks for the command; nil in logs before callers were recorded. A guarded ledger refuses such a command.
	Caller *access.Caller
	// Index is the index of the log entry, at least 1.
	Index uint64
}

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
	if out.Refused = l.guard().beginCaller(from); out.Refused == nil {
		out.Refused = l.guard().permit(c)
	}
	if out.Refused == nil {
		out = l.execute(l.guard().completed(c), m)
	}
	if l.book.Mode() == access.Guarded && l.caller.rights != nil && l.caller.rights.Kind() != access.System {
		out = Reader{l.View(), l.caller.rights}.RedactOutcome(out)
	}
	out.WouldRefuse = l.guard().endCaller()
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

// SetLevel sets the feature level of the cluster. It must be called between the same two commands on every replica. The
// level is not part of a snapshot: the caller keeps it and calls SetLevel after a restore.
func (l *Ledger) SetLevel(level uint32) {
	if l.level = level; level >= quota.LevelTen {
		l.forest.rejudgeThresholds() // by the rule of that level, which may clear some
	}
}

// Level is the feature level; the newest in a new ledger.
func (l *Ledger) Level() uint32 { return l.level }

// Outcome is what one command did. Refused is nil unless the command changed nothing for a reason other than a denial.
type Outcome struct {
	// Refused is the reason for which nothing was done.
	Refused *quota.Error
	// Decision is set for an Allocate, a Resize, a Transfer or a Split that was decided (granted or denied).
	Decision *quota.Decision
	// Allocation is set for a granted Allocate, for a Release, and for what changes an allocation; in a dry run it is the
	// allocation that exists already, if there is one.
	Allocation *Allocation
	// Parts are the new allocations of a Split, in its order.
	Parts []*Allocation
	// Configuration is set for a change of configuration.
	Configuration *quota.Configuration
	// Restored are the ids of the allocations that are held again after a Cancel: none, or all that had been preempted.
	Restored []string
	// Now is ledger time after the command.
	Now quota.Instant
	// Items are those of an UpdateItems, in its order, or those that a ResetItems took, by name, with their former
	// holders.
	Items []quota.ItemInfo
	// Expired counts what an Expire has ended or changed.
	Expired int
	// Adopted counts the allocations that an AdoptAllocations gave an owner.
	Adopted int
	// LimitRequest is set for commands about requests for limits: the request after the command.
	LimitRequest *quota.LimitRequestInfo
	// Webhook is set for a SetWebhook and a ManageWebhook: the webhook after the command, or the one that was removed.
	Webhook *quota.Webhook
	// ScheduledLimit is set for commands about a scheduled limit: the limit after the command, or before its end.
	ScheduledLimit *quota.ScheduledLimit
	// WouldRefuse, in a watching ledger, is what a guarded one would have refused.
	WouldRefuse *quota.Error
	// Repeated is true if the command had been carried out before and changed nothing now.
	Repeated bool
}

// Header is the header of a snapshot taken now.
func (l *Ledger) Header() Header {
	return Header{
		Now: l.now, Revision: l.history.revision, Fence: l.allocations.fence, NodeID: l.forest.nodeID,
		Seat: l.allocations.lastArrivalSeq, Event: l.journal.lastEvent,
		Turn: l.inventory.lastStateSeq, Arrival: l.queue.arrival, TreeVersion: l.forest.version,
		LimitRequest: l.requests.last, Webhook: l.webhooks.version,
		CivilOffset: l.civil.offset, Civil: l.civil.now,
		Scheduled: l.calendar.last,
	}
}

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
