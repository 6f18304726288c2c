package quota

import (
	"maps"
	"slices"
	"strings"
)

// Policy is the replaceable rule set of a subtree: what unset means, which limits may be set, what happens to a claim
// at an unknown node. A policy is pure and never changes its mind: another behaviour is another name ("strict@2"), so
// that replicas of different versions agree. CONTRIBUTING.md shows how to add one.
type Policy interface {
	// Name is what configurations say.
	Name() string
	// Effective is the limit in force where set was configured. It never answers Unset.
	Effective(set Limit) Limit
	// CheckFamily reports what rule a node and its children would break for one resource, as a sentence with numbers,
	// or "". It is asked of the node's own policy whenever a limit of the family changes; all limits are effective.
	CheckFamily(f Family) string
	// AdmitsUnknown tells whether a claim at an unknown node is counted at its nearest known ancestor (Zuul's unknown
	// tenant) instead of refused.
	AdmitsUnknown() bool
}

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
}

// policies is the registration: one line each.
var policies = registry(open, strict)

func registry(all ...Policy) map[string]Policy {
	byName := make(map[string]Policy, len(all))
	for _, p := range all {
		byName[p.Name()] = p
	}
	return byName
}

// policyNames lists the registered policies for messages.
func policyNames() string {
	return strings.Join(slices.Sorted(maps.Keys(policies)), ", ")
}
