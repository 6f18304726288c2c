// Package policy has the replaceable rules of quota trees, as values.
//
// A [Policy] is a set of independent choices; [Presets] has one for each system that Quorate models, and
// [Registry.Define] makes one of a definition in a configuration, whose words are those of [Switches].
// [Policy.CheckFamily] checks the limits of a node against those of its children.
package policy

import "github.com/quorate/quorate/quota"

// Policy is the replaceable rule set of a subtree, as a value of independent choices: the meaning of unset limits,
// which limits may be set, how claims at unknown nodes are handled, what may be borrowed and which claims
// may be preempted.
//
// A policy is pure, and a built-in one never changes: different behaviour needs a different name ("strict@2"),
// because replicas of different versions must agree. CONTRIBUTING.md shows how to add one.
type Policy struct {
	// Name is the name used in configurations; it follows the rules for names of nodes.
	Name string
	// Unset is the meaning of an unset limit where no ancestor gives a default: NoLimit(), or AtMost(0) (CERN: a new child
	// starts at zero). Its kind is never quota.Unset.
	Unset quota.Limit
	// Sum bounds the sum of the children's limits.
	Sum SumRule
	// ChildWithinParent bounds each limit that a child has of its own by its parent's. An unset one is always bounded by
	// the parent, whatever the default is (Keystone: the lesser of default and parent).
	ChildWithinParent bool
	// FamilyRule, if not nil, is a further rule for a node and its children. It returns a sentence or "", like
	// [Policy.CheckFamily], and depends on nothing but its argument.
	FamilyRule func(Family) string
	// UnknownNodes determines how a claim at a node that does not exist is handled.
	UnknownNodes UnknownRule
	// LeavesOnly refuses claims at nodes that have children.
	LeavesOnly bool
	// Borrowing determines how claims of the subtree may exceed the limits of their nodes.
	Borrowing Borrowing
	// Preemption determines which claims a new one may end. It needs BorrowSoft.
	Preemption Preemption
}

// SumRule bounds the sum of the children's limits by their parent's limit.
type SumRule uint8

// The closed list of rules. The sources differ on whether a node's own use counts; see docs/adr/0013.
const (
	// SumUnbounded allows overcommitment.
	SumUnbounded SumRule = iota
	// SumWithinLimit: at most the parent's limit (CERN).
	SumWithinLimit
	// SumWithinLimitLessOwn: at most the parent's limit less what the parent holds itself (Nova's nested quota).
	SumWithinLimitLessOwn
)

// UnknownRule determines how a claim at a node that does not exist is handled; the policy of the nearest existing
// ancestor decides.
type UnknownRule uint8

// The closed list of rules.
const (
	// RefuseUnknown refuses the request.
	RefuseUnknown UnknownRule = iota
	// CountAtAncestor counts the claim at the nearest existing ancestor (Zuul's unknown tenant).
	CountAtAncestor
	// CreateUnknown creates the missing nodes, with the defaults, for as long as they hold something (Keystone's project
	// without a limit of its own).
	CreateUnknown
)

// Borrowing determines how claims may exceed the limits of their nodes.
type Borrowing uint8

// The closed list of ways.
const (
	// BorrowNothing applies every limit on a claim's path.
	BorrowNothing Borrowing = iota
	// BorrowSoft counts a claim at the lowest node from which every node up to the top has capacity, or can be given
	// capacity (the soft nodes of the quota-manager).
	BorrowSoft
	// BorrowBounded lets a node exceed its limit, up to a bound, by what others lend (Kueue's cohorts).
	BorrowBounded
)

// Preemption is a set of reasons to end other claims. It applies only under soft borrowing.
type Preemption uint8

const (
	// PreemptLower ends claims of lower priority.
	PreemptLower Preemption = 1 << iota
	// PreemptBorrowers ends claims that borrow from the share of another node when a claim of that node needs it, whatever
	// the priority.
	PreemptBorrowers
	// PreemptNone is the empty set.
	PreemptNone Preemption = 0
)

// Effective is the limit in force, given the configured limit and the default of the nearest ancestor that has one, or
// Unset. The result is never Unset.
func (p *Policy) Effective(set, fallback quota.Limit) quota.Limit {
	switch {
	case set.Kind != quota.Unset:
		return set
	case fallback.Kind != quota.Unset:
		return fallback
	}
	return p.Unset
}

// contradiction returns "" if there is none.
func (p *Policy) contradiction() string {
	switch {
	case !quota.IsName(p.Name):
		return "it needs a name like those of nodes"
	case p.Unset.Kind == quota.Unset:
		return "Unset must say what an unset limit means: NoLimit() or an amount"
	case p.Sum > SumWithinLimitLessOwn || p.UnknownNodes > CreateUnknown || p.Borrowing > BorrowBounded ||
		p.Preemption&^(PreemptLower|PreemptBorrowers) != 0:
		return "a choice is outside of its closed list"
	}
	if e := p.excluded(); e != nil {
		return e.describe(p, func(*Switch) string { return "" })
	}
	return ""
}
