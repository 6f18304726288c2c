package access

import (
	"cmp"
	"slices"
)

// Binding gives a role to subjects, at a node and everything below it, or on the cluster and in all trees. Rights only
// add: no binding takes away what another one gives.
type Binding struct {
	// Role is the name of a built-in or custom role.
	Role string
	// To has 1 to MaxSubjects subjects; sorted and unique in canonical form.
	To []Subject
	// MaxPriority is the highest priority of claims. It needs a role with hold, like Unpreemptable.
	MaxPriority int64
	// Unpreemptable allows claims that are never preempted.
	Unpreemptable bool
	// HoldAs says for whom the subjects may hold; it needs a role with hold.as.
	HoldAs Holders
	// Until is the wall time, in milliseconds since 1970, from which the binding gives nothing; 0 is never.
	Until int64
}

// Holders says for whom a subject may hold: for any user, for the named users and groups, or only for itself.
type Holders struct {
	Any bool
	// Names are sorted and unique in canonical form, and empty if Any is true.
	Names []string
}

func (h Holders) isEmpty() bool { return !h.Any && len(h.Names) == 0 }

// Allow reports whether name is among the holders.
func (h Holders) Allow(name string) bool { return h.Any || slices.Contains(h.Names, name) }

// Scope says where a binding stands.
type Scope uint8

// The closed list of scopes.
const (
	// NodeScope is a node with everything below it.
	NodeScope Scope = iota + 1
	// ClusterScope is the cluster with all trees.
	ClusterScope
)

// Verbs are those that a binding of the scope can give: a binding at a node gives no verb of the cluster, although its
// role may have some.
func (s Scope) Verbs() Verbs {
	if s == ClusterScope {
		return AllVerbs
	}
	return NodeVerbs
}

// Canonical returns a copy with sorted lists without duplicates. Two bindings that give the same to the same subjects
// in the same words have equal canonical forms.
func (b Binding) Canonical() Binding {
	b.To = canonicalSubjects(b.To)
	b.HoldAs.Names = canonicalNames(b.HoldAs.Names)
	return b
}

// CanonicalBindings returns a sorted copy of a list with canonical elements and without duplicates.
func CanonicalBindings(list []Binding) []Binding {
	sorted := cloneList(list)
	for i := range sorted {
		sorted[i] = sorted[i].Canonical()
	}
	slices.SortFunc(sorted, Binding.Compare)
	return slices.CompactFunc(sorted, func(a, b Binding) bool { return a.Compare(b) == 0 })
}

// Compare orders canonical bindings by role, subjects and the rest. It returns 0 for equal bindings only.
func (b Binding) Compare(other Binding) int {
	return cmp.Or(
		cmp.Compare(b.Role, other.Role),
		slices.CompareFunc(b.To, other.To, Subject.Compare),
		b.compareTerms(other),
	)
}

func (b Binding) compareTerms(other Binding) int {
	return cmp.Or(
		cmp.Compare(b.Role, other.Role),
		cmp.Compare(b.MaxPriority, other.MaxPriority),
		compareBools(b.Unpreemptable, other.Unpreemptable),
		compareBools(b.HoldAs.Any, other.HoldAs.Any),
		slices.Compare(b.HoldAs.Names, other.HoldAs.Names),
		cmp.Compare(b.Until, other.Until),
	)
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// AddedBindings returns what after gives beyond before: each binding of after with the subjects to which no binding of
// before gives the same role on the same terms. Both lists are canonical. Other terms are an addition, even lower ones.
func AddedBindings(before, after []Binding) []Binding {
	var added []Binding
	for _, b := range after {
		b.To = slices.DeleteFunc(slices.Clone(b.To), func(s Subject) bool {
			return slices.ContainsFunc(before, func(old Binding) bool {
				return old.compareTerms(b) == 0 && slices.Contains(old.To, s)
			})
		})
		if len(b.To) > 0 {
			added = append(added, b)
		}
	}
	return added
}
