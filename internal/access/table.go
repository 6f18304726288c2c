package access

import "math"

// Table is the bindings of one place, a node or the cluster, compiled for decisions. It is immutable; a nil table has
// no bindings. Its entries are found by user or group in an open hash table, because a decision asks for the same few
// names at every place of a path.
type Table struct {
	// slots has at least one empty slot; its length is a power of two.
	slots []slot
	// filter has the filter bits of all names in the table.
	filter uint64
	// everyone and anonymous are nil if no binding names them.
	everyone, anonymous *entry
}

// slot has the hash beside the entry, so that a name that is not in the table costs one cache line. It is empty if the
// hash is 0.
type slot struct {
	hash  uint64
	entry *entry
}

// entry is what one subject is given at one place.
type entry struct {
	name hashedName
	// forever are the verbs of bindings without an end.
	forever Verbs
	// timed are the grants that end.
	timed []*grant
	// grants are all of them.
	grants []*grant
}

// grant is one binding with the verbs of its role at the place.
type grant struct {
	verbs Verbs
	// until is the wall time from which it gives nothing; the largest one if it has no end.
	until int64
	// unbounded is true for root, which has no ceilings.
	unbounded bool
	Binding
}

// Compile prepares canonical bindings of one place. A role that is not known gives nothing, so that a lost role cannot
// widen rights. Compile again when the roles change.
func Compile(list []Binding, roles Roles, scope Scope) *Table {
	if len(list) == 0 {
		return nil
	}
	t := &Table{}
	subjects := 0
	for i := range list {
		subjects += len(list[i].To)
	}
	size := 4
	for size < 2*subjects {
		size *= 2
	}
	t.slots = make([]slot, size)
	for i := range list {
		role, _ := roles.Find(list[i].Role)
		g := &grant{
			Binding: list[i], verbs: role.Verbs & scope.Verbs(), until: list[i].Until,
			unbounded: role.Name == RoleRoot,
		}
		if g.until == 0 {
			g.until = math.MaxInt64
		}
		for _, s := range g.To {
			t.entryOf(s).add(g)
		}
	}
	return t
}

func (t *Table) entryOf(s Subject) *entry {
	var name hashedName
	switch s.Kind {
	case Everyone:
		return firstUse(&t.everyone)
	case AnonymousSubject:
		return firstUse(&t.anonymous)
	case AccountSubject:
		name = newHashedName(User, accountPrefix+s.Name)
	case User, Group:
		name = newHashedName(s.Kind, s.Name)
	}
	i := t.find(&name)
	if t.slots[i].hash == 0 {
		t.slots[i] = slot{name.hash, &entry{name: name}}
		t.filter |= name.filterBit()
	}
	return t.slots[i].entry
}

func firstUse(e **entry) *entry {
	if *e == nil {
		*e = &entry{}
	}
	return *e
}

// find returns the slot of a name, or the empty slot where it would be. At most half of the slots are taken, so the
// loop ends.
func (t *Table) find(name *hashedName) uint64 {
	mask := uint64(len(t.slots) - 1)
	for i := name.hash & mask; ; i = (i + 1) & mask {
		if s := &t.slots[i]; s.hash == 0 || s.hash == name.hash && s.entry.isFor(name) {
			return i
		}
	}
}

// isFor compares names whole, because different names may have one hash.
func (e *entry) isFor(name *hashedName) bool {
	return e.name.kind == name.kind && e.name.text == name.text
}

func (e *entry) add(g *grant) {
	e.grants = append(e.grants, g)
	if g.until == math.MaxInt64 {
		e.forever |= g.verbs
	} else {
		e.timed = append(e.timed, g)
	}
}

// verbsAt are the verbs at a wall time; e may be nil.
func (e *entry) verbsAt(wall int64) Verbs {
	if e == nil {
		return 0
	}
	verbs := e.forever
	for _, g := range e.timed {
		if wall < g.until {
			verbs |= g.verbs
		}
	}
	return verbs
}

// verbs does not apply the ceiling of the identity; t may be nil.
func (t *Table) verbs(id *Identity, wall int64) Verbs {
	if t == nil {
		return 0
	}
	if !id.isKnown() {
		if id.kind == Anonymous {
			return t.anonymous.verbsAt(wall)
		}
		return 0
	}
	var verbs Verbs
	if t.everyone != nil {
		verbs = t.everyone.verbsAt(wall)
	}
	if t.filter&id.filter == 0 {
		return verbs
	}
	for i := range id.names {
		if name := &id.names[i]; t.filter&name.filterBit() != 0 {
			if e := t.slots[t.find(name)].entry; e != nil {
				verbs |= e.verbsAt(wall)
			}
		}
	}
	return verbs
}

// visit takes nil as t.
func (t *Table) visit(id *Identity, wall int64, do func(*grant)) {
	if t == nil {
		return
	}
	each := func(e *entry) {
		if e == nil {
			return
		}
		for _, g := range e.grants {
			if wall < g.until {
				do(g)
			}
		}
	}
	if id.kind == Anonymous {
		each(t.anonymous)
	}
	if !id.isKnown() {
		return
	}
	each(t.everyone)
	for i := range id.names {
		each(t.slots[t.find(&id.names[i])].entry)
	}
}
