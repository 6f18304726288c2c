package admit

import (
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/ledger/internal/state"
	"github.com/quorate/quorate/quota/policy"
)

// assignGroups chooses the group of every claim of a new request, once for each tree, and binds the claims to their
// tracks. It changes nothing in the ledger.
func assignGroups(a *state.Allocation) {
	p := a.Principal()
	if p.User == "" {
		return
	}
	for i := range a.Claims {
		c := &a.Claims[i]
		c.EnsureDetails().Group = groupOf(a, i, p)
		c.TrackPrincipal(p)
	}
}

// groupOf returns the group that a claim counts for: that of the request's earlier claims in the tree, or that of the
// application if it holds anything there, or else the one that the nearest node from the home up chooses among the
// groups of the user (see chooseRules). It is empty if no node has a limit for one of them.
func groupOf(a *state.Allocation, i int, p quota.Principal) string {
	home := a.Claims[i].Home()
	for j := range a.Claims[:i] {
		if earlier := &a.Claims[j]; earlier.At.Tree == home.Tree {
			return earlier.Group()
		}
	}
	if group, fixed := home.Tree.Accounts.Member(p); fixed {
		return group
	}
	for n := home; n != nil && len(p.Groups) > 0; n = n.Parent {
		if group, decided := chooseRules(n.Rules, p.Groups); decided {
			return group
		}
	}
	return ""
}

// checkPrincipals returns the limits of users, groups and applications that the allocation would exceed: claims in the
// order of the request, levels from the home up to the root, at each the user's, then the group's, then the node's own
// limit of applications. Several claims at one level are added up. Forced claims are ignored.
func checkPrincipals(e *state.Environment, a *state.Allocation) []quota.Violation {
	p := a.Principal()
	if p.User == "" {
		return nil
	}
	var violations []quota.Violation
	if sharesNoNode(a.Claims) {
		for i := range a.Claims {
			c := &a.Claims[i]
			if c.IsForced() {
				continue
			}
			s := standingsAt(c, p, e.AskerFor(a))
			for n := c.Home(); n != nil; n = n.Parent {
				violations = s.check(violations, n, c.Amounts)
			}
		}
		return violations
	}
	var last *state.Tree
	var s standings
	for _, d := range DemandsOf(a.Claims, (*state.PlacedClaim).Home) {
		if d.Node.Tree != last {
			last, s = d.Node.Tree, StandingsOf(a, p, d.Node.Tree, e.AskerFor(a))
		}
		if !s.forced {
			violations = s.check(violations, d.Node, d.Amounts)
		}
	}
	return violations
}

// standings are the usage of a principal in one tree, level by level.
type standings struct {
	User, Group Standing
	application string
	forced      bool
	asker       state.Asker
}

func StandingsOf(a *state.Allocation, p quota.Principal, t *state.Tree, asker state.Asker) standings {
	for i := range a.Claims {
		if c := &a.Claims[i]; c.At.Tree == t {
			return standingsAt(c, p, asker)
		}
	}
	return standings{}
}

func standingsAt(c *state.PlacedClaim, p quota.Principal, asker state.Asker) standings {
	acc, group := &c.At.Tree.Accounts, c.Group()
	s := standings{
		asker: asker, application: p.Application, forced: c.IsForced(),
		User: Standing{Holder: quota.Holder{Kind: quota.AUser, Name: p.User}, holder: acc.Users[p.User]},
	}
	if group != "" {
		s.Group = Standing{Holder: quota.Holder{Kind: quota.AGroup, Name: group}, holder: acc.Groups[group]}
	}
	return s
}

// check appends to violations.
func (s *standings) check(violations []quota.Violation, n *state.Node, amounts []state.PlacedAmount) []quota.Violation {
	if n.Rules == nil && !n.Spec.Applications.HasAmount() {
		return violations
	}
	violations = s.User.check(violations, n, amounts, s.application)
	violations = s.behind(violations, n, &s.User, amounts)
	if s.Group.Name != "" {
		violations = s.Group.check(violations, n, amounts, s.application)
		violations = s.behind(violations, n, &s.Group, amounts)
	}
	if s.application == "" || s.User.At(n).Has(s.application) {
		return violations
	}
	if most := n.Spec.Applications; !most.Allows(quota.Amount(n.Applications) + 1) {
		violations = append(violations, quota.Violation{
			Tree: n.TreeName, Node: n.Path, Kind: quota.OfApplications, Limit: most.Amount,
			Used: quota.Amount(n.Applications), Requested: 1,
		})
	}
	if n.Queues == nil || n.Borrows == policy.BorrowSoft { // with soft borrowing the queues were checked already
		return violations
	}
	return s.asker.OvertakeViolations(violations, n.Queues, state.Blocker{Tree: n.Tree, Node: n})
}

func (s *standings) behind(violations []quota.Violation, n *state.Node, standing *Standing,
	amounts []state.PlacedAmount,
) []quota.Violation {
	if n.Queues == nil {
		return violations
	}
	for _, p := range amounts {
		if p.Amount > 0 {
			violations = s.asker.OvertakeViolations(violations, n.Queues,
				state.Blocker{Tree: n.Tree, Node: n, Resource: p.Resource, Holder: standing.Holder})
		}
	}
	if s.application == "" || standing.At(n).Has(s.application) {
		return violations
	}
	return s.asker.OvertakeViolations(violations, n.Queues, state.Blocker{Tree: n.Tree, Node: n, Holder: standing.Holder})
}

// Standing is the usage of one holder in a tree; it caches the last level.
type Standing struct {
	quota.Holder
	holder *state.Holder // nil if it holds nothing
	last   *state.Holding
}

// At is the holding at a node; nil if there is none.
func (s *Standing) At(n *state.Node) *state.Holding {
	switch {
	case s.holder == nil:
		return nil
	case s.last != nil && s.last.Node == n:
	case s.last != nil && s.last.Up != nil && s.last.Up.Node == n:
		s.last = s.last.Up
	default:
		s.last = s.holder.At[n]
	}
	return s.last
}

func (s *Standing) check(violations []quota.Violation, n *state.Node, amounts []state.PlacedAmount,
	application string,
) []quota.Violation {
	h := s.At(n)
	rule := h.RuleAt(n, s.Holder)
	if rule == nil {
		return violations
	}
	for _, p := range amounts {
		used, most := h.Uses(p.Resource.Index), rule.Most[p.Resource.Index]
		if p.Amount > 0 && (used+p.Amount > most || p.Amount > quota.MaxAmount) {
			violations = append(violations, quota.Violation{
				Tree: n.TreeName, Node: n.Path, Resource: p.Resource.Name, Limit: most, Used: used, Requested: p.Amount,
				Holder: s.Holder,
			})
		}
	}
	running := h.Running()
	if application == "" || rule.Applications.Allows(running+1) || h.Has(application) {
		return violations
	}
	return append(violations, quota.Violation{
		Tree: n.TreeName, Node: n.Path, Kind: quota.OfApplications, Holder: s.Holder, Limit: rule.Applications.Amount,
		Used: running, Requested: 1,
	})
}
