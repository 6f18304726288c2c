// Package rankqueue is a queue by priority and arrival that finds the first element of at most a given cost.
//
// It is ours because a queue of a heap has no order beyond its head, and an ordered map knows no costs: finding the
// first request that fits would visit every request before it.
package rankqueue

import (
	"fmt"
	"iter"
	"math"
	"slices"
)

// Rank is a place in the order: higher priority first, then earlier arrival.
type Rank struct {
	Priority int64
	Arrival  uint64
}

// First is the rank before all others.
func First() Rank { return Rank{Priority: 1<<63 - 1} }

// Before reports whether r comes before other.
func (r Rank) Before(other Rank) bool {
	if r.Priority != other.Priority {
		return r.Priority > other.Priority
	}
	return r.Arrival < other.Arrival
}

// Next is the rank directly after r. The arrival of r must not be the largest number.
func (r Rank) Next() Rank { return Rank{Priority: r.Priority, Arrival: r.Arrival + 1} }

// maxChunk is the largest number of elements in a chunk.
const maxChunk = 128

// Queue has elements in the order of their ranks, which are unique, so there are no ties. The zero value is empty and
// ready. It is not safe for concurrent use.
//
// The elements are divided into chunks of at most 128, each with the least cost in it. With n elements, an insertion, a
// removal and a search for a rank cost a logarithm of n and one chunk. A search by cost reads the least cost of every
// chunk, of which there are at most n/32 + 1, and the elements of one or two. CountBefore reads the length of every
// chunk before the rank.
type Queue[V any] struct {
	chunks []chunk[V]
	length int
}

// chunk has at least one entry; two neighbours have more than maxChunk/2 together.
type chunk[V any] struct {
	entries []entry[V]
	least   int64
}

type entry[V any] struct {
	rank  Rank
	cost  int64
	value V
}

// Len is the number of elements.
func (q *Queue[V]) Len() int { return q.length }

