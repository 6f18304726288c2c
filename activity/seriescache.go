package activity

import (
	"container/list"
	"iter"
)

// seriesCache has a bounded number of series, in the order of what happened in them last.
type seriesCache struct {
	most  int
	byKey map[Key]*list.Element
	// order has the one in which something has happened last at the front.
	order *list.List
}

func newSeriesCache(most int) *seriesCache {
	return &seriesCache{most: most, byKey: map[Key]*list.Element{}, order: list.New()}
}

// markActive finds or begins a series in which something happens now. If there are too many, the one in which nothing has
// happened for the longest time goes.
func (s *seriesCache) markActive(key Key, now stepNumber) *series {
	if e := s.byKey[key]; e != nil {
		s.order.MoveToFront(e)
		return seriesOf(e)
	}
	if len(s.byKey) >= s.most {
		delete(s.byKey, seriesOf(s.order.Back()).key)
		s.order.Remove(s.order.Back())
	}
	e := s.order.PushFront(&series{key: key, begun: now})
	s.byKey[key] = e
	return seriesOf(e)
}

// findOrAdd finds a series in which nothing needs to have happened, or begins it if there is room; else it answers nil.
func (s *seriesCache) findOrAdd(key Key, now stepNumber) *series {
	e := s.byKey[key]
	if e == nil {
		if len(s.byKey) >= s.most {
			return nil
		}
		e = s.order.PushBack(&series{key: key, begun: now})
		s.byKey[key] = e
	}
	return seriesOf(e)
}

// findSeries is nil if there is no such series.
func (s *seriesCache) findSeries(key Key) *series {
	if e := s.byKey[key]; e != nil {
		return seriesOf(e)
	}
	return nil
}

// allSeries yields every series, the most active first.
func (s *seriesCache) allSeries() iter.Seq[*series] {
	return func(yield func(*series) bool) {
		for e := s.order.Front(); e != nil; e = e.Next() {
			if !yield(seriesOf(e)) {
				return
			}
		}
	}
}

func seriesOf(e *list.Element) *series {
	s, _ := e.Value.(*series) // nothing else is in there
	return s
}
