package activity

import (
	"container/list"
	"iter"
)

// shelf has a bounded number of series, in the order of what happened in them last.
type shelf struct {
	most  int
	byKey map[Key]*list.Element
	// order has the one in which something has happened last at the front.
	order *list.List
}

func newShelf(most int) *shelf {
	return &shelf{most: most, byKey: map[Key]*list.Element{}, order: list.New()}
}

// touch finds or begins a series in which something happens now. If there are too many, the one in which nothing has
// happened for the longest time goes.
func (s *shelf) touch(key Key, now number) *series {
	if e := s.byKey[key]; e != nil {
		s.order.MoveToFront(e)
		return of(e)
	}
	if len(s.byKey) >= s.most {
		delete(s.byKey, of(s.order.Back()).key)
		s.order.Remove(s.order.Back())
	}
	e := s.order.PushFront(&series{key: key, begun: now})
	s.byKey[key] = e
	return of(e)
}

// meet finds a series in which nothing needs to have happened, or begins it if there is room; else it answers nil.
func (s *shelf) meet(key Key, now number) *series {
	e := s.byKey[key]
	if e == nil {
		if len(s.byKey) >= s.most {
			return nil
		}
		e = s.order.PushBack(&series{key: key, begun: now})
		s.byKey[key] = e
	}
	return of(e)
}

// find is nil if there is no such series.
func (s *shelf) find(key Key) *series {
	if e := s.byKey[key]; e != nil {
		return of(e)
	}
	return nil
}

// all yields every series, the most active first.
func (s *shelf) all() iter.Seq[*series] {
	return func(yield func(*series) bool) {
		for e := s.order.Front(); e != nil; e = e.Next() {
			if !yield(of(e)) {
				return
			}
		}
	}
}

func of(e *list.Element) *series {
	s, _ := e.Value.(*series) // nothing else is in there
	return s
}