// find returns the end if all are before the rank.
func (q *Queue[V]) find(r Rank) (c, i int) {
	low, high := 0, len(q.chunks)
	for low < high {
		middle := int(uint(low+high) >> 1)
		if list := q.chunks[middle].entries; list[len(list)-1].rank.Before(r) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == len(q.chunks) {
		return low, 0
	}
	return low, q.chunks[low].find(r)
}

// find returns the end if all are before the rank.
func (c *chunk[V]) find(r Rank) int {
	low, high := 0, len(c.entries)
	for low < high {
		middle := int(uint(low+high) >> 1)
		if c.entries[middle].rank.Before(r) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}

// Insert adds an element. Its rank must not be in the queue.
func (q *Queue[V]) Insert(r Rank, cost int64, value V) {
	q.length++
	added := entry[V]{r, cost, value}
	c, i := q.find(r)
	if c == len(q.chunks) {
		if c == 0 {
			q.chunks = []chunk[V]{{entries: []entry[V]{added}, least: cost}}
			return
		}
		c--
		i = len(q.chunks[c].entries)
	}
	at := &q.chunks[c]
	at.entries = slices.Insert(at.entries, i, added)
	at.least = min(at.least, cost)
	if len(at.entries) > maxChunk {
		upper := chunk[V]{entries: slices.Clone(at.entries[maxChunk/2:])}
		at.entries = slices.Delete(at.entries, maxChunk/2, len(at.entries))
		at.least, upper.least = at.leastCost(at.least), upper.leastCost(at.least)
		q.chunks = slices.Insert(q.chunks, c+1, upper)
	}
}

// Remove takes out the element of a rank, and reports whether there was one.
func (q *Queue[V]) Remove(r Rank) bool {
	c, i := q.find(r)
	if c == len(q.chunks) || q.chunks[c].entries[i].rank != r {
		return false
	}
	q.length--
	at := &q.chunks[c]
	cost := at.entries[i].cost
	if at.entries = slices.Delete(at.entries, i, i+1); len(at.entries) == 0 {
		q.chunks = slices.Delete(q.chunks, c, c+1)
		return true
	}
	if cost == at.least {
		at.least = at.leastCost(cost)
	}
	q.mergeAfter(c)
	if c > 0 {
		q.mergeAfter(c - 1)
	}
	return true
}

// mergeAfter joins a chunk with the next one if both together are at most half full.
func (q *Queue[V]) mergeAfter(c int) {
	if c+1 >= len(q.chunks) || len(q.chunks[c].entries)+len(q.chunks[c+1].entries) > maxChunk/2 {
		return
	}
	at, next := &q.chunks[c], &q.chunks[c+1]
	at.entries, at.least = append(at.entries, next.entries...), min(at.least, next.least)
	q.chunks = slices.Delete(q.chunks, c+1, c+2)
}

// leastCost computes the least cost in the chunk, in which none is below bound. It ends at the first that is equal.
func (c *chunk[V]) leastCost(bound int64) int64 {
	least := c.entries[0].cost
	for i := range c.entries {
		if least = min(least, c.entries[i].cost); least == bound {
			break
		}
	}
	return least
}

// Head returns the first element, and false if the queue is empty.
func (q *Queue[V]) Head() (value V, found bool) {
	if q.length == 0 {
		return value, false
	}
	return q.chunks[0].entries[0].value, true
}

// FirstWithin returns the first element, from a rank on, that costs at most the given amount, and false if there is
// none.
func (q *Queue[V]) FirstWithin(cost int64, from Rank) (value V, found bool) {
	c, i := q.find(from)
	for ; c < len(q.chunks); c, i = c+1, 0 {
		if q.chunks[c].least > cost {
			continue
		}
		list := q.chunks[c].entries
		for ; i < len(list); i++ {
			if list[i].cost <= cost {
				return list[i].value, true
			}
		}
	}
	return value, false
}

// CountBefore is the number of elements before a rank.
func (q *Queue[V]) CountBefore(r Rank) int {
	c, i := q.find(r)
	for _, earlier := range q.chunks[:c] {
		i += len(earlier.entries)
	}
	return i
}

// All yields all elements in order. The queue must not change meanwhile.
func (q *Queue[V]) All() iter.Seq[V] { return q.From(First()) }

// From yields the elements from a rank on, in order. The queue must not change meanwhile.
func (q *Queue[V]) From(r Rank) iter.Seq[V] {
	return func(yield func(V) bool) {
		c, i := q.find(r)
		for ; c < len(q.chunks); c, i = c+1, 0 {
			list := q.chunks[c].entries
			for ; i < len(list); i++ {
				if !yield(list[i].value) {
					return
				}
			}
		}
	}
}

// Check verifies that the elements are in order and counted, and that every chunk knows its least cost.
func (q *Queue[V]) Check() error {
	counted := 0
	var last *Rank
	for c := range q.chunks {
		at := &q.chunks[c]
		if n := len(at.entries); n == 0 || n > maxChunk {
			return fmt.Errorf("chunk %d has %d elements", c, n)
		} else if c > 0 && n+len(q.chunks[c-1].entries) <= maxChunk/2 {
			return fmt.Errorf("chunks %d and %d have %d elements together", c-1, c, n+len(q.chunks[c-1].entries))
		}
		if least := at.leastCost(math.MinInt64); least != at.least {
			return fmt.Errorf("chunk %d says that its least cost is %d, but it is %d", c, at.least, least)
		}
		for i := range at.entries {
			if last != nil && !last.Before(at.entries[i].rank) {
				return fmt.Errorf("element %d of chunk %d is out of order", i, c)
			}
			last = &at.entries[i].rank
		}
		counted += len(at.entries)
	}
	if counted != q.length {
		return fmt.Errorf("%d elements are counted, but there are %d", q.length, counted)
	}
	return nil
}
