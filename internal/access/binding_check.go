package access

// anonymousVerbs are all that callers without an identity can be given.
const anonymousVerbs = Verbs(UsageRead | ConfigRead | ClusterRead | MetricsRead)

// reservedVerbs cannot be given to everyone: each of them is enough to take over the cluster.
const reservedVerbs = Verbs(BindingsGrant | SnapshotRestore | ClusterOperate | AccessManage)

// CheckBindings refuses a list of bindings of one node or of the cluster that is too long or has a bad element. The
// list may be in any order.
func CheckBindings(list []Binding, roles Roles, scope Scope) *Error {
	if len(list) > MaxBindings {
		return refusal(Full, "bindings", "at most 100 are allowed at one place; bind groups instead of users",
			"there are %d bindings", len(list))
	}
	for i := range list {
		if err := list[i].check(roles, scope); err != nil {
			return err.below(indexed("bindings", i))
		}
	}
	return nil
}

func (b *Binding) check(roles Roles, scope Scope) *Error {
	role, found := roles.Find(b.Role)
	switch {
	case !found:
		return invalid("role", oneOf(roles.names()), "%q is not a role", clip(b.Role))
	case role.Verbs&scope.Verbs() == 0:
		return invalid("role", "bind it on the cluster", "role %s has no verb that is asked at a node", b.Role)
	case len(b.To) == 0 || len(b.To) > MaxSubjects:
		return invalid("subjects", "1 to 100 are allowed", "there are %d subjects", len(b.To))
	case b.Until < 0:
		return invalid("ends", "write milliseconds since 1970, or 0 for no end", "%d is not a time", b.Until)
	}
	for i, s := range b.To {
		if err := checkSubjectOf(role, scope, s); err != nil {
			return err.below(indexed("subjects", i))
		}
	}
	return b.checkCeilings(role)
}

// checkSubjectOf refuses a bad subject, and one that is too many callers for the role.
func checkSubjectOf(role Role, scope Scope, s Subject) *Error {
	if err := s.Check(); err != nil {
		return err
	}
	given := role.Verbs & scope.Verbs()
	if s.Kind == AnonymousSubject && !anonymousVerbs.Contains(given) {
		return invalid("", "anonymous callers can have "+anonymousVerbs.String(), "role %s gives anonymous callers %s",
			role.Name, given&^anonymousVerbs)
	}
	if s.Kind == Everyone && given&reservedVerbs != 0 {
		return invalid("", "name users, groups or accounts", "role %s gives everyone %s", role.Name, given&reservedVerbs)
	}
	return nil
}

// checkCeilings refuses ceilings that the role makes meaningless.
func (b *Binding) checkCeilings(role Role) *Error {
	needs := func(field string, verb Verb) *Error {
		if role.Verbs.Has(verb) {
			return nil
		}
		return invalid(field, "choose a role with "+verb.String()+" or leave it out", "role %s has no %s", role.Name, verb)
	}
	set := []struct {
		field string
		given bool
		verb  Verb
	}{
		{"max-priority", b.MaxPriority != 0, Hold},
		{"unpreemptable", b.Unpreemptable, Hold},
		{"hold-as", !b.HoldAs.isEmpty(), HoldAs},
	}
	for _, s := range set {
		if !s.given {
			continue
		}
		if err := needs(s.field, s.verb); err != nil {
			return err
		}
		if role.Name == RoleRoot {
			return invalid(s.field, "leave it out", "role root has no ceilings")
		}
	}
	return b.HoldAs.check()
}

// check refuses names that are malformed, and names beside any.
func (h Holders) check() *Error {
	if h.Any && len(h.Names) > 0 {
		return invalid("hold-as", `write "any" or names`, "it says any and has %d names", len(h.Names))
	}
	if len(h.Names) > MaxHoldAs {
		return invalid("hold-as", `at most 100 are allowed; "any" is everyone`, "there are %d names", len(h.Names))
	}
	for _, name := range h.Names {
		if !isSubjectName(name) {
			return invalid("hold-as", subjectNameRule, "%q is not a user or group", clip(name))
		}
	}
	return nil
}
