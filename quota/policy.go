package quota

import (
	"maps"
	"slices"
	"strings"
)

// Policy is the replaceable rule set of a subtree: what unset means, which limits may be set and by whom, what happens to
// a claim at an unknown node, what may be borrowed and who may be preempted. A policy is pure and never changes its mind:
// another behaviour is another name ("strict@2"), so that replicas of different versions agree. CONTRIBUTING.md shows how
// to add one; most are values of [Switches].
type Policy interface {
	// Name is what configurations say.
	Name() string
	// Effective is the limit in force where set was configured and fallback is the default that the nearest ancestor
	// gives, or Unset. It never answers Unset.
	Effective(set, fallback Limit) Limit
	// CheckFamily reports what rule a node and its children would break for one resource, as a sentence with numbers,
	// or "". It is asked of the node's own policy whenever a limit of the family changes; all limits are effective.
	CheckFamily(f Family) string
	// Unknown says what becomes of a claim at a node that does not exist.
	Unknown() UnknownRule
	// LeavesOnly refuses claims at nodes that have children.
	LeavesOnly() bool
	// Borrowing says how claims of the subtree may go beyond the limits of their nodes.
	Borrowing() Borrowing
	// Preemption says whom a claim may push out.
	Preemption() Preemption
	// Setters says whose admins may set a node's limits.
	Setters() Setters
}

// UnknownRule says what becomes of a claim at a node that does not exist; the nearest known ancestor's policy decides.
type UnknownRule uint8

// The closed list of rules.
const (
	// RefuseUnknown refuses the request.
	RefuseUnknown UnknownRule = iota
	// UnknownToAncestor counts it at the nearest known ancestor (Zuul's unknown tenant).
	UnknownToAncestor
	// MakeUnknown makes the nodes that lack, with the defaults, for as long as something is held there (Keystone's project
	// without a limit of its own).
	MakeUnknown
)

// Borrowing says how claims may go beyond the limits of their nodes.
type Borrowing uint8

// The closed list of ways.
const (
	// BorrowNothing holds every claim to every limit on its path.
	BorrowNothing Borrowing = iota
	// BorrowSoftly counts a claim at the lowest node from which everything up to the top has room, or can be given room
	// (seed 004, soft nodes).
	BorrowSoftly
	// BorrowBounded lets a node hold more than its limit, up to a bound, as far as others lend (Kueue's cohorts).
	BorrowBounded
)

// Preemption is a set of reasons to push others out. Only soft borrowing knows them.
type Preemption uint8

const (
	// PreemptLower pushes out claims of lower priority.
	PreemptLower Preemption = 1 << iota
	// PreemptBorrowers pushes out whoever borrows what the owner of a share claims, whatever the priority.
	PreemptBorrowers
	// PreemptNobody is the empty set.
	PreemptNobody Preemption = 0
)

// Setters says whose admins may set a node's limits, in a tree that names admins.
type Setters uint8

// The closed list of answers.
const (
	// SetByAncestors: those of any ancestor.
	SetByAncestors Setters = iota
	// SetByParent: those of the parent only (CERN).
	SetByParent
)

// Family is a node with its children, as far as one resource is concerned.
type Family struct {
	// Limit of the node, Own what is held at the node itself.
	Limit Limit
	Own   Amount
	// Children are the children's limits by name.
	Children []ChildLimit
}

// ChildLimit is the limit of one child.
type ChildLimit struct {
	Name  string
	Limit Limit
	// Set is true if the child has a limit of its own.
	Set bool
}

// policies is the registration: one line each.
var policies = registry(
	open,
	strict,
	capped,
	project,
	nested,
	borrowing,
	cohort,
)

// registry panics if policies contradict themselves or each other: a mistake of whoever wrote them.
func registry(all ...Policy) map[string]Policy {
	byName := make(map[string]Policy, len(all))
	for _, p := range all {
		if s, ok := p.(Switches); ok {
			if text := s.contradiction(); text != "" {
				panic("quota: policy " + p.Name() + ": " + text)
			}
		}
		if byName[p.Name()] != nil {
			panic("quota: two policies are named " + p.Name())
		}
		byName[p.Name()] = p
	}
	return byName
}

// policyNames lists the registered policies for messages.
func policyNames() string {
	return strings.Join(slices.Sorted(maps.Keys(policies)), ", ")
}
