package access

import (
	"math"
	"strings"
)

// Path is the places whose bindings count for a node: the tables of the node itself, of its parent and so on up to the
// root of the tree, and at last the table of the cluster. Tables may be nil; the cluster is always there, so a path has
// at least one element. The path of the cluster is the cluster alone.
type Path []*Table

func (p Path) cluster() *Table { return p[len(p)-1] }

// Allows reports whether the caller has a verb at the beginning of the path, at a wall time in milliseconds since 1970.
// The system has every verb everywhere. It costs one look-up for each name of the caller at each place with bindings,
// and allocates nothing.
func Allows(id *Identity, verb Verb, wall int64, path Path) bool {
	if id.kind == System {
		return true
	}
	if !id.ceiling.Has(verb) {
		return false
	}
	for _, t := range path {
		if t != nil && t.verbs(id, wall).Has(verb) {
			return true
		}
	}
	return false
}

// VerbsAt returns all verbs of the caller at the beginning of the path: verbs of the cluster too, which only bindings
// on the cluster give.
func VerbsAt(id *Identity, wall int64, path Path) Verbs {
	if id.kind == System {
		return AllVerbs
	}
	var verbs Verbs
	for _, t := range path {
		verbs |= t.verbs(id, wall)
	}
	return verbs & id.ceiling
}

// Rights is all that a caller may do at a place. Ceilings are the highest of the bindings that give the verb to which
// they belong.
type Rights struct {
	Verbs Verbs
	// MaxPriority is the highest priority of claims; the lowest number without hold.
	MaxPriority int64
	// Unpreemptable allows claims that are never preempted.
	Unpreemptable bool
	// HoldAs says for whom else the caller may hold. Names are sorted.
	HoldAs Holders
}

// RightsAt returns the rights of the caller at the beginning of the path. It allocates for lists of names; use [Allows]
// where one verb is asked.
func RightsAt(id *Identity, wall int64, path Path) Rights {
	if id.kind == System {
		return unboundedRights(AllVerbs)
	}
	r := Rights{MaxPriority: math.MinInt64}
	for _, t := range path {
		t.visit(id, wall, r.add)
	}
	r.Verbs &= id.ceiling
	return r.withoutIdle()
}

func unboundedRights(verbs Verbs) Rights {
	return Rights{
		Verbs: verbs, MaxPriority: math.MaxInt64, Unpreemptable: true,
		HoldAs: Holders{Any: true},
	}
}

func (r *Rights) add(g *grant) {
	r.Verbs |= g.verbs
	if g.unbounded {
		verbs := r.Verbs
		*r = unboundedRights(verbs)
		return
	}
	if g.verbs.Has(Hold) {
		r.MaxPriority = max(r.MaxPriority, g.MaxPriority)
		r.Unpreemptable = r.Unpreemptable || g.Unpreemptable
	}
	if g.verbs.Has(HoldAs) {
		r.HoldAs.Any = r.HoldAs.Any || g.HoldAs.Any
		r.HoldAs.Names = append(r.HoldAs.Names, g.HoldAs.Names...)
	}
}

// withoutIdle brings the lists into canonical form and removes ceilings of verbs that the credential excludes.
func (r Rights) withoutIdle() Rights {
	if !r.Verbs.Has(Hold) {
		return Rights{Verbs: r.Verbs, MaxPriority: math.MinInt64}
	}
	switch r.HoldAs.Names = canonicalNames(r.HoldAs.Names); {
	case !r.Verbs.Has(HoldAs):
		r.HoldAs = Holders{}
	case r.HoldAs.Any:
		r.HoldAs.Names = nil
	}
	return r
}

// MayHoldFor reports whether the caller may hold for a user or group: itself aside, hold.as with a binding that names
// it or says any.
func (r *Rights) MayHoldFor(name string) bool { return r.Verbs.Has(HoldAs) && r.HoldAs.Allow(name) }

// String is the text of a list of holders for messages.
func (h Holders) String() string {
	if h.Any {
		return "any"
	}
	return strings.Join(h.Names, " ")
}
