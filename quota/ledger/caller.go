package ledger

import (
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
)

// guard decides whether the caller may give a command, and carries out the commands about access.
type guard struct {
	*callerRights

	forest      *forest
	allocations *allocations
	queue       *waitQueue
	calendar    *calendar
	history     *history
	journal     *journal
	requests    *limitRequests
	webhooks    *webhooks
	reserved    *access.ReservedIDs
	// plans computes and installs changes of the configuration, of which some commands about access consist.
	plans planner
}

// guard decides about the caller of the present command.
func (l *Ledger) guard() guard { return l.guardFor(&l.rights) }

// guardFor decides about a caller: that of the present command, or one who only asks.
func (l *Ledger) guardFor(rights *callerRights) guard {
	return guard{
		callerRights: rights, forest: &l.forest, allocations: &l.allocations, queue: &l.queue, calendar: &l.calendar,
		history: &l.history, journal: &l.journal, requests: &l.requests, webhooks: &l.webhooks, reserved: &l.reserved,
		plans: planner{l},
	}
}

// needVerb refuses a caller without a verb at a place, which need not exist. It says what is missing only to callers
// who have some right there; for others the place is one that does not exist.
func (g guard) needVerb(verb access.Verb, tree, path, field string) *quota.Error {
	n := g.forest.nearestNode(tree, path)
	switch {
	case g.may(verb, n):
		return nil
	case n == nil || !g.sees(n):
		return lackingVerb(g.hiddenPlace(tree, path, field), verb, n)
	}
	return g.lacksVerb(verb, n, quota.Place(tree, path), field)
}
