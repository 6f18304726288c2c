package ledger

import (
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/heap"
)

// Ledger is the replicated state: components that each own their part, and the commands that cross them. It is not safe
// for concurrent use: fsm owns the lock.
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
	rights      callerRights // of the caller of the present command
	// reserved are the prefixes of ids in the bindings of the book and of all nodes.
	reserved access.ReservedIDs
}

// environment is what every component must know, and what a request can be checked against without any other state.
type environment struct {
	bounds quota.Bounds
	now    quota.Stamp
	civil  civilClock
	format uint32 // see SetFormat
	// book has accounts, tokens, roles and the mode. A change of access replaces it as a whole.
	book *access.Book
	// index is the log index of the command that is being carried out, caller who asks for it.
	index  uint64
	caller caller
	// owners are names of owners, so that their allocations share the text. It is not part of the state.
	owners map[string]string
	// restoring is true while a snapshot is read: then nothing is dropped for its size, as it was not when the snapshot
	// was taken.
	restoring bool
	// isCopy is true for one made by CopyForPlans.
	isCopy bool
}

// New returns an empty ledger that follows the rules of the first format.
func New(b quota.Bounds) *Ledger {
	l := &Ledger{environment: environment{bounds: b, format: quota.FirstFormat, book: access.NewBook(access.Open)}}
	env := &l.environment
	l.rights = callerRights{env: env, caller: &env.caller, now: &env.now}
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

// mode says whether a command is carried out.
type mode uint8

const (
	// carryOut decides a command and commits it.
	carryOut mode = iota
	// dryRun decides a command and leaves the ledger as it is.
	dryRun
)

// hasShare reports whether the caller is a user who may have only a part of what all users share. In an open ledger
// none is.
func (e *environment) hasShare() bool {
	return e.book.Mode() != access.Open && e.caller.who != nil && e.caller.who.IsUser()
}

// ownerName is the owner of what the caller is granted.
func (e *environment) ownerName() string {
	user := e.caller.user()
	if user == "" {
		return ""
	}
	if e.owners == nil || len(e.owners) >= maxOwners {
		e.owners = map[string]string{}
	}
	if known, found := e.owners[user]; found {
		return known
	}
	e.owners[user] = user
	return user
}

// maxOwners bounds the names of owners that allocations share.
const maxOwners = 10_000

// caller is who asks for the command that is being carried out. The zero value may do everything.
type caller struct {
	// who is nil if nothing is known of the caller.
	who *access.Caller
	// rights is nil if rights are not asked: in an open ledger, and for the ledger's own questions.
	rights *access.Identity
	// refusal, in a watching ledger, is the first reason for which a guarded one would have refused the command.
	refusal *quota.Error
}

// identified is the last identity, because the commands behind each other are often of one caller. It is not part of
// the state.
type identified struct {
	who  *access.Caller
	book *access.Book
	wall int64
	id   *access.Identity
}

// holds is true if identifying the caller again would give the same identity. The same book accepts what it accepted
// until the token ends: its refusals end with time, and do not begin. An earlier time decides anew.
func (i *identified) holds(who *access.Caller, book *access.Book, wall int64) bool {
	return i.who == who && i.book == book && wall >= i.wall && i.id.HoldsAt(wall)
}

// user is the name of the caller's user; empty if it is not known.
func (c *caller) user() string {
	if c.who == nil {
		return ""
	}
	return c.who.User
}

// name is the caller in refusals.
func (c *caller) name() string {
	switch {
	case c.who == nil || c.who.Kind == access.Anonymous:
		return "a caller without a credential"
	case c.who.User == "":
		return c.who.Kind.String()
	}
	return c.who.User
}
