package access

import (
	"fmt"
	"math"
	"strings"
)

// Missing is what a caller lacks to give a binding. The zero value lacks nothing.
type Missing struct {
	// Verbs of the role that the caller does not have there, or not for as long as the binding lasts.
	Verbs Verbs
	// Ceilings are those of the binding that are higher than the caller's, in the order of the binding's fields.
	Ceilings []CeilingGap
}

// CeilingGap is one ceiling that is too high, as texts for messages.
type CeilingGap struct {
	// Field is the field of the binding: max-priority, unpreemptable, hold-as or ids.
	Field string
	// Wanted is the value in the binding, Own the highest that the caller may give; empty if there is none.
	Wanted, Own string
}

// IsEmpty reports whether nothing is missing.
func (m *Missing) IsEmpty() bool { return m.Verbs == 0 && len(m.Ceilings) == 0 }

// String lists what is missing for an error text, for example "hold.force, max-priority 10 (at most 5)".
func (m *Missing) String() string {
	parts := m.Verbs.Names()
	for _, c := range m.Ceilings {
		part := strings.TrimSpace(c.Field + " " + c.Wanted)
		if c.Own != "" {
			part += " (at most " + c.Own + ")"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// Covers returns what the caller lacks to add a binding with a role at the beginning of the path: every verb that the
// binding gives there, and no ceiling higher than its own. Rights that end before the binding do not count, so that
// no caller makes a right permanent that it has for a time.
//
// A caller with access.manage on the cluster needs neither verbs of nodes nor ceilings: it can create a token of any
// account anyway. Verbs of the cluster it needs like everyone else.
//
// Covers does not ask for bindings.grant; the table of rules does.
func Covers(id *Identity, wall int64, path Path, scope Scope, role Role, b Binding) Missing {
	last := int64(math.MaxInt64) - 1
	if b.Until != 0 {
		last = max(wall, b.Until-1)
	}
	own := RightsAt(id, last, path)
	missing := Missing{Verbs: role.Verbs & scope.Verbs() &^ own.Verbs}
	if Allows(id, AccessManage, last, Path{path.cluster()}) {
		missing.Verbs &= ClusterVerbs
		return missing
	}
	missing.Ceilings = own.gaps(role, b)
	return missing
}

// gaps lists the ceilings of a binding that are higher than the rights.
func (r *Rights) gaps(role Role, b Binding) []CeilingGap {
	var gaps []CeilingGap
	add := func(field, wanted, own string) { gaps = append(gaps, CeilingGap{field, wanted, own}) }
	unbounded := role.Name == RoleRoot
	wanted := b.MaxPriority
	if unbounded {
		wanted = math.MaxInt64
	}
	if role.Verbs.Has(Hold) && wanted > r.MaxPriority {
		own := ""
		if r.Verbs.Has(Hold) {
			own = fmt.Sprint(r.MaxPriority)
		}
		add("max-priority", fmt.Sprint(wanted), own)
	}
	if (b.Unpreemptable || unbounded) && !r.Unpreemptable {
		add("unpreemptable", "", "")
	}
	if names, ok := r.HoldAs.lacks(b.HoldAs, unbounded); !ok {
		add("hold-as", names, "")
	}
	return gaps
}

// lacks names the holders that are wanted and not among h; true if none are.
func (h Holders) lacks(wanted Holders, all bool) (string, bool) {
	if h.Any {
		return "", true
	}
	if wanted.Any || all {
		return "any", false
	}
	var names []string
	for _, name := range wanted.Names {
		if !h.Allow(name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " "), len(names) == 0
}
