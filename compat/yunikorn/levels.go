package yunikorn

import (
	"fmt"
)

// levels holds the limits of each queue against those of the levels above it, users and groups apart. The three
// branches for a name are the original's: the same name above; else the wildcard above, unless the name is the
// wildcard; else nothing.
type levels[T any] struct {
	v             *validator
	rule          string // ends the names of the rules
	limitOf       func(*entry) T
	exceeds       func(above, own T) (reason string, isOver bool)
	merge         func(above, own T) T // what holds below a name that is on both levels
	users, groups *scopedMap[T]
}

func (v *validator) limitResources(root *node) {
	l := &levels[amounts]{
		v: v, rule: "res", users: newScopedMap[amounts](), groups: newScopedMap[amounts](), merge: minAmounts,
		limitOf: func(e *entry) amounts { return e.resources.amounts },
		exceeds: func(above, own amounts) (string, bool) {
			kind, more := exceedsAny(above, own)
			return fmt.Sprintf("%d %s exceeds the maximum of %d", own[kind], clipText(kind), above[kind]), more
		},
	}
	l.walkQueue(root)
}

func (v *validator) limitApplications(root *node) {
	l := &levels[uint64]{
		v: v, rule: "apps", users: newScopedMap[uint64](), groups: newScopedMap[uint64](),
		limitOf: func(e *entry) uint64 { return e.MaxApplications },
		merge:   func(_, own uint64) uint64 { return own },
		exceeds: func(above, own uint64) (string, bool) {
			if own == 0 {
				return fmt.Sprintf("an unlimited number of applications exceeds the maximum of %d", above), above != 0
			}
			return fmt.Sprintf("%d applications exceed the maximum of %d", own, above), above != 0 && own > above
		},
	}
	l.walkQueue(root)
}

// walkQueue compares the entries of a queue with the limits that its parent left, and only then changes these for the
// children.
func (l *levels[T]) walkQueue(n *node) {
	markUsers, markGroups := l.users.undoMark(), l.groups.undoMark()
	var changes []func()
	for _, e := range n.entries {
		changes = append(changes, l.compareEntry(n, e, users, e.Users, l.users)...)
		changes = append(changes, l.compareEntry(n, e, groups, e.Groups, l.groups)...)
	}
	for _, change := range changes {
		change()
	}
	for _, child := range n.children {
		l.walkQueue(child)
	}
	l.users.undoTo(markUsers)
	l.groups.undoTo(markGroups)
}

func (l *levels[T]) compareEntry(n *node, e *entry, k kind, names []string, above *scopedMap[T]) []func() {
	own := l.limitOf(e)
	changes := make([]func(), len(names))
	for i, name := range names {
		path := fmt.Sprintf("%s.%s[%d]", e.path, k.key, i)
		below := own
		if same, found := above.values[name]; found {
			if reason, more := l.exceeds(same, own); more {
				l.v.addProblem(path, n.name, k.word+"-"+l.rule+"-over-parent",
					"%s of the same %s %q on a level above",
					reason, k.word, clipText(name))
			}
			below = l.merge(same, own)
		} else if wildcard, found := above.values[anyName]; found && name != anyName {
			if reason, more := l.exceeds(wildcard, own); more {
				l.v.addProblem(
					path,
					n.name,
					k.word+"-"+l.rule+"-over-wildcard",
					"%s of the %s * on a level above, which applies to %q",
					reason,
					k.word,
					clipText(name),
				)
			}
			if l.v.strict {
				below = l.merge(wildcard, own)
			}
		}
		changes[i] = func() { above.setValue(name, below) }
	}
	return changes
}

// scopedMap is a map that is restored to an earlier state when a walk leaves a queue. A walk over the queues therefore
// takes time linear in the size of the file; a copy of the map for every queue would take quadratic time.
type scopedMap[V any] struct {
	values map[string]V
	undo   []former[V]
}

type former[V any] struct {
	name  string
	value V
	isSet bool
}

func newScopedMap[V any]() *scopedMap[V] { return &scopedMap[V]{values: map[string]V{}} }

func (s *scopedMap[V]) setValue(name string, value V) {
	before, isSet := s.values[name]
	s.undo = append(s.undo, former[V]{name, before, isSet})
	s.values[name] = value
}

func (s *scopedMap[V]) undoMark() int { return len(s.undo) }

func (s *scopedMap[V]) undoTo(mark int) {
	for len(s.undo) > mark {
		last := s.undo[len(s.undo)-1]
		s.undo = s.undo[:len(s.undo)-1]
		if last.isSet {
			s.values[last.name] = last.value
		} else {
			delete(s.values, last.name)
		}
	}
}
