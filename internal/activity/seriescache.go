package activity

import (
	"container/list"
	"iter"
)

type seriesCache struct {
	most  int
	byKey map[Key]*list.Element
	// order has the series with the latest event at the front.
	order *list.List
	// amountBytes is the size of the amounts of all series.
	amountBytes int
}

func newSeriesCache(most int) *seriesCache {
	return &seriesCache{most: most, byKey: map[Key]*list.Element{}, order: list.New()}
}

// markActive finds or adds a series that has an event now. If the cache is full, it drops the series whose last event
// is the oldest.
func (s *seriesCache) markActive(key Key, now stepNumber) *series {
	if e := s.byKey[key]; e != nil {
		s.order.MoveToFront(e)
		return seriesOf(e)
	}
	if len(s.byKey) >= s.most {
		s.dropLast()
	}
	e := s.order.PushFront(&series{key: key, begun: now})
	s.byKey[key] = e
	return seriesOf(e)
}

func (s *seriesCache) dropLast() {
	last := seriesOf(s.order.Back())
	s.forgetAmounts(last)
	delete(s.byKey, last.key)
	s.order.Remove(s.order.Back())
}

// findOrAdd adds at the end. It is nil if the cache is full.
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

// findSeries is nil if there is none.
func (s *seriesCache) findSeries(key Key) *series {
	if e := s.byKey[key]; e != nil {
		return seriesOf(e)
	}
	return nil
}

// allSeries yields the one with the latest event first.
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
	s, _ := e.Value.(*series) // the list has no other values
	return s
}
