package state

import (
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/internal/heap"
)

// State is the replicated state: components that each own their part.
type State struct {
	Environment

	Journal     Journal
	History     History
	Deadlines   deadlines
	Forest      Forest
	Allocations Allocations
	Queue       WaitQueue
	Inventory   Inventory
	Calendar    Calendar
	Requests    LimitRequests
	Webhooks    Webhooks
	Rights      CallerRights // of the caller of the present command
}

// Environment is what every component must know, and what a request can be checked against without any other state.
type Environment struct {
	Bounds quota.Bounds
	Now    quota.Stamp
	Civil  CivilClock
	Format uint32 // see SetFormat
	// Book has accounts, tokens, roles and the mode. A change of access replaces it as a whole.
	Book *access.Book
	// Index is the log index of the command that is being carried out, caller who asks for it.
	Index  uint64
	Caller Caller
	// owners are names of owners, so that their allocations share the text. It is not part of the state.
	owners map[string]string
	// Restoring is true while a snapshot is read: then nothing is dropped for its size, as it was not when the snapshot
	// was taken.
	Restoring bool
	// IsCopy is true for one made by CopyForPlans.
	IsCopy bool
}

func NewState(b quota.Bounds) *State {
	s := &State{Environment: Environment{Bounds: b, Format: quota.FirstFormat, Book: access.NewBook(access.Open)}}
	env := &s.Environment
	s.Rights = CallerRights{Env: env, Caller: &env.Caller, Now: &env.Now}
	s.Journal.Environment = env
	s.History.Environment = env
	s.History.Requests = map[string]*quota.Revision{}
	s.Forest.Environment = env
	s.Forest.Trees, s.Forest.Policies, s.Forest.OnHold = map[string]*Tree{}, &PolicySet{}, map[uint64]*Node{}
	s.Allocations = newAllocations(env)
	s.Allocations.forest = &s.Forest
	s.Deadlines = newDeadlines()
	s.Queue = WaitQueue{Environment: env, Deadlines: &s.Deadlines, Forest: &s.Forest, Allocations: &s.Allocations}
	s.Queue.Dirty = heap.New(
		func(a, b *BlockerQueue) bool { return a.Next.Before(b.Next) },
		func(bq *BlockerQueue) *int { return &bq.At },
	)
	s.Inventory = newInventory(env)
	s.Inventory.Deadlines, s.Inventory.Forest = &s.Deadlines, &s.Forest
	s.Inventory.Allocations, s.Inventory.Queue = &s.Allocations, &s.Queue
	s.Calendar = Calendar{
		Environment: env, Journal: &s.Journal, forest: &s.Forest, queue: &s.Queue, Due: newDeadlines(),
	}
	s.Requests = LimitRequests{Environment: env, Deadlines: &s.Deadlines, Changed: map[uint64]uint64{}}
	s.Webhooks = Webhooks{Environment: env, journal: &s.Journal}
	return s
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

// Mode says whether a command is carried out.
type Mode uint8

const (
	// CarryOut decides a command and commits it.
	CarryOut Mode = iota
	// DryRun decides a command and leaves the ledger as it is.
	DryRun
)

// HasShare reports whether the caller is a user who may have only a part of what all users share. In an open ledger
// none is.
func (e *Environment) HasShare() bool {
	return e.Book.Mode() != access.Open && e.Caller.Who != nil && e.Caller.Who.IsUser()
}

// OwnerName is the owner of what the caller is granted.
func (e *Environment) OwnerName() string {
	user := e.Caller.User()
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

// Caller is who asks for the command that is being carried out. The zero value may do everything.
type Caller struct {
	// Who is nil if nothing is known of the caller.
	Who *access.Caller
	// Rights is nil if rights are not asked: in an open ledger, and for the ledger's own questions.
	Rights *access.Identity
	// refusal, in a watching ledger, is the first reason for which a guarded one would have refused the command.
	refusal *quota.Error
}

// identified is the last identity, because the commands behind each other are often of one caller. It is not part of
// the state.
type identified struct {
	caller *access.Caller
	book   *access.Book
	wall   int64
	id     *access.Identity
}

// holds is true if identifying the caller again would give the same identity. The same book accepts what it accepted
// until the token ends: its refusals end with time, and do not begin. An earlier time decides anew.
func (i *identified) holds(caller *access.Caller, book *access.Book, wall int64) bool {
	return i.caller == caller && i.book == book && wall >= i.wall && i.id.HoldsAt(wall)
}

// User is the name of the caller's user; empty if it is not known.
func (c *Caller) User() string {
	if c.Who == nil {
		return ""
	}
	return c.Who.User
}

// Namespace is that of the ids that the caller names without one: its user, or quota.DefaultNamespace.
func (c *Caller) Namespace() string {
	if user := c.User(); user != "" {
		return user
	}
	return quota.DefaultNamespace
}

// Name is the caller in refusals.
func (c *Caller) Name() string {
	switch {
	case c.Who == nil || c.Who.Kind == access.Anonymous:
		return "a caller without a credential"
	case c.Who.User == "":
		return c.Who.Kind.String()
	}
	return c.Who.User
}
