package check

import (
	"cmp"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"
)

// links are the steps whose index is known, in the order of the log: an order of all steps can only be one that has these in
// this order. So they leave nothing to search, and they narrow down when every other step can have happened.
type links struct {
	keys []uint64
	// called is when the last of the links up to each was called, back when the first of those from each on was answered:
	// what stands in the log behind an entry happened after whatever was called before that entry.
	called, back []int64
}

// chain numbers steps by the links around them, and narrows their times down. It leaves the times of a step alone that
// contradict the order of the log: then there is no order, and the search finds that.
func chain(steps []porcupine.Operation) {
	c := linksOf(steps)
	for i := range steps {
		s, _ := steps[i].Input.(*step)
		s.after, s.before = c.below(s.from), c.upTo(s.by)
		called, back := max(steps[i].Call, c.calledBy(s.from)), min(steps[i].Return, c.backFrom(s.by))
		if called <= back {
			steps[i].Call, steps[i].Return = called, back
		}
	}
}

func linksOf(steps []porcupine.Operation) links {
	known := slices.DeleteFunc(slices.Clone(steps), func(o porcupine.Operation) bool {
		s, _ := o.Input.(*step)
		return !s.chained()
	})
	keyOf := func(o porcupine.Operation) uint64 {
		s, _ := o.Input.(*step)
		return s.from
	}
	slices.SortFunc(known, func(a, b porcupine.Operation) int { return cmp.Compare(keyOf(a), keyOf(b)) })
	c := links{called: make([]int64, len(known)), back: make([]int64, len(known))}
	last, first := int64(math.MinInt64), int64(math.MaxInt64)
	for i, o := range known {
		c.keys = append(c.keys, keyOf(o))
		last = max(last, o.Call)
		c.called[i] = last
	}
	for i, o := range slices.Backward(known) {
		first = min(first, o.Return)
		c.back[i] = first
	}
	return c
}

// below is how many links there are before a key.
func (c links) below(key uint64) int {
	i, _ := slices.BinarySearch(c.keys, key)
	return i
}

// upTo is how many links there are before a key and at it.
func (c links) upTo(key uint64) int {
	if key == math.MaxUint64 {
		return len(c.keys)
	}
	return c.below(key + 1)
}

// calledBy is when the last link up to a key was called.
func (c links) calledBy(key uint64) int64 {
	if i := c.upTo(key); i > 0 {
		return c.called[i-1]
	}
	return math.MinInt64
}

// backFrom is when the first link from a key on was answered.
func (c links) backFrom(key uint64) int64 {
	if i := c.below(key); i < len(c.keys) {
		return c.back[i]
	}
	return math.MaxInt64
}
