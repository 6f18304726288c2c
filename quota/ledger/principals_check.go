package ledger

import (
	"github.com/quorate/quorate/quota"
	"github.com/quorate/quorate/quota/policy"
)

// assignGroups chooses the group of every claim of a new request, once for each tree, and binds the claims to their
// tracks. It changes nothing in the ledger.
func (a *Allocation) assignGroups() {
	p := a.principal()
	if p.User == "" {
		return
	}
	for i := range a.claims {
		c := &a.claims[i]
		c.ensureDetails().group = a.groupOf(i, p)
		c.trackPrincipal(p)
	}
}

// groupOf returns the group that a claim counts for: that of the request's earlier claims in the tree, or that of the
// application if it holds anything there, or else the one that the nearest node from the home up chooses among the
// groups of the user (see rules.choose). It is empty if no node has a limit for one of them.
func (a *Allocation) groupOf(i int, p quota.Principal) string {
	home := a.claims[i].home()
	for j := range a.claims[:i] {
		if earlier := &a.claims[j]; earlier.at.tree == home.tree {
			return earlier.group()
		}
	}
	if group, fixed := home.tree.accounts.member(p); fixed {
		return group
	}
	for n := home; n != nil && len(p.Groups) > 0; n = n.parent {
		if group, decided := n.rules.choose(p.Groups); decided {
			return group
		}
	}
	return ""
}

// checkPrincipals returns the limits of users, groups and applications that the allocation would exceed: claims in the
// order of the request, levels from the home up to the root, at each the user's, then the group's, then the node's own
// limit of applications. Several claims at one level are added up. Forced claims are ignored.
func (e *environment) checkPrincipals(a *Allocation) []quota.Violation {
	p := a.principal()
	if p.User == "" {
		return nil
	}
	var violations []quota.Violation
	if sharesNoNode(a.claims) {
		for i := range a.claims {
			c := &a.claims[i]
			if c.isForced() {
				continue
			}
			s := c.standings(p, e.askerFor(a))
			for n := c.home(); n != nil; n = n.parent {
				violations = s.check(violations, n, c.amounts)
			}
		}
		return violations
	}
	var last *tree
	var s standings
	for _, d := range demandsOf(a.claims, (*placedClaim).home) {
		if d.node.tree != last {
			last, s = d.node.tree, a.standings(p, d.node.tree, e.askerFor(a))
		}
		if !s.forced {
			violations = s.check(violations, d.node, d.amounts)
		}
	}
	return violations
}

// standings are the usage of a principal in one tree, level by level.
type standings struct {
	user, group standing
	application string
	forced      bool
	by          asker
}

func (a *Allocation) standings(p quota.Principal, t *tree, by asker) standings {
	for i := range a.claims {
		if c := &a.claims[i]; c.at.tree == t {
			return c.standings(p, by)
		}
	}
	return standings{}
}

func (c *placedClaim) standings(p quota.Principal, by asker) standings {
	acc, group := &c.at.tree.accounts, c.group()
	s := standings{
		by: by, application: p.Application, forced: c.isForced(),
		user: standing{Holder: quota.Holder{Kind: quota.AUser, Name: p.User}, of: acc.users[p.User]},
	}
	if group != "" {
		s.group = standing{Holder: quota.Holder{Kind: quota.AGroup, Name: group}, of: acc.groups[group]}
	}
	return s
}

// check appends the violations at one node.
func (s *standings) check(violations []quota.Violation, n *node, amounts []placedAmount) []quota.Violation {
	if n.rules == nil && n.spec.Applications == 0 {
		return violations
	}
	violations = s.user.check(violations, n, amounts, s.application)
	violations = s.behind(violations, n, &s.user, amounts)
	if s.group.Name != "" {
		violations = s.group.check(violations, n, amounts, s.application)
		violations = s.behind(violations, n, &s.group, amounts)
	}
	if s.application == "" || s.user.at(n).has(s.application) {
		return violations
	}
	if most := n.spec.Applications; most > 0 && quota.Amount(n.applications) >= most {
		violations = append(violations, quota.Violation{
			Tree: n.treeName, Node: n.path, Kind: quota.OfApplications, Limit: most,
			Used: quota.Amount(n.applications), Requested: 1,
		})
	}
	if n.queues == nil || n.borrows == policy.BorrowSoft { // with soft borrowing the queues were checked already
		return violations
	}
	return s.by.overtakeViolations(violations, n.queues, blocker{tree: n.tree, node: n})
}

// behind appends the requests for capacity of a user or group at a node that must not be overtaken.
func (s *standings) behind(violations []quota.Violation, n *node, of *standing,
	amounts []placedAmount,
) []quota.Violation {
	if n.queues == nil {
		return violations
	}
	for _, p := range amounts {
		if p.amount > 0 {
			violations = s.by.overtakeViolations(violations, n.queues,
				blocker{tree: n.tree, node: n, resource: p.resource, holder: of.Holder})
		}
	}
	if s.application == "" || of.at(n).has(s.application) {
		return violations
	}
	return s.by.overtakeViolations(violations, n.queues, blocker{tree: n.tree, node: n, holder: of.Holder})
}

// standing is the usage of one holder in a tree; it caches the last level.
type standing struct {
	quota.Holder
	of   *holder // nil if it holds nothing
	last *holding
}

// at is the holding at a node; nil if there is none.
func (s *standing) at(n *node) *holding {
	switch {
	case s.of == nil:
		return nil
	case s.last != nil && s.last.node == n:
	case s.last != nil && s.last.up != nil && s.last.up.node == n:
		s.last = s.last.up
	default:
		s.last = s.of.at[n]
	}
	return s.last
}

func (s *standing) check(violations []quota.Violation, n *node, amounts []placedAmount,
	application string,
) []quota.Violation {
	h := s.at(n)
	rule := h.ruleAt(n, s.Holder)
	if rule == nil {
		return violations
	}
	for _, p := range amounts {
		used, most := h.uses(p.resource.index), rule.most[p.resource.index]
		if p.amount > 0 && (used+p.amount > most || p.amount > quota.MaxAmount) {
			violations = append(violations, quota.Violation{
				Tree: n.treeName, Node: n.path, Resource: p.resource.Name, Limit: most, Used: used, Requested: p.amount,
				Holder: s.Holder,
			})
		}
	}
	running := h.running()
	if rule.Applications == 0 || application == "" || running < rule.Applications || h.has(application) {
		return violations
	}
	return append(violations, quota.Violation{
		Tree: n.treeName, Node: n.path, Kind: quota.OfApplications, Holder: s.Holder, Limit: rule.Applications,
		Used: running, Requested: 1,
	})
}

// has reports whether an application runs.
func (h *holding) has(application string) bool { return h != nil && h.runs[application] != nil }
