package ledger

import "github.com/quorate/quorate/quota"

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
}

// environment is what every component must know, and what a request can be checked against without any other state.
type environment struct {
	bounds quota.Bounds
	now    quota.Stamp
	level  uint32 // see SetLevel
	// restoring is true while a snapshot is read: then nothing is forgotten for its size, as it was not when it was written.
	restoring bool
}

// New returns an empty ledger that follows the newest rules.
func New(b quota.Bounds) *Ledger {
	l := &Ledger{environment: environment{bounds: b, level: quota.LevelFive}}
	env := &l.environment
	l.journal.environment = env
	l.history.environment = env
	l.history.requests = map[string]*quota.Revision{}
	l.forest.environment = env
	l.forest.trees = map[string]*tree{}
	l.allocations = newAllocations(env)
	l.queue = waitQueue{environment: env, deadlines: &l.deadlines, forest: &l.forest, allocations: &l.allocations}
	l.inventory = newInventory(env)
	l.inventory.deadlines, l.inventory.forest = &l.deadlines, &l.forest
	l.inventory.allocations, l.inventory.queue = &l.allocations, &l.queue
	return l
}

// Apply carries out one command at a point of ledger time and says what it did. A command is carried out whole or not
// at all. The outcome depends on nothing but the ledger, the stamp and the command.
func (l *Ledger) Apply(s quota.Stamp, c quota.Command) Outcome {
	l.advance(s)
	l.journal.facts = l.journal.facts[:0]
	out := l.execute(c, carryOut)
	l.finish()
	l.selfCheck()
	out.Now = l.now.At
	return out
}

// execute decides a command, and unless it is a dry run commits it. This is the only switch over all commands.
func (l *Ledger) execute(c quota.Command, m mode) Outcome {
	p := planner{l}
	switch c := c.(type) {
	case quota.Allocate:
		return l.allocate(c, m)
	case quota.Release:
		return l.release(c, m)
	case quota.Renew:
		return l.renew(c, m)
	case quota.UpdateItems:
		return l.updateItems(c, m)
	case quota.ResetItems:
		return l.resetItems(c, m)
	case quota.Confirm:
		return l.confirm(c, m)
	case quota.Cancel:
		return l.cancel(c, m)
	case quota.Expire:
		return l.expire(c, m)
	case quota.ApplyTrees:
		return p.configure(c.Meta, p.planTrees(c), m)
	case quota.SetLimits:
		return p.configure(c.Meta, p.planLimits(c), m)
	case quota.MoveNode:
		return p.configure(c.Meta, p.planMove(c), m)
	case quota.SetMaintenance:
		return p.configure(c.Meta, p.planMaintenance(c), m)
	case quota.RollBack:
		return p.configure(c.Meta, p.planRollBack(c), m)
	case quota.DeleteTree:
		return p.configure(c.Meta, p.planDelete(c), m)
	}
	panic("ledger: a command outside the closed list")
}

// advance moves ledger time, never back, and forgets a few tombstones whose span is over. It depends on the command
// sequence only, not on how commands were gathered into entries (I10).
func (l *Ledger) advance(s quota.Stamp) {
	l.now.At = max(l.now.At, s.At)
	l.now.Wall = s.Wall
	for range 2 {
		l.allocations.forgetOldest()
	}
}
