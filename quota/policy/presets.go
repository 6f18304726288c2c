package policy

import (
	"maps"
	"slices"
	"strings"

	"github.com/quorate/quorate/quota"
)

// presets are the built-in policies. They are validated at program start.
var presets = MustRegistry(
	// open models Zuul's tenant limits: an unset limit is unlimited, limits are not related to each other, and a claim at
	// an unknown node is admitted and counted at its nearest existing ancestor.
	&Policy{Name: "open", Unset: quota.NoLimit(), UnknownNodes: CountAtAncestor},

	// strict is CERN's nested quotas: a new child starts at zero, the children's limits add up to at most their parent's,
	// a limit may go below usage, and unknown nodes are refused.
	&Policy{Name: "strict", Unset: quota.AtMost(0), Sum: SumWithinLimit},

	// nested models Nova's nested quota: a new child starts at zero, and the node's own usage reduces what it may give to
	// its children.
	&Policy{Name: "nested", Unset: quota.AtMost(0), Sum: SumWithinLimitLessOwn},

	// capped is Keystone's strict two-level model at any depth: a limit is at most its parent's, siblings may overcommit,
	// an unset limit is bounded by the parent and by a default from above, and unknown nodes are refused.
	&Policy{Name: "capped", Unset: quota.NoLimit(), ChildWithinParent: true},

	// project is capped for projects that are not configured individually, as in Keystone's registered limits: a claim at
	// an unknown node creates it, with the defaults.
	&Policy{Name: "project", Unset: quota.NoLimit(), ChildWithinParent: true, UnknownNodes: CreateUnknown},

	// borrowing models the quota-manager of the Multi-Cluster App Dispatcher: claims are made at leaves and counted there
	// or, while a leaf is full, further up. A claim within the share of its own node reclaims it from borrowers, and a
	// higher priority preempts a lower one. An unset limit is zero.
	&Policy{
		Name: "borrowing", Unset: quota.AtMost(0), LeavesOnly: true, Borrowing: BorrowSoft,
		Preemption: PreemptLower | PreemptBorrowers,
	},

	// cohort models Kueue's cohorts: a node may exceed its limit up to its own bound and what others lend. An unset limit
	// is zero, so such a node uses only what is lent; unset bounds are unlimited. Nothing is preempted.
	&Policy{Name: "cohort", Unset: quota.AtMost(0), Borrowing: BorrowBounded},
)

// Registry finds policies by name.
type Registry map[string]*Policy

// MustRegistry registers policies. It panics if one contradicts itself or two have the same name: both are mistakes in
// the program, not in its input.
func MustRegistry(all ...*Policy) Registry {
	byName := make(Registry, len(all))
	for _, p := range all {
		if text := p.contradiction(); text != "" {
			panic("policy " + p.Name + ": " + text)
		}
		if byName[p.Name] != nil {
			panic("two policies are named " + p.Name)
		}
		byName[p.Name] = p
	}
	return byName
}

// Presets are the policies of every Quorate server. The map must not be changed.
func Presets() Registry { return presets }

// Names lists the registered policies in alphabetical order, for messages.
func (r Registry) Names() string {
	return strings.Join(slices.Sorted(maps.Keys(r)), ", ")
}
