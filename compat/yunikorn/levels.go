package yunikorn

import "fmt"

// levels holds the limits of each queue against those of the levels above it, users and groups apart. The three
// branches for a name are the original's: the same name above; else the wildcard above, unless the name is the
// wildcard; else nothing.
type levels[T any] struct {
	v             *validator
	rule          string // ends the names of the rules
	of            func(*entry) T
	over          func(above, own T) (why string, is bool)
	merge         func(above, own T) T // what holds below a name that is on both levels
	users, groups *scoped[T]
}

func (v *validator) limitResources(root *node) {
	l := &levels[amounts]{
		v: v, rule: "res", users: newScoped[amounts](), groups: newScoped[amounts](), merge: smaller,
		of: func(e *entry) amounts { return e.resources.amounts },
		over: func(above, own amounts) (string, bool) {
			which, more := over(above, own)
			return fmt.Sprintf("%d %s is more than the %d", own[which], clip(which), above[which]), more
		},
	}
	l.walk(root)
}

func (v *validator) limitApplications(root *node) {
	l := &levels[uint64]{
		v: v, rule: "apps", users: newScoped[uint64](), groups: newScoped[uint64](),
		of:    func(e *entry) uint64 { return e.MaxApplications },
		merge: func(_, own uint64) uint64 { return own },
		over: func(above, own uint64) (string, bool) {
			if own == 0 {
				return fmt.Sprintf("no maximum of applications is more than the %d", above), above != 0
			}
			return fmt.Sprintf("%d applications are more than the %d", own, above), above != 0 && own > above
		},
	}
	l.walk(root)
}

// walk compares the entries of a queue with what its parent left, and only then changes that for the children.
func (l *levels[T]) walk(n *node) {
	markUsers, markGroups := l.users.mark(), l.groups.mark()
	var changes []func()
	for _, e := range n.entries {
		changes = append(changes, l.compare(n, e, users, e.Users, l.users)...)
		changes = append(changes, l.compare(n, e, groups, e.Groups, l.groups)...)
	}
	for _, change := range changes {
		change()
	}
	for _, child := range n.children {
		l.walk(child)
	}
	l.users.back(markUsers)
	l.groups.back(markGroups)
}

func (l *levels[T]) compare(n *node, e *entry, k kind, names []string, above *scoped[T]) []func() {
	own := l.of(e)
	changes := make([]func(), len(names))
	for i, name := range names {
		path := fmt.Sprintf("%s.%s[%d]", e.path, k.key, i)
		below := own
		if same, found := above.values[name]; found {
			if why, more := l.over(same, own); more {
				l.v.fail(path, n.name, k.word+"-"+l.rule+"-over-parent", "%s that the same %s %q has on a level above",
					why, k.word, clip(name))
			}
			below = l.merge(same, own)
		} else if wildcard, found := above.values[everybody]; found && name != everybody {
			if why, more := l.over(wildcard, own); more {
				l.v.fail(path, n.name, k.word+"-"+l.rule+"-over-wildcard", "%s that the %s * has on a level above: %q is under it",
					why, k.word, clip(name))
			}
			if l.v.strict {
				below = l.merge(wildcard, own)
			}
		}
		changes[i] = func() { above.set(name, below) }
	}
	return changes
}
