package yunikorn

// scoped is a map that is taken back to an earlier state when a walk leaves a queue. So a walk over the queues costs
// the size of the file; a copy of the map for every queue would cost its square.
type scoped[V any] struct {
	values map[string]V
	undo   []former[V]
}

type former[V any] struct {
	name  string
	value V
	was   bool
}

func newScoped[V any]() *scoped[V] { return &scoped[V]{values: map[string]V{}} }

func (s *scoped[V]) set(name string, value V) {
	before, was := s.values[name]
	s.undo = append(s.undo, former[V]{name, before, was})
	s.values[name] = value
}

// mark names the present state for back.
func (s *scoped[V]) mark() int { return len(s.undo) }

func (s *scoped[V]) back(mark int) {
	for len(s.undo) > mark {
		last := s.undo[len(s.undo)-1]
		s.undo = s.undo[:len(s.undo)-1]
		if last.was {
			s.values[last.name] = last.value
		} else {
			delete(s.values, last.name)
		}
	}
}
