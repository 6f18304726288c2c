// Package policy holds the replaceable rules of quota trees, as values.
//
// A [Policy] is a set of independent choices; [Presets] has one for each system that Quorate models, and
// [Policy.CheckFamily] is the rule that a node's limits must keep towards its children's.
package policy

import "github.com/quorate/quorate/quota"

// Policy is the replaceable rule set of a subtree, as a value of independent choices: what unset means, which limits may
// be set and by whom, what happens to a claim at an unknown node, what may be borrowed and who may be preempted.
//
// A policy is pure, and a registered one never changes: another behaviour is another name ("strict@2"), so that replicas
// of different versions agree. CONTRIBUTING.md shows how to add one.
type Policy struct {
	// Name is what configurations say; a name like those of nodes.
	Name string
	// Unset is what an unset limit means where no ancestor gives a default: NoLimit(), or AtMost(0) (CERN: a new child
	// starts at zero). It is never Unset itself.
	Unset quota.Limit
	// Sum bounds the sum of the children's limits.
	Sum SumRule
	// ChildWithinParent bounds each limit that a child has of its own by its parent's. An unset one is bounded by the
	// parent anyway, whatever the default says (Keystone: the lesser of default and parent).
	ChildWithinParent bool
	// FamilyRule, if not nil, is a further rule for a node and its children. It returns a sentence or "", like
	// [Policy.CheckFamily], and depends on nothing but its argument.
	FamilyRule func(Family) string
	// UnknownNodes says what happens to a claim at a node that does not exist.
	UnknownNodes UnknownRule
	// LeavesOnly refuses claims at nodes that have children.
	LeavesOnly bool
	// Borrowing says how claims of the subtree may go beyond the limits of their nodes.
	Borrowing Borrowing
	// Preemption says which claims a new one may end. It needs BorrowSoft.
	Preemption Preemption
	// LimitSetters says whose admins may set a node's limits.
	LimitSetters LimitSetters
}

// SumRule says how the children's limits add up against their parent's.
type SumRule uint8

// The closed list of rules. The sources differ on whether a node's own use counts; see docs/adr/0013.
const (
	// SumUnbounded allows overbooking.
	SumUnbounded SumRule = iota
	// SumWithinLimit: at most the parent's limit (CERN).
	SumWithinLimit
	// SumWithinLimitLessOwn: at most the parent's limit less what the parent holds itself (Nova's nested quota).
	SumWithinLimitLessOwn
)

// UnknownRule says what happens to a claim at a node that does not exist; the nearest known ancestor's policy decides.
type UnknownRule uint8

// The closed list of rules.
const (
	// RefuseUnknown refuses the request.
	RefuseUnknown UnknownRule = iota
	// CountAtAncestor counts it at the nearest known ancestor (Zuul's unknown tenant).
	CountAtAncestor
	// CreateUnknown creates the missing nodes, with the defaults, for as long as something is held there (Keystone's
	// project without a limit of its own).
	CreateUnknown
)

// Borrowing says how claims may go beyond the limits of their nodes.
type Borrowing uint8

// The closed list of ways.
const (
	// BorrowNothing holds every claim to every limit on its path.
	BorrowNothing Borrowing = iota
	// BorrowSoft counts a claim at the lowest node from which everything up to the top has capacity, or can be given
	// capacity (the soft nodes of the quota-manager).
	BorrowSoft
	// BorrowBounded lets a node hold more than its limit, up to a bound, as far as others lend (Kueue's cohorts).
	BorrowBounded
)

// Preemption is a set of reasons to end other claims. Only soft borrowing knows them.
type Preemption uint8

const (
	// PreemptLower ends claims of lower priority.
	PreemptLower Preemption = 1 << iota
	// PreemptBorrowers ends claims that borrow what the owner of a share claims, whatever the priority.
	PreemptBorrowers
	// PreemptNone is the empty set.
	PreemptNone Preemption = 0
)

// LimitSetters says whose admins may set a node's limits, in a tree that names admins.
type LimitSetters uint8

// The closed list of answers.
const (
	// SetByAncestors: those of any ancestor.
	SetByAncestors LimitSetters = iota
	// SetByParent: those of the parent only (CERN).
	SetByParent
)

// Effective is the limit in force where set was configured and fallback is the default that the nearest ancestor gives,
// or Unset. The result is never Unset.
func (p *Policy) Effective(set, fallback quota.Limit) quota.Limit {
	switch {
	case set.Kind != quota.Unset:
		return set
	case fallback.Kind != quota.Unset:
		return fallback
	}
	return p.Unset
}

// contradiction says which choices exclude each other, or "". It is asked when a policy is registered.
func (p *Policy) contradiction() string {
	soft := p.Borrowing == BorrowSoft
	switch {
	case !quota.IsName(p.Name):
		return "it needs a name like those of nodes"
	case p.Unset.Kind == quota.Unset:
		return "Unset must say what an unset limit means: NoLimit() or an amount"
	case p.Sum > SumWithinLimitLessOwn || p.UnknownNodes > CreateUnknown || p.Borrowing > BorrowBounded ||
		p.LimitSetters > SetByParent || p.Preemption&^(PreemptLower|PreemptBorrowers) != 0:
		return "a choice is outside of its closed list"
	case p.Preemption != PreemptNone && !soft:
		return "Preemption needs BorrowSoft: elsewhere only limits stand in the way of a claim"
	case p.UnknownNodes == CreateUnknown && p.Sum != SumUnbounded:
		return "CreateUnknown needs SumUnbounded: a node that a claim creates would change a sum of limits that is checked only in configurations"
	case p.UnknownNodes == CreateUnknown && p.LeavesOnly:
		return "CreateUnknown excludes LeavesOnly: a claim below a leaf would make it an inner node, with claims"
	case p.UnknownNodes == CreateUnknown && soft:
		return "CreateUnknown excludes BorrowSoft: a node would be removed while claims are counted above it"
	}
	return ""
}
