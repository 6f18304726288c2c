package permit

import (
	"github.com/quorate/quorate/internal/access"
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/configure"
	"github.com/quorate/quorate/quota/ledger/internal/state"
)

// Guard decides whether the caller may give a command, and carries out the commands about access.
type Guard struct {
	*state.CallerRights

	forest      *state.Forest
	allocations *state.Allocations
	queue       *state.WaitQueue
	calendar    *state.Calendar
	history     *state.History
	journal     *state.Journal
	requests    *state.LimitRequests
	webhooks    *state.Webhooks
	// plans computes and installs changes of the configuration, of which some commands about access consist.
	plans configure.Planner
}

// NewGuard decides about the caller of the present command.
func NewGuard(s *state.State) Guard { return GuardFor(s, &s.Rights) }

// GuardFor decides about a caller: that of the present command, or one who only asks.
func GuardFor(s *state.State, rights *state.CallerRights) Guard {
	return Guard{
		CallerRights: rights, forest: &s.Forest, allocations: &s.Allocations, queue: &s.Queue, calendar: &s.Calendar,
		history: &s.History, journal: &s.Journal, requests: &s.Requests, webhooks: &s.Webhooks,
		plans: configure.Planner{State: s},
	}
}

// needVerb refuses a caller without a verb at a place, which need not exist. It says what is missing only to callers
// who have some right there; for others the place is one that does not exist.
func (g Guard) needVerb(verb access.Verb, tree, path, field string) *quota.Error {
	n := g.forest.NearestNode(tree, path)
	switch {
	case g.May(verb, n):
		return nil
	case n == nil || !g.Sees(n):
		return state.LackingVerb(g.HiddenPlace(tree, path, field), verb, n)
	}
	return g.LacksVerb(verb, n, quota.Place(tree, path), field)
}
